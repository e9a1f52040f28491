package fetch

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// style is a set of text styles.
type style uint8

const (
	bold style = 1 << iota
	italic
	struck
	code
)

// marks are in the order in which styles nest, outermost first. Code is separate, because it cannot
// contain marks.
var marks = []struct {
	style style
	mark  string
}{{bold, "**"}, {italic, "_"}, {struck, "~~"}}

// styleOf is the style of an element, 0 for none.
func styleOf(element string) style {
	switch element {
	case "b", "strong":
		return bold
	case "i", "em", "cite", "dfn", "var":
		return italic
	case "s", "del", "strike":
		return struck
	case "code", "kbd", "samp", "tt":
		return code
	}
	return 0
}

// line is an unfinished paragraph: text with white space collapsed and line breaks as and its
// styles.
type line struct {
	text  []byte
	spans []span
	extra int // the accounted size of the spans, in bytes

	opened [4]int // number of open elements of each style
	href   string // of the open link, or "" if there is none
}

// span is a piece of the text with one style.
type span struct {
	end   int // offset in the text
	style style
	href  string
	src   string // of a picture, if the text is its alternative text
	alone bool   // a picture: not to be joined with a neighbour
}

func (l *line) open(s style) { l.opened[index(s)]++ }

func (l *line) close(s style) {
	if i := index(s); l.opened[i] > 0 {
		l.opened[i]--
	}
}

func index(s style) int {
	for i := range 4 {
		if s == 1<<i {
			return i
		}
	}
	panic("one style expected")
}

func (l *line) link(href string) { l.href = href }

// add appends text of HTML.
func (l *line) add(b []byte) {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		switch {
		case r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\f' || r == '\u00a0':
			if n := len(l.text); n > 0 && l.text[n-1] != ' ' && l.text[n-1] != '\n' {
				l.text = append(l.text, ' ')
			}
		case r == '\u00ad' || r == '\u200b': // an optional hyphenation point
		default:
			l.text = append(l.text, b[:size]...)
		}
		b = b[size:]
	}
	l.mark("", false)
}

// lineBreak begins a new line in the paragraph. It writes at most one empty line.
func (l *line) lineBreak() {
	text := strings.TrimRight(string(l.text[max(0, len(l.text)-3):]), " ")
	if len(l.text) == 0 || strings.HasSuffix(text, "\n\n") {
		return
	}
	l.text = append(l.text, '\n')
	l.mark("", false)
}

// image appends a picture.
func (l *line) image(alt, src string) {
	l.text = append(l.text, alt...)
	l.mark(src, true)
}

// dropSign removes the text from an offset on if it has no words: the ¶ or § with which a heading
// links to itself.
func (l *line) dropSign(from int) {
	if from > len(l.text) || bytes.ContainsFunc(l.text[from:], wordRune) {
		return
	}
	l.text = l.text[:from]
	for n := len(l.spans); n > 0 && l.spans[n-1].end > from; n-- {
		if n > 1 && l.spans[n-2].end >= from {
			l.spans = l.spans[:n-1]
		} else {
			l.spans[n-1].end = from // it began before
		}
	}
}

// mark sets the style of the text since the last span.
func (l *line) mark(src string, alone bool) {
	begin, n := 0, len(l.spans)
	if n > 0 {
		begin = l.spans[n-1].end
	}
	if len(l.text) == begin {
		return
	}
	s := span{end: len(l.text), href: l.href, src: src, alone: alone}
	for i, opened := range l.opened {
		if opened > 0 {
			s.style |= 1 << i
		}
	}
	if n > 0 && !alone && !l.spans[n-1].alone && l.spans[n-1].style == s.style && l.spans[n-1].href == s.href {
		l.spans[n-1].end = s.end
		return
	}
	l.spans = append(l.spans, s)
	l.extra += spanCost + len(s.href) + len(s.src)
}

// reset closes the open styles. The end of a cell does that.
func (l *line) reset() { l.opened, l.href = [4]int{}, "" }

// flush returns the paragraph and begins another. Open styles stay open.
func (l *line) flush(plain, cell bool) string {
	defer func() { l.text, l.spans, l.extra = l.text[:0], l.spans[:0], 0 }()
	if plain {
		return tidy(string(l.text))
	}
	w := writer{cell: cell}
	begin := 0
	for _, s := range l.spans {
		w.span(string(l.text[begin:s.end]), s)
		begin = s.end
	}
	w.set(span{})
	return w.String()
}

// tidy trims white space at the ends of lines, and empty lines at both ends of the text.
func tidy(text string) string {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "\n") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return strings.Join(lines, "\n")
}

// writer writes spans as Markdown.
type writer struct {
	strings.Builder
	cell    bool   // in a cell of a table
	now     span   // the style at the end of the text
	pending string // white space that waits for the next word, " " or line breaks
}

// span writes text with the marks that begin and end around it. Marks are next to words, with white
// space outside.
func (w *writer) span(text string, s span) {
	for text != "" {
		n := strings.IndexAny(text, " \n")
		switch {
		case n == 0 && text[0] == '\n':
			w.pending = strings.TrimRight(w.pending, " ") + "\n"
			text = text[1:]
		case n == 0:
			if w.pending == "" {
				w.pending = " "
			}
			text = text[1:]
		default:
			if s.style&code != 0 || s.alone { // never split
				n = len(strings.TrimRight(text, " \n"))
			} else if n < 0 {
				n = len(text)
			}
			w.set(s)
			w.space()
			w.begin(s)
			w.word(text[:n], s)
			text = text[n:]
		}
	}
}

// set ends the marks that do not continue in the next span, or that would enclose marks beginning
// there.
func (w *writer) set(next span) {
	outermost := len(marks)
	for i := range marks {
		now, then := w.now.style&marks[i].style != 0, next.style&marks[i].style != 0
		if now != then || now && next.href != w.now.href {
			outermost = i
			break
		}
	}
	w.end(outermost)
	if w.now.href != next.href && w.now.href != "" {
		w.WriteString("](" + w.now.href + ")")
		w.now.href = ""
	}
}

// end ends all marks from the i-th inward.
func (w *writer) end(i int) {
	for j := len(marks) - 1; j >= i; j-- {
		if w.now.style&marks[j].style != 0 {
			w.WriteString(marks[j].mark)
			w.now.style &^= marks[j].style
		}
	}
}

// space writes the pending white space, unless the output is empty.
func (w *writer) space() {
	if w.Len() > 0 {
		if w.pending == "\n" {
			w.WriteString("  ") // two spaces make a line break
		}
		w.WriteString(w.pending)
	}
	w.pending = ""
}

// begin begins the new marks of a span. Marks are inside a link, in their order.
func (w *writer) begin(s span) {
	if s.href != "" && w.now.href == "" {
		w.WriteByte('[')
		w.now.href = s.href
	}
	for i := range marks {
		if s.style&marks[i].style != 0 && w.now.style&marks[i].style == 0 {
			w.WriteString(marks[i].mark)
			w.now.style |= marks[i].style
		}
	}
}

// word writes text without white space around it.
func (w *writer) word(text string, s span) {
	switch {
	case s.alone && s.src == "":
		w.escape(text)
	case s.alone:
		w.WriteString("![")
		w.escape(text)
		w.WriteString("](" + s.src + ")")
	case s.style&code != 0:
		fence := strings.Repeat("`", longestRun(text, '`')+1)
		text = strings.ReplaceAll(text, "\n", " ")
		if w.cell {
			text = strings.ReplaceAll(text, "|", `\|`)
		}
		if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
			text = " " + text + " "
		}
		w.WriteString(fence + text + fence)
	default:
		w.escape(text)
	}
}

// escape writes text so that no part of it is read as a mark, with as few backslashes as possible,
// because they make the source harder to read.
func (w *writer) escape(text string) {
	before, _ := utf8.DecodeLastRuneInString(w.tail())
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		after, _ := utf8.DecodeRuneInString(text)
		switch r {
		case '\\', '`', '*':
			w.WriteByte('\\')
		case '_':
			if !wordRune(before) || !wordRune(after) { // snake_case is not emphasis
				w.WriteByte('\\')
			}
		case '~':
			if after == '~' || before == '~' {
				w.WriteByte('\\')
			}
		case '[', ']':
			if w.now.href != "" || r == ']' && (after == '(' || after == ':' || after == '[') {
				w.WriteByte('\\')
			}
		case '<':
			if unicode.IsLetter(after) || after == '/' || after == '!' || after == '?' {
				w.WriteByte('\\')
			}
		case '|':
			if w.cell {
				w.WriteByte('\\')
			}
		}
		w.WriteRune(r)
		before = r
	}
}

// tail is the end of the written text.
func (w *writer) tail() string {
	s := w.String()
	return s[max(0, len(s)-utf8.UTFMax):]
}

func wordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// guardLine escapes the beginning of a paragraph that would be read as a heading, a list, a
// quotation or a rule.
func guardLine(text string) string {
	if text == "" {
		return ""
	}
	word, _, _ := strings.Cut(text, " ")
	word, _, _ = strings.Cut(word, "\n")
	switch text[0] {
	case '#':
		if strings.Trim(word, "#") == "" {
			return `\` + text
		}
	case '>':
		return `\` + text
	case '+':
		if word == "+" {
			return `\` + text
		}
	case '-', '=':
		if strings.Trim(word, word[:1]) == "" {
			return `\` + text
		}
	}
	digits := strings.TrimLeft(text, "0123456789")
	if n := len(text) - len(digits); n > 0 && n < 10 && len(word) == n+1 && (digits[0] == '.' || digits[0] == ')') {
		return text[:n] + `\` + digits
	}
	return text
}

// longestRun is the length of the longest run of a byte.
func longestRun(s string, b byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != b {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
