package chat

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// menu offers what may be meant by the word that is being written.
type menu struct {
	items []item
	at    int // the item that is chosen; -1: none is yet
	from  int // where the word begins in the input
}

type item struct {
	text string // that takes the place of the word
	says string
}

const maxItems = 200

func (m *menu) close() { *m = menu{} }

func (m *menu) refresh(u *ui) {
	if len(m.items) > 0 || u.completable() {
		m.follow(u, false)
	}
}

// completable tells whether the word at the cursor is of a kind that can be completed.
func (u *ui) completable() bool {
	from, word := u.word()
	return word != "" && (strings.ContainsRune("@#", rune(word[0])) || from == 0 && word[0] == '/')
}

// word returns the word at the cursor, up to that.
func (u *ui) word() (from int, word string) {
	e := &u.input
	from = e.at
	for from > 0 && e.text[from-1] != " " && e.text[from-1] != "\n" {
		from--
	}
	return from, strings.Join(e.text[from:e.at], "")
}

// follow offers what fits the word at the cursor. Asked tells that the person wants it.
func (m *menu) follow(u *ui, asked bool) {
	from, word := u.word()
	line := strings.Join(u.input.text[:from], "")
	m.items, m.from, m.at = nil, from, -1
	if !u.completable() && !isCommand(line) {
		return
	}
	u.know()
	seen := map[string]bool{}
	for _, it := range u.offers(line, word) {
		if seen[it.text] || it.text == word && !asked || !matches(it.text, word) {
			continue
		}
		seen[it.text] = true
		if m.items = append(m.items, it); len(m.items) == maxItems {
			break
		}
	}
	// What begins with the word comes before what has it in it.
	slices.SortStableFunc(m.items, func(a, b item) int {
		x, y := strings.HasPrefix(a.text, word), strings.HasPrefix(b.text, word)
		switch {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
	if asked && len(m.items) > 0 {
		m.accept(u, 0)
	}
}

// matches tells whether a word may mean a text: what follows its sign is in it.
func matches(text, word string) bool {
	if word == "" {
		return true
	}
	if strings.ContainsRune("@#/", rune(word[0])) {
		if text[0] != word[0] {
			return false
		}
		text, word = text[1:], word[1:]
	}
	return strings.Contains(strings.ToLower(text), strings.ToLower(word))
}

// offers are what the word may become behind line.
func (u *ui) offers(line, word string) []item {
	var out []item
	switch {
	case strings.HasPrefix(word, "@"):
		for _, r := range u.known.resources {
			if !r.template {
				out = append(out, item{"@" + r.server + ":" + r.URI, orTitle(r.Title, r.Name)})
			}
		}
	case strings.HasPrefix(word, "#"):
		for _, t := range u.known.tools {
			out = append(out, item{"#" + t.Server + "/" + t.Tool.Name, about(t.Tool)})
		}
	case line == "" && strings.HasPrefix(word, "/"):
		for _, c := range commands {
			out = append(out, item{"/" + c.name, c.says})
		}
		for _, p := range u.known.prompts {
			out = append(out, item{"/" + p.server + ":" + p.Name, orTitle(p.Title, p.Description)})
		}
	default:
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "/"), " ")
		if c := commandNamed(name); c != nil && c.offers != nil {
			out = c.offers(u, strings.Fields(rest))
		}
	}
	return out
}

func orTitle(title, other string) string {
	if title != "" {
		return title
	}
	return other
}

// accept puts an item in the place of the word.
func (m *menu) accept(u *ui, at int) {
	it := m.items[at]
	u.input.delete(m.from, u.input.at)
	text := it.text
	if !strings.HasSuffix(text, "=") {
		text += " "
	}
	u.input.insert(text)
	m.close()
}

// key does what a key says to a menu that is open, and tells whether it did.
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

// view shows the items around the one that is chosen.
func (m *menu) view(l *look, most int) []string {
	if len(m.items) == 0 || most < 1 {
		return nil
	}
	first := max(0, min(m.at-most/2, len(m.items)-most))
	shown := m.items[first:min(first+most, len(m.items))]
	wide := 0
	for _, it := range shown {
		wide = max(wide, screen.Columns(it.text))
	}
	wide = min(wide, max(10, l.width/2))
	var out []string
	for i, it := range shown {
		mark := "  "
		if first+i == m.at {
			mark = l.paint("› ", cyan)
		}
		text := screen.Pad(screen.Cut(screen.OneLine(it.text), wide), wide)
		room := l.width - wide - 5
		says := ""
		if room > 8 {
			says = l.paint(screen.Cut(screen.OneLine(it.says), room), dim)
		}
		out = append(out, mark+text+"  "+says)
	}
	if rest := len(m.items) - len(shown); rest > 0 {
		out[len(out)-1] = screen.Fold(out[len(out)-1], max(1, l.width-12))[0] + l.paint(fmt.Sprintf("  %d more", rest), dim)
	}
	return out
}
