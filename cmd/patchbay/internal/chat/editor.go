package chat

import (
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// editor is a text that a person edits, of one or several lines. The zero value is empty.
type editor struct {
	text []string // units of cursor movement: a letter with its combining characters, or "\n"
	at   int      // the cursor is before text[at]
	one  bool     // a single line: a line break becomes a space
}

// maxInput bounds the text, in letters.
const maxInput = 1 << 20

func (e *editor) String() string { return strings.Join(e.text, "") }

func (e *editor) empty() bool { return len(e.text) == 0 }

// set replaces the text, and moves the cursor to its end.
func (e *editor) set(s string) {
	e.text, e.at = nil, 0
	e.insert(s)
}

// insert inserts text at the cursor, without control characters.
func (e *editor) insert(s string) (fits bool) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	if e.one {
		s = strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", " ")
	}
	s = strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	// Typed characters may combine with the letters beside them, but no others: a long text is not split again.
	from, to := max(0, e.at-1), min(e.at+1, len(e.text))
	before := strings.Join(e.text[from:e.at], "") + s
	letters := screen.Letters(before + strings.Join(e.text[e.at:to], ""))
	if from+len(letters)+len(e.text)-to > maxInput {
		return false
	}
	if len(e.text) == 0 {
		e.text = letters
	} else {
		e.text = slices.Replace(e.text, from, to, letters...)
	}
	e.at = from
	for size := 0; size < len(before); e.at++ {
		size += len(e.text[e.at])
	}
	return true
}

// delete removes text[from:to], and moves the cursor there.
func (e *editor) delete(from, to int) {
	from, to = max(0, from), min(to, len(e.text))
	if from < to {
		e.text = slices.Delete(e.text, from, to)
	}
	e.at = min(from, len(e.text))
}

// key handles a key, and reports whether it had a meaning.
func (e *editor) key(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "left", "ctrl+b":
		e.at = max(0, e.at-1)
	case "right", "ctrl+f":
		e.at = min(len(e.text), e.at+1)
	case "ctrl+left", "alt+left", "alt+b":
		e.at = e.wordBefore()
	case "ctrl+right", "alt+right", "alt+f":
		e.at = e.wordAfter()
	case "home", "ctrl+a":
		e.at = e.lineStart()
	case "end", "ctrl+e":
		e.at = e.lineEnd()
	case "ctrl+home":
		e.at = 0
	case "ctrl+end":
		e.at = len(e.text)
	case "backspace", "ctrl+h", "shift+backspace":
		if e.at > 0 {
			e.delete(e.at-1, e.at)
		}
	case "delete", "ctrl+d":
		e.delete(e.at, e.at+1)
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.delete(e.wordBefore(), e.at)
	case "alt+d", "ctrl+delete":
		at := e.at
		e.delete(at, e.wordAfter())
	case "ctrl+u":
		e.delete(e.lineStart(), e.at)
	case "ctrl+k":
		at, end := e.at, e.lineEnd()
		if at == end {
			end++ // the line break
		}
		e.delete(at, end)
	case "ctrl+j", "alt+enter", "shift+enter", "ctrl+enter":
		if e.one {
			return false
		}
		e.insert("\n")
	default:
		if k.Text == "" || k.Mod&(tea.ModCtrl|tea.ModAlt) != 0 {
			return false
		}
		e.insert(k.Text)
	}
	return true
}

func (e *editor) lineStart() int {
	at := e.at
	for at > 0 && e.text[at-1] != "\n" {
		at--
	}
	return at
}

func (e *editor) lineEnd() int {
	at := e.at
	for at < len(e.text) && e.text[at] != "\n" {
		at++
	}
	return at
}

func wordLetter(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

func (e *editor) wordBefore() int {
	at := e.at
	for at > 0 && !wordLetter(e.text[at-1]) {
		at--
	}
	for at > 0 && wordLetter(e.text[at-1]) {
		at--
	}
	return at
}

func (e *editor) wordAfter() int {
	at := e.at
	for at < len(e.text) && !wordLetter(e.text[at]) {
		at++
	}
	for at < len(e.text) && wordLetter(e.text[at]) {
		at++
	}
	return at
}

// row is a displayed line: the letters from, to.
type row struct{ from, to int }

// rows wraps the text into lines of at most width columns.
func (e *editor) rows(width int) []row {
	width = max(width, 2)
	var rows []row
	from, used := 0, 0
	for i, l := range e.text {
		if l == "\n" {
			rows = append(rows, row{from, i})
			from, used = i+1, 0
			continue
		}
		n := screen.Columns(shownLetter(l))
		if used+n > width {
			rows = append(rows, row{from, i})
			from, used = i, 0
		}
		used += n
	}
	rows = append(rows, row{from, len(e.text)})
	if used >= width && e.at == len(e.text) { // the cursor needs a column after the text
		rows = append(rows, row{len(e.text), len(e.text)})
	}
	return rows
}

// cursorRow returns the row of the cursor.
func (e *editor) cursorRow(rows []row) int {
	at := 0
	for i, r := range rows {
		if r.from <= e.at {
			at = i
		}
	}
	return at
}

// vertical moves the cursor up (-1) or down (1) a row, and reports whether there was one.
func (e *editor) vertical(by, width int) bool {
	rows := e.rows(width)
	y := e.cursorRow(rows)
	if y+by < 0 || y+by >= len(rows) {
		return false
	}
	x := e.columns(rows[y].from, e.at)
	to := rows[y+by]
	e.at = to.from
	for e.at < to.to && e.columns(to.from, e.at) < x {
		e.at++
	}
	return true
}

func (e *editor) columns(from, to int) int {
	n := 0
	for _, l := range e.text[from:to] {
		n += screen.Columns(shownLetter(l))
	}
	return n
}

// shownLetter returns a letter in a form that is safe for the terminal.
func shownLetter(l string) string {
	if l == "\t" {
		return "    "
	}
	return screen.Visible(l)
}

// view returns at most most rows around the cursor, and the position of the cursor in them.
func (e *editor) view(width, most int) (lines []string, x, y int) {
	rows := e.rows(width)
	y = e.cursorRow(rows)
	x = min(e.columns(rows[y].from, e.at), max(width, 2))
	most = max(1, most)
	first := max(0, min(y-most/2, len(rows)-most))
	for _, r := range rows[first:min(first+most, len(rows))] {
		var line strings.Builder
		for _, l := range e.text[r.from:r.to] {
			line.WriteString(shownLetter(l))
		}
		lines = append(lines, line.String())
	}
	return lines, x, y - first
}
