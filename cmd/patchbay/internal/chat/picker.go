package chat

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// picker has the person choose one of several lines by words that it contains, in place of the input.
type picker struct {
	title string
	words editor
	all   []item
	found menu // of all, those that contain the words
	take  func(*ui, item)
	left  string // a note for a person who chooses nothing; empty: none
}

// pick opens a picker, and passes the chosen item to take.
func (u *ui) pick(title string, all []item, take func(*ui, item)) {
	u.menu.close()
	u.picker = &picker{title: title, words: editor{one: true}, all: all, take: take}
	u.picker.filter()
}

// filter finds the items that contain all words, in any case.
func (p *picker) filter() {
	words := strings.Fields(strings.ToLower(p.words.String()))
	p.found = menu{}
	for _, it := range p.all {
		text := strings.ToLower(it.text + " " + it.says)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			p.found.items = append(p.found.items, it)
		}
	}
}

func (p *picker) key(k tea.KeyPressMsg, u *ui) {
	n := len(p.found.items)
	switch k.String() {
	case "esc", "ctrl+g":
		u.closePicker()
	case "enter", "tab":
		if n > 0 {
			u.picker = nil
			p.take(u, p.found.items[p.found.at])
		}
	case "ctrl+r", "down", "ctrl+n":
		p.found.at = min(p.found.at+1, max(0, n-1))
	case "ctrl+s", "up", "ctrl+p":
		p.found.at = max(0, p.found.at-1)
	default:
		if before := p.words.String(); p.words.key(k) && p.words.String() != before {
			p.filter()
		}
	}
}

// closePicker closes the picker, without a choice.
func (u *ui) closePicker() {
	if left := u.picker.left; left != "" {
		u.note("%s", left)
	}
	u.picker = nil
}

func (p *picker) paste(text string) {
	p.words.insert(text)
	p.filter()
}

// show returns the line in place of the input, and the column of the cursor in it.
func (p *picker) show(l *look) (line string, x int) {
	title := p.title + ": "
	line, x = p.words.field(max(4, l.width-screen.Columns(title)-1))
	switch {
	case p.words.empty():
		line = l.paint(screen.Cut("(type words; enter takes, esc goes back)", max(4, l.width-screen.Columns(title)-1)), dim)
	case len(p.found.items) == 0 && screen.Columns(line) < l.width-screen.Columns(title)-12:
		line += l.paint("  (nothing)", dim)
	}
	return l.paint(title, cyan) + line, screen.Columns(title) + x
}

// searchHistory has the person choose an earlier input, the newest first.
func (u *ui) searchHistory() {
	var all []item
	seen := map[string]bool{}
	for _, text := range slices.Backward(u.history.said) {
		if !seen[text] {
			seen[text] = true
			all = append(all, item{text: text})
		}
	}
	if all == nil {
		u.say("no earlier messages")
		return
	}
	u.pick("search", all, func(u *ui, it item) { u.input.set(it.text) })
}

// choosePast has the person choose one of several conversations to continue.
func (u *ui) choosePast(list []Past) {
	var all []item
	for _, p := range list {
		all = append(all, item{p.ID, p.Updated.Local().Format("2006-01-02 15:04") + "  " + screen.OneLine(p.Title)})
	}
	u.pick("resume", all, func(u *ui, it item) {
		u.later(func(ctx context.Context) func(*ui) {
			show, _ := u.c.resumed(ctx, it.text) // which shows the error too
			return show
		})
	})
	u.picker.left = "no conversation was resumed"
}

// resumed loads a stored conversation. The function that it returns continues it, or shows the error.
func (c *Chat) resumed(ctx context.Context, id string) (show func(*ui), err error) {
	conv, err := c.o.Memory.Resume(ctx, c.h, id)
	return func(u *ui) {
		switch {
		case err != nil:
			u.note("%v", err)
		case u.turn != nil:
			u.note("cannot resume a conversation during a turn")
		default:
			conv.Mode = narrower(u.talk.Mode, conv.Mode)
			u.goOn(conv)
		}
	}, err
}
