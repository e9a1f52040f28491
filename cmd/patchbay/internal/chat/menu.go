package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/attach"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// menu offers completions of the input. Commands are offered at once; completions from servers
// follow when they arrive.
type menu struct {
	items []item
	at    int  // the selected item; -1: none
	from  int  // where the replaced text begins in the input
	asked bool // the person has asked for it, and there is nothing to offer yet

	run    int // counts edits, so that late completions are dropped
	cancel context.CancelFunc
}

type item struct {
	text string // replaces the completed text
	says string
}

func (m *menu) close() {
	if m.cancel != nil {
		m.cancel()
	}
	*m = menu{run: m.run + 1}
}

// follow offers completions of the text up to the cursor. If asked is set, the person pressed tab.
func (m *menu) follow(u *ui, asked bool) {
	m.close()
	m.at, m.asked = -1, asked
	text := strings.Join(u.input.text[:u.input.at], "")
	line, word := "", text
	if i := strings.LastIndexAny(text, " \n"); i >= 0 {
		line, word = text[:i+1], text[i+1:]
	}
	var late func(context.Context) (from int, items []item)
	switch {
	case line == "" && strings.HasPrefix(word, "/"):
		for _, c := range commands {
			if name := "/" + c.name; strings.HasPrefix(name, word) {
				m.items = append(m.items, item{name, c.says})
			}
		}
		late = u.c.mentions(text)
	case isCommand(line):
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "/"), " ")
		c := commandNamed(name)
		if c == nil || c.offers == nil {
			return
		}
		words := strings.Fields(rest)
		late = func(ctx context.Context) (int, []item) {
			return len(line), fitting(c.offers(ctx, u.c, words), word)
		}
	case strings.ContainsAny(text, "@#") || strings.HasPrefix(strings.TrimSpace(text), "/"):
		late = u.c.mentions(text)
	default:
		return
	}
	m.settle(u, text, len(line), m.items)
	ctx, cancel := context.WithCancel(u.c.ctx)
	m.cancel = cancel
	run, now := m.run, m.items
	u.c.start(func(context.Context) {
		defer cancel()
		from, found := late(ctx)
		u.c.mail.put(func(u *ui) {
			if u.menu.run == run && len(found) > 0 {
				u.menu.settle(u, text, from, slices.Concat(now, found))
			}
		})
	})
}

// mentions asks the host for completions of a text.
func (c *Chat) mentions(text string) func(context.Context) (int, []item) {
	return func(ctx context.Context) (int, []item) {
		begin := strings.LastIndexAny(text, " \n") + 1
		if path, ok := strings.CutPrefix(text[begin:], "@"); ok && !c.o.Lines {
			var items []item
			for _, p := range attach.Complete(path) {
				items = append(items, item{"@" + p, ""})
			}
			if items != nil {
				return begin, items
			}
		}
		found := c.h.Complete(ctx, text, len(text))
		var items []item
		for _, i := range found.Items {
			items = append(items, item{i.Text, i.About})
		}
		return found.From, items
	}
}

// attached returns the local files that a message mentions, and says what is attached. A message that
// may come from another program has none: the files would be sent to the model unseen.
func (c *Chat) attached(ctx context.Context, text string, m model.Model, pasted []string) ([]model.Part, error) {
	if c.o.Lines {
		return nil, nil
	}
	var servers []string
	for _, s := range c.h.Servers() {
		servers = append(servers, s.Name)
	}
	parts, notes, err := attach.Files(ctx, &attach.Message{Text: text, Servers: servers, Model: m.Info(), Pasted: pasted})
	for _, note := range notes {
		c.mail.put(func(u *ui) { u.note("%s", note) })
	}
	return parts, err
}

// fitting returns the items that match a word, those with it as a prefix first.
func fitting(items []item, word string) []item {
	word = strings.ToLower(word)
	var first, rest []item
	for _, i := range items {
		switch text := strings.ToLower(i.text); {
		case strings.HasPrefix(text, word):
			first = append(first, i)
		case strings.Contains(text, word):
			rest = append(rest, i)
		}
	}
	return append(first, rest...)
}

// settle shows the items that can replace text[from:]. If the person asked for them with a key, it
// inserts the first.
func (m *menu) settle(u *ui, text string, from int, items []item) {
	m.from = len(screen.Letters(text[:from]))
	m.items = slices.DeleteFunc(items, func(i item) bool { return i.text == text[from:] })
	m.at = min(m.at, len(m.items)-1)
	if m.asked && len(m.items) > 0 {
		m.accept(u, 0)
	}
}

// accept inserts an item.
func (m *menu) accept(u *ui, at int) {
	text := m.items[at].text
	u.input.delete(m.from, u.input.at)
	if !strings.HasSuffix(text, "=") && !strings.HasSuffix(text, ":") && !strings.HasSuffix(text, "/") {
		text += " "
	}
	u.input.insert(text)
	m.follow(u, false)
}

// key handles a key of an open menu, and reports whether it had a meaning.
func (m *menu) key(k tea.KeyPressMsg, u *ui) bool {
	if len(m.items) == 0 {
		return false
	}
	switch k.String() {
	case "down", "ctrl+n":
		m.at = (m.at + 1) % len(m.items)
	case "up", "ctrl+p":
		m.at = (max(m.at, 0) + len(m.items) - 1) % len(m.items)
	case "tab":
		m.accept(u, max(m.at, 0))
	case "enter":
		if m.at < 0 {
			return false
		}
		m.accept(u, m.at)
	case "esc":
		m.close()
	default:
		return false
	}
	return true
}

// view shows the items around the selected one.
func (m *menu) view(l *look, most int) []string {
	if len(m.items) == 0 || most < 1 {
		return nil
	}
	first := max(0, min(m.at-most/2, len(m.items)-most))
	shown := m.items[first:min(first+most, len(m.items))]
	wide := 0
	for _, it := range shown {
		wide = max(wide, screen.Columns(screen.OneLine(it.text)))
	}
	if slices.ContainsFunc(shown, func(it item) bool { return it.says != "" }) {
		wide = min(wide, max(10, 2*l.width/3))
	}
	wide = min(wide, max(10, l.width-14)) // beside it is how many more there are
	var out []string
	for i, it := range shown {
		mark := "  "
		if first+i == m.at {
			mark = l.paint("› ", cyan)
		}
		line := mark + screen.Pad(screen.Cut(screen.OneLine(it.text), wide), wide)
		rest := ""
		if n := len(m.items) - len(shown); n > 0 && i == len(shown)-1 {
			rest = fmt.Sprintf("  %d more", n)
		}
		if room := l.width - wide - 5 - len(rest); room > 8 {
			line += "  " + l.paint(screen.Cut(screen.OneLine(it.says), room), dim)
		}
		out = append(out, line+l.paint(rest, dim))
	}
	return out
}

func toolItems(ctx context.Context, c *Chat) []item {
	var out []item
	for _, t := range c.h.AllTools(ctx) {
		out = append(out, item{t.Server + "/" + t.Tool.Name, about(t.Tool)})
	}
	return out
}

func serverItems(c *Chat, says func(host.ServerStatus) string) []item {
	var out []item
	for _, s := range c.h.Servers() {
		out = append(out, item{s.Name, says(s)})
	}
	return out
}
