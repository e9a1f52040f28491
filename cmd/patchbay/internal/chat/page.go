package chat

import (
	"errors"
	"net/url"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// page asks whether the person agrees to visit a page. It shows the full URL and its host; only the
// person opens it (2026-07-28, client/elicitation, URL mode).
type page struct {
	*host.Elicitation
	url  *url.URL
	open func(address string) // opens it in the browser, and reports through result
	copy func(text string)

	result string // of opening or copying; empty: neither was tried
}

func newPage(c *Chat, q *host.Elicitation) (*page, error) {
	u, err := url.Parse(q.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("invalid URL")
	}
	return &page{Elicitation: q, url: u, open: c.visit, copy: c.copy}, nil
}

// show puts the server's message last, so that none of it can look like the address.
func (p *page) show(l *look) sheet {
	s := sheet{title: screen.OneLine(p.Server) + " wants you to visit a page"}
	s.head = screen.Fold("The page is at "+l.paint(screen.Visible(p.url.Hostname()), bold)+".", l.width)
	for _, warning := range screen.Suspicions(p.url) {
		s.head = append(s.head, l.wrapped("Warning: "+screen.Visible(warning), "", yellow)...)
	}
	s.body = screen.Fold(l.paint(screen.Visible(p.URL), cyan), l.width)
	s.body = append(s.body, "", l.paint("The server says:", dim))
	s.body = append(s.body, l.wrapped(screen.Visible(p.Message), "  ", "")...)
	s.foot = l.keysLine("o", "open it", "y", "agree without opening", "w", "copy", "n", "no", "esc", "dismiss")
	if p.result != "" {
		s.head = append(s.head, l.wrapped(screen.OneLine(p.result), "", dim)...)
	}
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
		p.result = "copied, if the terminal has a clipboard"
	case "n":
		return &mcp.ElicitResult{Action: "decline"}
	case "esc":
		return &mcp.ElicitResult{Action: "cancel"}
	default:
		return unmeant{}
	}
	return nil
}

func (p *page) paste(string) {}

func (p *page) writes() bool { return false }
