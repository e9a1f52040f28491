package chat

import (
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// widened is the part of an approval in which the person allows more than a tool, or less: first they choose what,
// then they see it and say for how long.
type widened struct {
	*approval
	when *editor // a condition, while it is written; nil: none

	chosen  *host.Verdict // nil: nothing is chosen
	tools   []*mcp.Tool   // that it allows
	problem string
}

// readOnly returns the tools of the server that it declares read-only.
func (w *widened) readOnly() []*mcp.Tool {
	return slices.DeleteFunc(slices.Clone(w.Tools), func(t *mcp.Tool) bool { return !readOnly(t) })
}

// readOnly reports whether a tool declares itself read-only.
func readOnly(t *mcp.Tool) bool {
	return t.Annotations != nil && t.Annotations.ReadOnly != nil && *t.Annotations.ReadOnly
}

// choose shows what a verdict would allow.
func (w *widened) choose(v host.Verdict) {
	tools, err := w.Covers(context.Background(), v)
	if err != nil {
		w.problem = err.Error()
		return
	}
	w.chosen, w.tools, w.problem = &v, tools, ""
}

func (w *widened) key(k tea.KeyPressMsg) any {
	switch key := k.String(); {
	case w.chosen != nil:
		v := *w.chosen
		switch key {
		case "c":
			v.Answer = host.AllowConversation
			return v
		case "a":
			v.Answer = host.AllowAlways
			return v
		case "esc":
			w.chosen = nil
		default:
			return unmeant{}
		}
	case w.when != nil:
		switch key {
		case "esc":
			w.when, w.problem = nil, ""
		case "enter":
			w.choose(host.Verdict{When: w.when.String()})
		default:
			w.problem = ""
			w.when.key(k)
		}
	case key == "i":
		w.when, w.problem = &editor{one: true}, ""
		w.when.set(allow.Suggest(w.Arguments))
	case key == "r" && w.ReadOnly:
		w.choose(host.Verdict{Tools: "*", When: allow.ReadOnly})
	case key == "s":
		w.choose(host.Verdict{Tools: "*"})
	case key == "esc":
		w.wider = nil
	default:
		return unmeant{}
	}
	return nil
}

func (w *widened) show(l *look) sheet {
	server := screen.OneLine(w.Server)
	name := server + "/" + screen.OneLine(w.Tool.Name)
	var s sheet
	if w.problem != "" {
		s.head = l.wrapped(screen.OneLine(w.problem), "", red)
	}
	switch {
	case w.chosen != nil:
		s.title = "May these tools of " + server + " be called without asking?"
		if w.chosen.Tools == "" {
			s.title = "May " + name + " be called without asking?"
		}
		if when := w.chosen.When; w.chosen.Tools == "" {
			s.head = append(s.head, l.wrapped("If "+screen.Visible(when), "", bold)...)
			s.head = append(s.head, l.wrapped("Arguments that the condition does not name may have any value.", "", yellow)...)
		}
		s.head = append(s.head, l.wrapped("As they are defined now: you are asked about a new or changed tool.", "", dim)...)
		for _, t := range w.tools {
			line := "  " + screen.OneLine(t.Name)
			if text := about(t); text != "" {
				line += ": " + text
			}
			s.body = append(s.body, screen.Cut(line, l.width), l.paint(screen.Cut("    "+claims(t.Annotations), l.width), dim))
		}
		s.foot = l.keysLine("c", "in this conversation", "a", "always", "esc", "back")
	case w.when != nil:
		s.title = "When may " + name + " be called without asking?"
		s.body = append(l.wrapped("A condition on the arguments, in CEL: == != < && || ! .startsWith(\"\") .matches(\"\")", "", dim), l.json(w.Arguments)...)
		line, x := w.when.field(l.width - 4)
		s.foot = append([]string{"If: " + line}, l.keysLine("enter", "checks it", "esc", "back")...)
		s.cursor, s.x = true, 4+x
	default:
		s.title = "What may be called without asking?"
		keys := []string{"i", name + ", if a condition on its arguments holds"}
		if w.ReadOnly {
			keys = append(keys, "r", fmt.Sprintf("the %s of %s that it declares read-only", screen.Quantity(len(w.readOnly()), "tool"), server))
		}
		keys = append(keys, "s", fmt.Sprintf("all %s of %s", screen.Quantity(len(w.Tools), "tool"), server))
		for i := 0; i < len(keys); i += 2 {
			s.body = append(s.body, l.paint(keys[i], bold)+" "+screen.Cut(keys[i+1], l.width-2))
		}
		s.foot = l.keysLine("esc", "back")
	}
	return s
}
