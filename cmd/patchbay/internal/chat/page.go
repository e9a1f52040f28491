package chat

import (
	"net/url"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// page asks whether the person agrees to visit a page. It is shown in full, with its host; only
// the person opens it (2026-07-28, client/elicitation, URL mode).
type page struct {
	*host.Elicitation
	open func(address string) // opens it in the browser, and tells result
	copy func(text string)

	result string // of opening or copying; empty: neither was tried
}

func (p *page) show(l *look) sheet {
	s := sheet{head: screen.Fold(l.paint(screen.OneLine(p.Server)+" wants you to visit a page", bold), l.width)}
	s.body = append(l.wrapped(screen.Visible(p.Message), "", ""), "")
	s.body = append(s.body, screen.Fold(l.paint(screen.Visible(p.URL), cyan), l.width)...)
	s.body = append(s.body, "")
	if u, err := url.Parse(p.URL); err == nil {
		s.body = append(s.body, "It is a page of "+l.paint(screen.Visible(u.Hostname()), bold)+".")
		for _, warning := range screen.Suspicions(u) {
			s.body = append(s.body, l.wrapped("Take care: "+screen.Visible(warning), "", yellow)...)
		}
	}
	if p.result != "" {
		s.foot = l.wrapped(screen.OneLine(p.result), "", dim)
	}
	s.foot = append(s.foot, l.keysLine("o", "agree, and open it", "y", "agree, you open it", "w", "copy", "n", "no", "esc", "dismiss")...)
	return s
}

func (p *page) key(k tea.KeyPressMsg) any {
	switch k.String() {
	case "o":
		p.open(p.URL)
		return &mcp.ElicitResult{Action: "accept"}
	case "y":
		return &mcp.ElicitResult{Action: "accept"}
	case "w":
		p.copy(p.URL)
		p.result = "it was given to the terminal's clipboard, if the terminal has one"
	case "n":
		return &mcp.ElicitResult{Action: "decline"}
	case "esc":
		return &mcp.ElicitResult{Action: "cancel"}
	}
	return nil
}

func (p *page) paste(string) {}

func (p *page) writes() bool { return false }
