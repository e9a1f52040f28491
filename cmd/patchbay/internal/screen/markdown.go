package screen

import (
	"regexp"
	"strings"
	"unicode"
)

// Markdown is shown by a renderer of our own: the usual library costs 18 ms of each start
// of the program, and joins lines, which spoils text that is not Markdown after all. This
// one keeps lines, and every letter; it knows headings, lists, quotes, code, tables, rules,
// emphasis and links.

// Markdown renders a text of at most so many columns; 0: lines are not broken. Without
// colour the marks inside of lines stay, as nothing would take their place. The text has been
// made visible before.
func Markdown(text string, width int, color bool) string {
	m := &markdownText{lines: strings.Split(strings.TrimRight(text, "\n"), "\n"), width: width, color: color}
	for len(m.lines) > 0 {
		m.block()
	}
	return m.out.String()
}

type markdownText struct {
	lines []string // that are left
	width int
	color bool
	out   strings.Builder
	steps int // that were taken to find the ends of marks
}

// maxSteps bounds the work on a text whose marks have no ends; most texts take less than a
// thousandth of it. What comes after is printed with its marks.
const maxSteps = 200_000

var (
	mdFence    = regexp.MustCompile("^( *)(`{3,}|~{3,}) *([^`]*)$")
	mdHeading  = regexp.MustCompile(`^ {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$`)
	mdRule     = regexp.MustCompile(`^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$`)
	mdUnder    = regexp.MustCompile(`^ {0,3}(?:={3,}|-{3,}) *$`)
	mdItem     = regexp.MustCompile(`^( *)([-*+]|\d{1,9}[.)])( +)(\S.*)$`)
	mdQuote    = regexp.MustCompile(`^ {0,3}>( ?)(.*)$`)
	mdTableRow = regexp.MustCompile(`^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$`)
	mdStrong   = regexp.MustCompile(`\*\*[^*\s](?:[^*\n]*[^*\s])?\*\*`)
	mdLink     = regexp.MustCompile(`\[[^\]\n]+\]\([^)\s]+\)`)

	mdCode = regexp.MustCompile("`[^`\n]+`")
)

// IsMarkdown tells whether a text that says nothing of itself reads like Markdown: code in
// fences or a table is enough, of all else there must be two kinds. A single sign, a "#"
// or a "-", is in many texts that are none.
func IsMarkdown(text string) bool {
	lines := strings.Split(text, "\n")
	kinds := map[string]bool{}
	for i, l := range lines {
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		switch {
		case mdFence.MatchString(l), isTable(l, next):
			return true
		case mdHeading.MatchString(l) && (strings.TrimSpace(next) == "" || strings.HasPrefix(l, "##")):
			kinds["heading"] = true
		case mdItem.MatchString(l) && mdItem.MatchString(next):
			kinds["list"] = true
		}
	}
	for name, sign := range map[string]*regexp.Regexp{"strong": mdStrong, "link": mdLink, "code": mdCode} {
		if sign.MatchString(text) {
			kinds[name] = true
		}
	}
	return len(kinds) >= 2
}

// isTable tells whether a line is the head of a table: the line below it is of dashes.
func isTable(line, next string) bool {
	return strings.Contains(line, "|") && strings.Count(next, "|") <= maxCells && strings.Contains(next, "|") && mdTableRow.MatchString(next)
}

// next takes a line off.
func (m *markdownText) next() string {
	l := m.lines[0]
	m.lines = m.lines[1:]
	return l
}

func (m *markdownText) print(s string) {
	m.out.WriteString(strings.TrimRight(s, " "))
	m.out.WriteByte('\n')
}

// block renders what begins at the first line that is left.
func (m *markdownText) block() {
	l := m.next()
	following := ""
	if len(m.lines) > 0 {
		following = m.lines[0]
	}
	if f := mdFence.FindStringSubmatch(l); f != nil {
		m.code(f[1], f[2], f[3])
		return
	}
	switch {
	case isTable(l, following):
		m.table(l)
	case mdRule.MatchString(l):
		m.print(Paint(strings.Repeat("─", m.columns(40)), "2", m.color))
	case strings.TrimSpace(l) != "" && !mdItem.MatchString(l) && mdUnder.MatchString(following):
		level := "##"
		if strings.Contains(m.next(), "=") {
			level = "#"
		}
		m.heading(level, strings.TrimSpace(l))
	case mdHeading.MatchString(l):
		h := mdHeading.FindStringSubmatch(l)
		m.heading(h[1], h[2])
	case mdItem.MatchString(l):
		i := mdItem.FindStringSubmatch(l)
		mark := i[2]
		if strings.Contains("-*+", mark) {
			mark = "•"
		}
		indent := i[1] + strings.Repeat(" ", Columns(mark+i[3]))
		m.wrapped(m.joined(i[4], indent), i[1]+mark+i[3], indent, "")
	case mdQuote.MatchString(l):
		bar := Paint("│ ", "2", m.color)
		m.wrapped(mdQuote.FindStringSubmatch(l)[2], bar, bar, "3")
	default:
		body := strings.TrimLeft(l, " ")
		indent := l[:len(l)-len(body)]
		m.wrapped(m.joined(body, indent), indent, indent, "")
	}
}

// joined adds to a line that has to be broken those that go on with its paragraph, unless it
// ends on purpose: a text that was broken for a wider screen would become ragged.
func (m *markdownText) joined(text, indent string) string {
	if m.width == 0 || Columns(indent)+Columns(text) <= m.width {
		return text
	}
	for len(m.lines) > 0 && !strings.HasSuffix(text, "  ") && !strings.HasSuffix(text, `\`) && m.goesOn(indent) {
		text += " " + strings.TrimLeft(m.next(), " ")
	}
	return text
}

// goesOn tells whether the first line that is left is the text of the paragraph before it.
func (m *markdownText) goesOn(indent string) bool {
	l, following := m.lines[0], ""
	if len(m.lines) > 1 {
		following = m.lines[1]
	}
	body := strings.TrimLeft(l, " ")
	if body == "" || len(l)-len(body) > len(indent)+3 || len(l) > 1000 {
		return false
	}
	for _, sign := range []*regexp.Regexp{mdFence, mdHeading, mdRule, mdUnder, mdItem, mdQuote} {
		if sign.MatchString(l) {
			return false
		}
	}
	return !isTable(l, following) && !mdUnder.MatchString(following)
}

// columns is a width that fits, and is at most so many.
func (m *markdownText) columns(most int) int {
	if m.width > 0 {
		return min(m.width, most)
	}
	return most
}

func (m *markdownText) heading(marks, text string) {
	style := "1"
	switch {
	case !m.color:
		text = marks + " " + text
	case marks == "#":
		style = "1;4"
	}
	m.wrapped(text, "", "", style)
}

// code prints what is in a fence, as it is.
func (m *markdownText) code(indent, fence, language string) {
	if language = strings.TrimSpace(language); language != "" {
		m.print(indent + Paint("  "+language, "2", m.color))
	}
	for len(m.lines) > 0 {
		l := m.next()
		if end := strings.TrimSpace(l); strings.HasPrefix(end, fence) && strings.Trim(end, fence[:1]) == "" {
			return
		}
		m.print(indent + "  " + Paint(strings.TrimPrefix(l, indent), "36", m.color))
	}
}

// wrapped prints a paragraph, its first line behind first and the others behind rest.
func (m *markdownText) wrapped(text, first, rest, style string) {
	room := 0
	if m.width > 0 {
		room = max(10, m.width-Columns(Unpainted(rest)))
	}
	for i, l := range m.wrap(m.inline(text, style), room) {
		if i == 0 {
			m.print(first + l)
		} else {
			m.print(rest + l)
		}
	}
}

// span is a part of a line in one style.
type span struct{ text, style string }

// wrap breaks spans into painted lines of at most so many columns, or of one longer word; 0:
// into one line.
func (m *markdownText) wrap(spans []span, width int) []string {
	var lines []string
	var line []span
	used, begun := 0, false
	for _, word := range wordsOf(spans) {
		n := 0
		for _, s := range word {
			n += Columns(s.text)
		}
		switch {
		case !begun:
		case width > 0 && used+1+n > width:
			lines = append(lines, m.painted(line))
			line, used = nil, 0
		default:
			// A space within a style has it too: underlines go through.
			style := ""
			if len(line) > 0 && len(word) > 0 && line[len(line)-1].style == word[0].style {
				style = word[0].style
			}
			line = append(line, span{" ", style})
			used++
		}
		line = append(line, word...)
		used += n
		begun = true
	}
	return append(lines, m.painted(line))
}

// painted is a line with its styles.
func (m *markdownText) painted(line []span) string {
	var out strings.Builder
	for i := 0; i < len(line); {
		var text strings.Builder
		style := line[i].style
		for ; i < len(line) && line[i].style == style; i++ {
			text.WriteString(line[i].text)
		}
		out.WriteString(Paint(text.String(), style, m.color))
	}
	return out.String()
}

// wordsOf takes spans apart at single spaces.
func wordsOf(spans []span) [][]span {
	words := [][]span{nil}
	for _, s := range spans {
		for i, part := range strings.Split(s.text, " ") {
			if i > 0 {
				words = append(words, nil)
			}
			if part != "" {
				words[len(words)-1] = append(words[len(words)-1], span{part, s.style})
			}
		}
	}
	return words
}

// sgr is how paint colours.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

func Unpainted(s string) string { return sgr.ReplaceAllString(s, "") }

// inline takes the marks inside of a line away and styles what they mark.
func (m *markdownText) inline(s, style string) []span {
	const most = 8 << 10 // a longer line is not of a text that somebody wrote
	if !m.color || len(s) > most || m.steps > maxSteps {
		return []span{{s, style}}
	}
	var out []span
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			out = append(out, span{text.String(), style})
			text.Reset()
		}
	}
	add := func(inner []span) {
		flush()
		out = append(out, inner...)
	}
	for i := 0; i < len(s); {
		rest := s[i:]
		if rest[0] == '\\' && len(rest) > 1 && strings.IndexByte("\\`*_{}[]()#+-.!~|>", rest[1]) >= 0 {
			text.WriteByte(rest[1])
			i += 2
			continue
		}
		if n, inner := m.marked(s, i, style); n > 0 {
			add(inner)
			i += n
			continue
		}
		text.WriteByte(s[i])
		i++
	}
	flush()
	return out
}

// marked reads what begins with a mark at s[i], and tells how long it is; 0: it is none.
func (m *markdownText) marked(s string, i int, style string) (int, []span) {
	rest := s[i:]
	switch rest[0] {
	case '`':
		fence := rest[:len(rest)-len(strings.TrimLeft(rest, "`"))]
		if body, _, ok := strings.Cut(rest[len(fence):], fence); ok && body != "" && len(fence) < 3 {
			return len(body) + 2*len(fence), []span{{body, combined(style, "36")}}
		}
	case '[', '!':
		at := 0
		if rest[0] == '!' {
			at = 1
		}
		label, target, ok := m.link(rest[at:])
		if !ok {
			break
		}
		spans := []span{{label, combined(style, "4")}}
		if at == 1 {
			spans = append([]span{{"image: ", style}}, spans...)
		}
		if target != label {
			spans = append(spans, span{" (" + target + ")", combined(style, "2")})
		} // what a link leads to is always to be seen
		return at + len("[](") + len(label) + len(target) + len(")"), spans
	case '*', '_', '~':
		for _, mark := range [...]struct{ mark, style string }{{"**", "1"}, {"__", "1"}, {"~~", "9"}, {"*", "3"}, {"_", "3"}} {
			if n := m.emphasis(s, i, mark.mark); n > 0 {
				inner := s[i+len(mark.mark) : i+n-len(mark.mark)]
				return n, m.inline(inner, combined(style, mark.style))
			}
		}
	}
	return 0, nil
}

// link reads [label](target).
func (m *markdownText) link(s string) (label, target string, ok bool) {
	m.steps++
	if s == "" || s[0] != '[' {
		return "", "", false
	}
	label, rest, ok := strings.Cut(s[1:], "](")
	if !ok || label == "" || strings.ContainsAny(label, "[]") {
		return "", "", false
	}
	target, _, ok = strings.Cut(rest, ")")
	return label, target, ok && target != "" && !strings.ContainsAny(target, " \t")
}

// combined adds a style to one.
func combined(style, more string) string {
	if style == "" {
		return more
	}
	return style + ";" + more
}

// emphasis tells how long what mark encloses is at s[i], with the marks; 0: it encloses
// nothing. The marks touch a word inside and none outside: 2*3*4 and snake_case_names are none.
func (m *markdownText) emphasis(s string, i int, mark string) int {
	rest := s[i:]
	if !strings.HasPrefix(rest, mark) || i > 0 && wordByte(s[i-1]) {
		return 0
	}
	body := rest[len(mark):]
	if body == "" || body[0] == ' ' || body[0] == mark[0] {
		return 0
	}
	for from := 0; ; {
		m.steps++
		at := strings.Index(body[from:], mark)
		if at < 0 || m.steps > maxSteps {
			return 0
		}
		at += from
		end := at + len(mark)
		if body[at-1] != ' ' && body[at-1] != '\\' && (end == len(body) || !wordByte(body[end]) && body[end] != mark[0]) {
			return len(mark) + end
		}
		from = at + 1
		for from < len(body) && body[from] == mark[0] { // a longer run is another mark
			from++
		}
		if from >= len(body) {
			return 0
		}
	}
}

// wordByte tells whether a byte belongs to a word; all bytes of other letters do.
func wordByte(b byte) bool { return b >= 0x80 || unicode.IsLetter(rune(b)) || unicode.IsDigit(rune(b)) }
