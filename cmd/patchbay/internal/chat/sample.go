package chat

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// sampleRequest shows a sampling request from a server. The person may change its last message and
// the system prompt (2026-07-28, client/sampling, human in the loop).
type sampleRequest struct {
	*host.Sampling
	r *mcp.SampleRequest // a copy
	editing
}

func newSampleRequest(s *host.Sampling) *sampleRequest {
	r := *s.Request
	r.Messages = slices.Clone(r.Messages)
	return &sampleRequest{Sampling: s, r: &r}
}

// writing is a text in an editor, and the function that gets the result.
type writing struct {
	editor
	width int // at which it was last shown
	done  func(string)
}

func write(text string, done func(string)) *writing {
	w := &writing{done: done}
	w.set(text)
	return w
}

// key handles a key, and reports whether editing is over.
func (w *writing) key(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "esc":
		return true
	case "ctrl+s":
		w.done(w.String())
		return true
	case "enter":
		w.insert("\n")
	case "up":
		w.vertical(-1, w.width)
	case "down":
		w.vertical(1, w.width)
	default:
		w.editor.key(k)
	}
	return false
}

// editing is the part of a dialog in which a text can be changed.
type editing struct {
	edit *writing // nil: no text is being changed
}

// took handles a key while a text is being changed, and reports whether one was.
func (e *editing) took(k tea.KeyPressMsg) bool {
	if e.edit == nil {
		return false
	}
	if e.edit.key(k) {
		e.edit = nil
	}
	return true
}

func (e *editing) paste(text string) {
	if e.edit != nil {
		e.edit.insert(text)
	}
}

func (e *editing) writes() bool { return e.edit != nil }

// show shows the editor in place of the body.
func (w *writing) show(s *sheet, l *look) {
	w.width = l.width
	lines, x, y := w.view(w.width, 1<<20)
	s.body, s.cursor, s.inBody, s.x, s.y = lines, true, true, x, y
	s.foot = l.keysLine("ctrl-S", "keep", "esc", "back")
}

func (s *sampleRequest) show(l *look) sheet {
	out := sheet{title: screen.OneLine(s.Server) + " wants a model to answer this"}
	facts := fmt.Sprintf("at most %d tokens", s.r.MaxTokens)
	if s.Model != "" {
		facts = "by " + screen.OneLine(s.Model) + ", " + facts
	}
	if n := len(s.r.Tools); n > 0 {
		facts += fmt.Sprintf(", with %d tools of the server", n)
	}
	out.head = append(out.head, l.paint(screen.Cut(facts, l.width), dim))
	if s.edit != nil {
		s.edit.show(&out, l)
		return out
	}
	if s.r.SystemPrompt != "" {
		out.body = append(out.body, l.paint("system", cyan))
		out.body = append(out.body, l.wrapped(screen.Visible(s.r.SystemPrompt), "  ", "")...)
	}
	for _, m := range s.r.Messages {
		out.body = append(out.body, l.paint(screen.OneLine(m.Role), cyan))
		out.body = append(out.body, l.wrapped(screen.Visible(screen.Content(m.Content)), "  ", "")...)
	}
	out.foot = l.keysLine("y", "let it answer", "e", "edit the last message", "s", "edit the system prompt", "n", "no")
	return out
}

// withText replaces the texts of blocks by a single one.
func withText(blocks []mcp.Content, text string) []mcp.Content {
	out := []mcp.Content{mcp.Text(text)}
	for _, c := range blocks {
		if _, ok := c.(mcp.TextContent); !ok {
			out = append(out, c)
		}
	}
	return out
}

func textsOf(blocks []mcp.Content) string {
	var out []string
	for _, c := range blocks {
		if t, ok := c.(mcp.TextContent); ok {
			out = append(out, t.Text)
		}
	}
	return strings.Join(out, "\n")
}

func (s *sampleRequest) key(k tea.KeyPressMsg) any {
	if s.took(k) {
		return nil
	}
	switch k.String() {
	case "y":
		return s.r
	case "n", "esc":
		return mcp.ErrDeclined
	case "e":
		if n := len(s.r.Messages) - 1; n >= 0 {
			m := &s.r.Messages[n]
			s.edit = write(textsOf(m.Content), func(text string) { m.Content = withText(m.Content, text) })
		}
	case "s":
		s.edit = write(s.r.SystemPrompt, func(text string) { s.r.SystemPrompt = text })
	default:
		return unmeant{}
	}
	return nil
}

// sampleAnswer shows the model's answer, which the person may change before the server gets it.
type sampleAnswer struct {
	*host.Sampling
	r *mcp.SampleResult // a copy
	editing
}

func newSampleAnswer(s *host.Sampling, r *mcp.SampleResult) *sampleAnswer {
	again := *r
	return &sampleAnswer{Sampling: s, r: &again}
}

func (s *sampleAnswer) show(l *look) sheet {
	out := sheet{title: "Send this answer to " + screen.OneLine(s.Server) + "?"}
	if s.edit != nil {
		s.edit.show(&out, l)
		return out
	}
	out.body = l.wrapped(screen.Visible(screen.Content(s.r.Content)), "", "")
	out.foot = l.keysLine("y", "send", "e", "edit", "n", "no")
	return out
}

func (s *sampleAnswer) key(k tea.KeyPressMsg) any {
	if s.took(k) {
		return nil
	}
	switch k.String() {
	case "y":
		return s.r
	case "n", "esc":
		return mcp.ErrDeclined
	case "e":
		s.edit = write(textsOf(s.r.Content), func(text string) { s.r.Content = withText(s.r.Content, text) })
	default:
		return unmeant{}
	}
	return nil
}
