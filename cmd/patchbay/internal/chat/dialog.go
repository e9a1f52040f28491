package chat

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// dialog is a question to the person, in place of the input.
type dialog interface {
	// show returns the fixed lines above and below, and the scrollable lines between.
	show(l *look) sheet

	// key handles a key, and returns the answer once there is one; an error is an answer too. A key without
	// a meaning is unmeant.
	key(k tea.KeyPressMsg) (answer any)

	paste(text string)

	// writes reports whether the person is editing text, so that arrow keys move the cursor.
	writes() bool
}

// unmeant is returned for a key that means nothing in a dialog.
type unmeant struct{}

// sheet is the layout of a dialog. Its lines fit the width of the look.
type sheet struct {
	title string   // the question, of any width
	head  []string // required reading; without room for it, it scrolls with the body
	body  []string
	foot  []string // describes the keys; without room for it, keys do nothing

	cursor bool // there is a cursor: in the foot at y, or in the body, which scrolls to show it
	inBody bool
	x, y   int
	end    int // the body scrolls to show what is above this line too, if there is room
}

// question is a dialog, and the channel for its answer.
type question struct {
	server string
	call   string // the id of the call that waits for it; empty: none
	dialog dialog
	reply  chan any // capacity 1
	ctx    context.Context

	top  int  // the first visible line of the body
	page int  // the number of visible lines of the body
	tiny bool // the terminal cannot show it: keys do not answer it
	rung bool // the person was told that it waits, or has seen it
}

// withdrawn reports that the answer is no longer needed.
type withdrawn struct{ *question }

// scroll scrolls the body if the key is for that, and reports whether it was.
func (q *question) scroll(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "up":
		q.top--
	case "down":
		q.top++
	case "pgup", "ctrl+b":
		q.top -= max(1, q.page-1)
	case "pgdown", "ctrl+f":
		q.top += max(1, q.page-1)
	case "home":
		q.top = 0
	case "end":
		q.top = 1 << 30
	default:
		return false
	}
	q.top = max(0, q.top)
	return true
}

const bar = "┃ "

// view lays a dialog out in at most rows rows. The argument others is the number of questions
// behind it. Keys answer it only if armed is set.
func (q *question) view(l *look, rows, others int, armed bool) (lines []string, x, y int, cursor bool) {
	inner := *l
	inner.width = max(8, l.width-2)
	s := q.dialog.show(&inner)
	title := inner.wrapped(s.title, "", bold)
	var moved []string // into the body
	if len(title) > 2 {
		moved = append(title, "")
		title = screen.Fold(l.paint(screen.Cut(s.title, 2*inner.width-1), bold), inner.width)
	}
	least := min(2, len(moved)+len(s.head)+len(s.body)) // one line, and one that says that there are more
	if q.tiny = l.width < 12 || rows < len(title)+least+len(s.foot); q.tiny {
		s = sheet{foot: []string{l.paint("(the terminal is too small)", yellow)}}
		moved = nil
	} else if !armed {
		s.cursor = false
		clear(s.foot)
		s.foot[0] = l.paint("(keys work here in a moment)", dim)
	}
	room := rows - len(title) - len(s.foot)
	switch need := len(s.head) + min(3, len(moved)+len(s.body)); {
	case need > room:
		keep := min(len(s.head), max(0, room-3))
		moved = append(moved, s.head[keep:]...)
		s.head = s.head[:keep]
	case need < room && others > 0:
		title = append([]string{l.paint(fmt.Sprintf("%d more questions after this", others), dim)}, title...)
	}
	s.head = append(title, s.head...)
	s.body = append(moved, s.body...)
	if s.inBody {
		s.y += len(moved)
		s.end += len(moved)
	}
	room = max(1, rows-len(s.head)-len(s.foot))
	if len(s.body) > room {
		room = max(1, room-1) // for the line that says so
	}
	q.page = room
	if s.inBody {
		q.top = min(max(q.top, s.end-room), s.y)
		q.top = max(q.top, s.y-room+1)
	}
	q.top = max(0, min(q.top, len(s.body)-room))
	body := s.body
	if len(body) > room {
		rest := len(body) - q.top - room
		body = append(body[q.top:q.top+room:q.top+room], l.paint(fmt.Sprintf("↑ %d  ↓ %d more lines: arrows, PgUp, PgDn", q.top, rest), dim))
	}
	mark := l.paint(bar, yellow)
	for _, part := range [][]string{s.head, body, s.foot} {
		for _, line := range part {
			lines = append(lines, mark+line)
		}
	}
	y = s.y
	if s.inBody {
		y += len(s.head) - q.top
	} else {
		y += len(s.head) + len(body)
	}
	return lines[:min(len(lines), rows)], s.x + screen.Columns(bar), y, s.cursor
}

// keysLine shows the meaning of keys, wrapped if it is too long.
func (l *look) keysLine(pairs ...string) []string {
	var lines []string
	line, used := "", 0
	for i := 0; i+1 < len(pairs); i += 2 {
		n := screen.Columns(pairs[i]) + 1 + screen.Columns(pairs[i+1])
		if used > 0 && used+2+n > l.width {
			lines = append(lines, line)
			line, used = "", 0
		}
		if used > 0 {
			line += "  "
			used += 2
		}
		line += l.paint(pairs[i], bold) + " " + pairs[i+1]
		used += n
	}
	return append(lines, line)
}

// field returns the visible part of a single-line text, which has as much before the cursor as fits, and the column
// of the cursor in it. An ellipsis stands for what is cut off.
func (e *editor) field(width int) (line string, x int) {
	width = max(width, 4)
	room := width - 1 // for what is before the cursor
	if e.at < len(e.text) {
		room = width - 3 // the letter at the cursor, and an ellipsis
	}
	from, used := 0, e.columns(0, e.at)
	for from < e.at && used+min(from, 1) > room {
		used -= e.columns(from, from+1)
		from++
	}
	var b strings.Builder
	if from > 0 {
		b.WriteString("…")
		used++
	}
	x = used
	for i, l := range e.text[from:] {
		if i += from; i >= e.at {
			if used += e.columns(i, i+1); used+min(1, len(e.text)-1-i) > width {
				b.WriteString("…")
				break
			}
		}
		b.WriteString(shownLetter(l))
	}
	return b.String(), x
}
