package screen

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/patchbay-dev/patchbay/internal/pattern"
)

// This renderer is our own, because the usual library adds 18 ms to each start of the program, and
// joins lines, which spoils text that is not Markdown after all. This one keeps lines and every
// letter; it supports headings, lists, quotes, code, tables, rules, emphasis and links.

// Markdown renders a text in at most width columns; 0: lines are not wrapped. Without colour,
// inline marks stay, because nothing would replace them. The text must have been made visible.
func Markdown(text string, width int, color bool) string {
	m := &markdownText{lines: strings.Split(strings.TrimRight(text, "\n"), "\n"), width: width, color: color}
	for len(m.lines) > 0 {
		m.block()
	}
	return m.out.String()
}

type markdownText struct {
	lines []string // not rendered yet
	width int
	color bool
	out   strings.Builder
	steps int // taken to find the ends of marks
}

// maxSteps bounds the work on a text whose marks do not end; most texts need less than a thousandth
// of it. The rest of the text is printed with its marks.
const maxSteps = 200_000

var (
	mdFence    = pattern.Lazy("^( *)(`{3,}|~{3,}) *([^`]*)$")
	mdHeading  = pattern.Lazy(`^ {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$`)
	mdRule     = pattern.Lazy(`^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$`)
	mdUnder    = pattern.Lazy(`^ {0,3}(?:={3,}|-{3,}) *$`)
	mdItem     = pattern.Lazy(`^( *)([-*+]|\d{1,9}[.)])( +)(\S.*)$`)
	mdQuote    = pattern.Lazy(`^ {0,3}>( ?)(.*)$`)
	mdTableRow = pattern.Lazy(`^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$`)
	mdStrong   = pattern.Lazy(`\*\*[^*\s](?:[^*\n]*[^*\s])?\*\*`)
	mdLink     = pattern.Lazy(`\[[^\]\n]+\]\([^)\s]+\)`)

	mdCode = pattern.Lazy("`[^`\n]+`")
)

// IsMarkdown reports whether a text of unknown type reads like Markdown: fenced code or a table is
// enough; of everything else there must be two kinds. A single "#" or "-" occurs in many other
// texts.
func IsMarkdown(text string) bool {
	lines := strings.Split(text, "\n")
	kinds := map[string]bool{}
	for i, l := range lines {
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		switch {
		case mdFence().MatchString(l), isTable(l, next):
			return true
		case mdHeading().MatchString(l) && (strings.TrimSpace(next) == "" || strings.HasPrefix(l, "##")):
			kinds["heading"] = true
		case mdItem().MatchString(l) && mdItem().MatchString(next):
			kinds["list"] = true
		}
	}
	for name, sign := range map[string]func() *regexp.Regexp{"strong": mdStrong, "link": mdLink, "code": mdCode} {
		if sign().MatchString(text) {
			kinds[name] = true
		}
	}
	return len(kinds) >= 2
}

// isTable reports whether a line is the head of a table: the next line consists of dashes.
func isTable(line, next string) bool {
	return strings.Contains(line, "|") && strings.Count(next, "|") <= maxCells && strings.Contains(next, "|") && mdTableRow().MatchString(next)
}

// next removes the first line and returns it.
func (m *markdownText) next() string {
	l := m.lines[0]
	m.lines = m.lines[1:]
	return l
}

func (m *markdownText) print(s string) {
	m.out.WriteString(strings.TrimRight(s, " "))
	m.out.WriteByte('\n')
}

// block renders the block at the first remaining line.
func (m *markdownText) block() {
	l := m.next()
	following := ""
	if len(m.lines) > 0 {
		following = m.lines[0]
	}
	if f := mdFence().FindStringSubmatch(l); f != nil {
		m.code(f[1], f[2], f[3])
		return
	}
	switch {
	case isTable(l, following):
		m.table(l)
	case mdRule().MatchString(l):
		m.print(Paint(strings.Repeat("─", m.columns(40)), "2", m.color))
	case strings.TrimSpace(l) != "" && !mdItem().MatchString(l) && mdUnder().MatchString(following):
		level := "##"
		if strings.Contains(m.next(), "=") {
			level = "#"
		}
		m.heading(level, strings.TrimSpace(l))
	case mdHeading().MatchString(l):
		h := mdHeading().FindStringSubmatch(l)
		m.heading(h[1], h[2])
	case mdItem().MatchString(l):
		i := mdItem().FindStringSubmatch(l)
		mark := i[2]
		if strings.Contains("-*+", mark) {
			mark = "•"
		}
		indent := i[1] + strings.Repeat(" ", Columns(mark+i[3]))
		m.wrapped(m.joined(i[4], indent), i[1]+mark+i[3], indent, "")
	case mdQuote().MatchString(l):
		bar := Paint("│ ", "2", m.color)
		m.wrapped(mdQuote().FindStringSubmatch(l)[2], bar, bar, "3")
	default:
		body := strings.TrimLeft(l, " ")
		indent := l[:len(l)-len(body)]
		m.wrapped(m.joined(body, indent), indent, indent, "")
	}
}

// joined appends to a line that must be wrapped the next lines of its paragraph, unless it ends
// with a hard break: text that was wrapped for a wider screen would become ragged.
func (m *markdownText) joined(text, indent string) string {
	if m.width == 0 || Columns(indent)+Columns(text) <= m.width {
		return text
	}
	for len(m.lines) > 0 && !strings.HasSuffix(text, "  ") && !strings.HasSuffix(text, `\`) && m.goesOn(indent) {
		text += " " + strings.TrimLeft(m.next(), " ")
	}
	return text
}

// goesOn reports whether the next line continues the paragraph.
func (m *markdownText) goesOn(indent string) bool {
	l, following := m.lines[0], ""
	if len(m.lines) > 1 {
		following = m.lines[1]
	}
	body := strings.TrimLeft(l, " ")
	if body == "" || len(l)-len(body) > len(indent)+3 || len(l) > 1000 {
		return false
	}
	for _, sign := range []func() *regexp.Regexp{mdFence, mdHeading, mdRule, mdUnder, mdItem, mdQuote} {
		if sign().MatchString(l) {
			return false
		}
	}
	return !isTable(l, following) && !mdUnder().MatchString(following)
}

// columns returns a width that fits, at most most.
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

// code prints the contents of a fence unchanged.
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

// wrapped prints a paragraph: its first line after first, the others after rest.
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

// wrap wraps spans into painted lines of at most width columns, longer only for a single word; 0:
// one line.
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
			// A space within a style has the style too, so that underlines are continuous.
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

// painted returns a line with its styles.
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

// wordsOf splits spans at single spaces.
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

// sgr matches the escape sequences of paint.
var sgr = pattern.Lazy("\x1b\\[[0-9;]*m")

func Unpainted(s string) string { return sgr().ReplaceAllString(s, "") }

// inline removes the marks inside a line and styles the text between them.
func (m *markdownText) inline(s, style string) []span {
	const most = 8 << 10 // a longer line was not written by a person
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

// marked reads the text between two marks, such as **, of which the first is at s[i]. It returns the
// number of bytes read and the spans of the text, or 0 if there is no mark.
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
		} // the target of a link is always shown
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

// combined adds a style to another.
func combined(style, more string) string {
	if style == "" {
		return more
	}
	return style + ";" + more
}

// emphasis returns the length of the text that mark encloses at s[i], marks included; 0: none.
// Marks must touch a word inside and none outside: 2*3*4 and snake_case_names have none.
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

// wordByte reports whether a byte belongs to a word; all non-ASCII bytes do.
func wordByte(b byte) bool { return b >= 0x80 || unicode.IsLetter(rune(b)) || unicode.IsDigit(rune(b)) }
