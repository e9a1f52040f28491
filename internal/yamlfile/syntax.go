package yamlfile

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/pattern"
)

var (
	atLine   = pattern.Lazy(`^line (\d+): `)
	dashes   = pattern.Lazy(`^(?:- +)*`)
	member   = pattern.Lazy(`^(?:- +)*[^\s"'#:\[{-][^\s"'#:]*:(?: +|$)`)
	unspaced = pattern.Lazy(`^([A-Za-z_][\w.-]*):([^\s/].*)$`)
	block    = pattern.Lazy(`(?:^|[:-] +)[|>][-+0-9]*\s*(?:#.*)?$`) // the beginning of a text of several lines
)

// hints are corrections of mistakes that the parser names well enough.
var hints = []struct{ text, fix string }{
	{"expected ',' or", "close the bracket, and write a comma between two values"},
	{"mapping values", "put the text in quotes if it has a colon and a space, or check the indentation"},
	{"cannot start any token", "put the text in quotes"},
	{"alphabetic or numeric", "put a text that begins with * or & in quotes"},
	{"unknown anchor", "put a text that begins with * in quotes"},
	{"unknown escape", "write \\\\ for a backslash, or use single quotes"},
	{"control characters", "remove the character, or write it as \\u0000 in quotes"},
}

// syntax records the error of the YAML parser: by its usual cause if the lines show one, with its place
// and a correction, else in the words of the parser.
func (r *Reader) syntax(err error) {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := atLine().FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	line = max(1, min(line, len(r.Lines))) // the parser has other ends of lines too, and begins with line 0
	if !strings.HasPrefix(strings.TrimSpace(string(bytes.Join(r.Lines[:min(2, len(r.Lines))], nil))), "{") {
		for _, find := range []func([]source, int) *Problem{tab, quote, colon, indent} {
			if p := find(sources(r.Lines), line); p != nil {
				r.FaultAt(p.Line, p.Column, p.Fix, "%s", p.Text)
				return
			}
		}
	}
	fix := "check the quotes, the colons and the indentation around it"
	for _, h := range hints {
		if strings.Contains(text, h.text) {
			fix = h.fix
			break
		}
	}
	r.FaultAt(line, 1, fix, "%s", text)
}

// source is a line with content, outside of texts of several lines.
type source struct {
	line   int // from 1
	spaces string
	text   string // without the spaces around it
	name   int    // end of the name of a member in text, with its colon and the spaces after it; 0: it has none
	dashes int    // length of the dashes of list items in text, with their spaces
}

// problem is a fault at an index of the text.
func (s *source) problem(at int, fix, format string, args ...any) *Problem {
	return &Problem{Line: s.line, Column: len(s.spaces) + utf8.RuneCountInString(s.text[:at]) + 1, Text: fmt.Sprintf(format, args...), Fix: fix}
}

// near reports whether the parser can mean the line by another one.
func (s *source) near(line int) bool { return line-1 <= s.line && s.line <= line+1 }

// inner is the indentation of the first member or text in the line.
func (s *source) inner() int { return len(s.spaces) + s.dashes }

func sources(lines [][]byte) (list []source) {
	inside := -1 // indentation of the line that begins a text of several lines
	for i, line := range lines {
		text := strings.TrimLeft(string(line), " \t")
		s := source{line: i + 1, spaces: string(line[:len(line)-len(text)]), text: strings.TrimRight(text, " \t\r")}
		if s.text == "" || inside >= 0 && len(s.spaces) > inside {
			continue
		}
		if inside = -1; s.text[0] == '#' || s.text == "---" {
			continue
		}
		if block().MatchString(s.text) {
			inside = len(s.spaces)
		}
		s.name = len(member().FindString(s.text))
		s.dashes = len(dashes().FindString(s.text))
		list = append(list, s)
	}
	return list
}

// tab finds a tab in the indentation.
func tab(list []source, line int) *Problem {
	for _, s := range list {
		if at := strings.IndexByte(s.spaces, '\t'); at >= 0 && s.near(line) {
			return &Problem{Line: s.line, Column: at + 1, Text: "a tab indents the line", Fix: "use spaces"}
		}
	}
	return nil
}

// quote finds a quote that is not closed, and text after one that is.
func quote(list []source, line int) *Problem {
	for i := 0; i < len(list); i++ {
		s := &list[i]
		begin := max(s.name, s.dashes)
		if value := s.text[begin:]; value == "" || value[0] != '"' && value[0] != '\'' {
			continue
		}
		q := s.text[begin : begin+1]
		end := closing(s.text[begin+1:], q)
		if end < 0 {
			next := slices.IndexFunc(list[i+1:], func(later source) bool { return closing(later.text, q) >= 0 })
			if s.near(line) || next < 0 {
				return s.problem(begin, "close it with "+q, "the quote is not closed")
			}
			i += next + 1
			continue
		}
		after := begin + 1 + end + 1
		rest := strings.TrimLeft(s.text[after:], " \t")
		if rest == "" || strings.ContainsAny(rest[:1], "#:") || !s.near(line) {
			continue
		}
		fix := "put the whole text in quotes"
		if q == "'" {
			fix += ", with two single quotes in place of each one in it"
		}
		return s.problem(len(s.text)-len(rest), fix, "text follows the closing quote")
	}
	return nil
}

// closing returns the index of the quote that closes a text; -1: there is none.
func closing(text, q string) int {
	for i := 0; i < len(text); i++ {
		switch {
		case q == `"` && text[i] == '\\', q == "'" && strings.HasPrefix(text[i:], "''"):
			i++
		case text[i] == q[0]:
			return i
		}
	}
	return -1
}

// colon finds a name with a value and no space between them.
func colon(list []source, line int) *Problem {
	for _, s := range list {
		if fix := spaced(s.text); fix != "" && s.near(line) {
			return s.problem(strings.IndexByte(s.text, ':'), fix, "no space follows the colon")
		}
	}
	return nil
}

// spaced returns the correction of a text that is a name and a value with no space between them, or "".
// The correction is without the value, which may be a secret.
func spaced(text string) string {
	if m := unspaced().FindStringSubmatch(text); m != nil && !strings.Contains(m[2], ": ") {
		return "write a space after " + Quote(m[1]+":")
	}
	return ""
}

// indent finds a line whose indentation does not fit the lines above.
func indent(list []source, line int) *Problem {
	var open []int // indentations of the mappings and lists around the line
	for i, s := range list {
		most := 1 << 20
		for len(open) > 0 && open[len(open)-1] > len(s.spaces) {
			most = open[len(open)-1]
			open = open[:len(open)-1]
		}
		fits := len(open) > 0 && open[len(open)-1] == len(s.spaces)
		if i > 0 && s.near(line) {
			before := &list[i-1]
			switch {
			case !fits && most < 1<<20 && len(open) > 0:
				return s.problem(0, fmt.Sprintf("indent it by %d or %d spaces", open[len(open)-1], most), "the indentation is that of no line above")
			case !fits && most < 1<<20:
				return s.problem(0, by(most), "the indentation is less than that of line %d", list[0].line)
			case s.name > 0 && before.name > 0 && len(s.spaces) > before.inner() && plain(before.text[before.name:]):
				return s.problem(0, by(before.inner()), "the line is indented under line %d, which has a value", before.line)
			}
		}
		if !fits {
			open = append(open, len(s.spaces))
		}
		if s.dashes > 0 {
			open = append(open, s.inner())
		}
	}
	return nil
}

// by says how far to indent a line.
func by(spaces int) string {
	switch spaces {
	case 0:
		return "do not indent it"
	case 1:
		return "indent it by 1 space"
	}
	return fmt.Sprintf("indent it by %d spaces", spaces)
}

// plain reports whether a value is text on its line.
func plain(value string) bool { return value != "" && !strings.ContainsAny(value[:1], "#[{|>&!") }
