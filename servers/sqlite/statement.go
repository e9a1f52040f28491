package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// maxQuery bounds the text of a query in bytes, as SQLite itself does.
const maxQuery = 1_000_000

// statement returns the only statement in query, without comments, blanks and semicolons around it.
// A query without a statement, or with several, is an error.
//
// The driver would run all statements of a text, so they are counted first. The rules
// are those of SQLite's tokenizer and grammar: a statement ends at a semicolon outside
// of quotes, comments and variables, that of a trigger at "; END ;". FuzzStatement
// compares this with the engine's own parser; in doubt, this finds one statement more.
func statement(query string) (string, error) {
	if len(query) > maxQuery {
		return "", fmt.Errorf("the query has %d bytes; the maximum is %d; pass values as params", len(query), maxQuery)
	}
	if strings.IndexByte(query, 0) >= 0 {
		return "", errors.New("the query holds a NUL character; pass such values as params")
	}
	sc := scanner{text: query}
	first := sc.next()
	if first == "" {
		return "", errors.New("the query is empty")
	}
	if second := sc.next(); second != "" {
		return "", fmt.Errorf("the query holds more than one statement, the second is %q; send them one by one", text.Short(second))
	}
	return first, nil
}

// scanner finds the statements of a text.
type scanner struct {
	text string
	at   int
}

// kind is a class of tokens, as far as it matters for the end of a statement.
type kind int

const (
	other kind = iota
	blank      // and comments
	semicolon
	word // keywords, names, numbers
)

// The states of next: the recognised part of a trigger's beginning or end.
type state int

const (
	atStart   state = iota
	plain           // not a trigger
	explained       // after EXPLAIN, which other words may follow
	creating        // after CREATE, which TEMP may follow
	inTrigger       // inside of a CREATE TRIGGER
	afterSemi       // inside, after a semicolon
	afterEnd        // inside, after "; END"
)

// after is the state after a token other than a semicolon.
func (s state) after(k kind, text string) state {
	if k == word {
		text = strings.ToLower(text)
	} else {
		text = ""
	}
	switch s {
	case atStart:
		switch text {
		case "explain":
			return explained
		case "create":
			return creating
		}
		return plain
	case explained:
		if text == "create" {
			return creating
		}
		return explained
	case creating:
		switch text {
		case "temp", "temporary":
			return creating
		case "trigger":
			return inTrigger
		}
		return plain
	case afterSemi:
		if text == "end" {
			return afterEnd
		}
		return inTrigger
	case inTrigger, afterEnd:
		return inTrigger
	}
	return plain
}

// next returns the next statement, without its final semicolon, or "" at the end.
func (s *scanner) next() string {
	start, end, st := 0, 0, atStart
	for s.at < len(s.text) {
		from := s.at
		k := s.token()
		switch {
		case k == blank, k == semicolon && st == atStart:
			continue
		case k == semicolon && (st == inTrigger || st == afterSemi):
			st = afterSemi
		case k == semicolon:
			return s.text[start:end]
		default:
			if st == atStart {
				start = from
			}
			st = st.after(k, s.text[from:s.at])
		}
		end = s.at
	}
	return s.text[start:end]
}

// byteOrderMark is a blank for SQLite wherever a token could begin.
const byteOrderMark = "\xef\xbb\xbf"

// token moves past one token, or past the rest if it has no end.
func (s *scanner) token() kind {
	t := s.text[s.at:]
	switch c := t[0]; {
	case c == ';':
		s.at++
		return semicolon
	case isSpace(c) && c != '\v': // a run may hold a vertical tab but not begin with it
		n := 1
		for n < len(t) && isSpace(t[n]) {
			n++
		}
		s.at += n
		return blank
	case strings.HasPrefix(t, byteOrderMark):
		s.at += len(byteOrderMark)
		return blank
	case strings.HasPrefix(t, "--"):
		s.past("\n", 2)
		return blank
	case strings.HasPrefix(t, "/*") && len(t) > 2: // at the very end these are two operators
		s.past("*/", 2)
		return blank
	case c == '\'' || c == '"' || c == '`':
		s.past(string(c), 1) // a doubled quote is an end and a start, with the same effect
		return other
	case c == '[':
		s.past("]", 1)
		return other
	case c == '$' || c == '@' || c == ':' || c == '#':
		s.at += variable(t)
		return other
	case isName(c):
		n := 1
		for n < len(t) && isName(t[n]) {
			n++
		}
		s.at += n
		return word
	}
	s.at++
	return other
}

// past moves behind the next mark, searching from n bytes on.
func (s *scanner) past(mark string, n int) {
	if i := strings.Index(s.text[s.at+n:], mark); i >= 0 {
		s.at += n + i + len(mark)
		return
	}
	s.at = len(s.text)
}

// variable is the length of the variable that t begins with. After its name,
// which may have :: in it, may stand anything but blanks in parentheses, as in Tcl.
func variable(t string) int {
	named := false
	i := 1
	for i < len(t) {
		switch c := t[i]; {
		case isName(c):
			named = true
		case c == '(' && named:
			for i++; i < len(t) && t[i] != ')' && !isSpace(t[i]); i++ {
			}
			if i < len(t) && t[i] == ')' {
				i++
			}
			return i
		case c == ':' && strings.HasPrefix(t[i:], "::"):
			i++
		default:
			return i
		}
		i++
	}
	return i
}

// isName reports whether a byte can be part of a name; all beyond ASCII can.
func isName(c byte) bool {
	return c >= 0x80 || c == '_' || c == '$' ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
