package chat

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// approval asks whether a tool may be called.
type approval struct {
	*host.Approval
	reason *editor  // the reason of a denial, while it is written; nil: none
	wider  *widened // more than this call, while the person decides about it; nil: nothing
	edits  []string // lines of the edits in the arguments
}

func newApproval(a *host.Approval) *approval {
	return &approval{Approval: a, edits: editsOf(a.Arguments)}
}

func (a *approval) show(l *look) sheet {
	if a.wider != nil {
		return a.wider.show(l)
	}
	s := sheet{title: "May " + screen.OneLine(a.Server) + "/" + screen.OneLine(a.Tool.Name) + " be called?"}
	if a.Changed != "" {
		s.head = append(s.head, l.wrapped("Warning: it has changed since you allowed it: "+screen.OneLine(a.Changed), "", yellow)...)
	}
	if a.Doubt != "" {
		s.head = append(s.head, l.wrapped("Warning: "+screen.OneLine(a.Doubt), "", yellow)...)
	}
	if text := about(a.Tool); text != "" {
		s.head = append(s.head, l.paint(screen.Cut(text, l.width), dim))
	}
	s.head = append(s.head, l.paint(screen.Cut(claims(a.Tool.Annotations), l.width), dim))
	s.body = append(append(l.changes(a.Approval), l.json(a.Arguments)...), l.edits(a.edits)...)
	if a.reason != nil {
		line, x := a.reason.field(l.width - 5)
		s.foot = append([]string{"Why: " + line}, l.keysLine("enter", "denies", "esc", "back")...)
		s.cursor, s.x = true, 5+x
		return s
	}
	s.foot = l.keysLine("y", "once", "c", "in this conversation", "a", "always", "m", "more", "n", "no", "r", "no, with a reason")
	return s
}

// changes shows what has changed in a tool since it was allowed, if that is known. The rest of a long line is
// indented, as it could look like a line of its own.
func (l *look) changes(a *host.Approval) (out []string) {
	if a.Before == nil {
		return nil
	}
	first := *l
	first.width -= 4
	for _, line := range allow.Diff(a.Before, a.Tool) {
		for i, part := range first.wrapped(line.String(), "", line.Style()) {
			if i > 0 {
				part = "    " + part
			}
			out = append(out, part)
		}
	}
	return append(out, "", l.paint("The call now:", bold))
}

// json shows JSON exactly as it is sent, indented.
func (l *look) json(raw []byte) []string {
	text := screen.Visible(screen.Indented(raw))
	if l.color {
		text = screen.PaintJSON(text)
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, screen.Fold(strings.ReplaceAll(line, "\t", "    "), l.width)...)
	}
	return out
}

// about returns the title and description of a tool, in one line.
func about(t *mcp.Tool) string {
	first, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
	if first == "" {
		first = t.Title
	}
	return screen.OneLine(first)
}

// claims describes the annotations of a tool. Missing ones have the defaults of the specification.
func claims(a *mcp.ToolAnnotations) string {
	if a == nil {
		a = &mcp.ToolAnnotations{}
	}
	is := func(v *bool, otherwise bool) bool {
		if v == nil {
			return otherwise
		}
		return *v
	}
	var words []string
	switch {
	case is(a.ReadOnly, false):
		words = append(words, "read-only")
	case is(a.Destructive, true):
		words = append(words, "destructive")
	default:
		words = append(words, "non-destructive")
	}
	if !is(a.ReadOnly, false) && is(a.Idempotent, false) {
		words = append(words, "idempotent")
	}
	if is(a.OpenWorld, true) {
		words = append(words, "open-world")
	}
	return "Hints: " + strings.Join(words, ", ")
}

func (a *approval) key(k tea.KeyPressMsg) any {
	if a.wider != nil {
		return a.wider.key(k)
	}
	if a.reason != nil {
		switch k.String() {
		case "esc":
			a.reason = nil
		case "enter":
			return host.Verdict{Answer: host.Deny, Reason: strings.TrimSpace(a.reason.String())}
		default:
			a.reason.key(k)
		}
		return nil
	}
	switch k.String() {
	case "y":
		return host.Verdict{Answer: host.AllowOnce}
	case "c":
		return host.Verdict{Answer: host.AllowConversation}
	case "a":
		return host.Verdict{Answer: host.AllowAlways}
	case "n", "esc":
		return host.Verdict{Answer: host.Deny}
	case "r":
		a.reason = &editor{one: true}
	case "m":
		a.wider = &widened{approval: a}
	default:
		return unmeant{}
	}
	return nil
}

// text returns the line that the person writes; nil: none.
func (a *approval) text() *editor {
	if a.wider != nil {
		return a.wider.when
	}
	return a.reason
}

func (a *approval) paste(text string) {
	if e := a.text(); e != nil {
		e.insert(text)
	}
}

func (a *approval) writes() bool { return a.text() != nil }
