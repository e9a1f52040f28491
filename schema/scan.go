package schema

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep objects and arrays nest, in values and in schemas.
const maxDepth = 128

// scanner reads one JSON text strictly: the grammar of RFC 8259, valid UTF-8,
// no lone surrogates, at most maxDepth levels. Its methods return false once
// the text is broken; err then says how. It never copies what it scans.
type scanner struct {
	data  []byte
	pos   int
	depth int
	err   error
}

// fail records the first problem with the text, at the current position.
func (s *scanner) fail(format string, args ...any) bool {
	if s.err == nil {
		s.err = fmt.Errorf("not valid JSON at byte %d: %s", s.pos, fmt.Sprintf(format, args...))
	}
	return false
}

// unexpected reports what stands at the current position instead of want.
func (s *scanner) unexpected(want string) bool {
	if s.pos >= len(s.data) {
		return s.fail("the text ends where %s should be", want)
	}
	return s.fail("%q where %s should be", rune(s.data[s.pos]), want)
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if c > ' ' {
			return c
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
		s.pos++
	}
	return 0
}

// end checks that nothing but white space is left.
func (s *scanner) end() bool {
	if s.peek(); s.pos < len(s.data) {
		return s.unexpected("the end of the text")
	}
	return true
}

// enter and leave count levels of nesting.
func (s *scanner) enter() bool {
	if s.depth++; s.depth > maxDepth {
		return s.fail("nested more than %d levels deep", maxDepth)
	}
	s.pos++
	return true
}

func (s *scanner) leave() {
	s.pos++
	s.depth--
}

// more moves to the next element of an object or array that ends with end. It
// is called with first set before the first element. It returns whether there
// is one; at the end of the container, or of a broken text, it returns false.
func (s *scanner) more(first bool, end byte) bool {
	c := s.peek()
	switch {
	case c == end:
		s.leave()
		return false
	case first:
		return true
	case c == ',':
		s.pos++
		if s.peek() == end {
			return s.unexpected("another element")
		}
		return true
	}
	return s.unexpected(fmt.Sprintf("',' or %q", rune(end)))
}

// name reads the name of an object member and the colon after it.
func (s *scanner) name() (name []byte, ok bool) {
	if s.peek() != '"' {
		return nil, s.unexpected("a quoted name")
	}
	name, escaped, ok := s.str()
	if !ok {
		return nil, false
	}
	if escaped {
		name = appendUnquoted(nil, name)
	}
	if s.peek() != ':' {
		return nil, s.unexpected("':'")
	}
	s.pos++
	return name, true
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// str reads the string that starts at the current position. It returns the
// bytes between the quotes and whether they hold escapes.
func (s *scanner) str() (raw []byte, escaped, ok bool) {
	data, i := s.data, s.pos+1
	start := i
	var seen uint64 // every byte seen, or-ed: its high bits tell non-ASCII
	for {
		// Eight bytes at a time, up to a quote, a backslash or a control.
		for i+8 <= len(data) {
			x := binary.LittleEndian.Uint64(data[i:])
			quote, slash := x^('"'*ones), x^('\\'*ones)
			stop := ((x - ' '*ones) &^ x) | ((quote - ones) &^ quote) | ((slash - ones) &^ slash)
			if stop &= highs; stop != 0 {
				n := bits.TrailingZeros64(stop) / 8
				seen |= x & (1<<(8*n) - 1)
				i += n
				break
			}
			seen |= x
			i += 8
		}
		if i >= len(data) {
			s.pos = len(data)
			return nil, false, s.unexpected(`'"'`)
		}
		switch c := data[i]; {
		case c == '"':
			s.pos = i + 1
			raw = data[start:i]
			if seen&highs != 0 && !utf8.Valid(raw) {
				s.pos = start
				return nil, false, s.fail("a string that is not UTF-8")
			}
			return raw, escaped, true
		case c == '\\':
			escaped = true
			s.pos = i
			n := escapeLen(data[i:])
			if n == 0 {
				return nil, false, s.fail("a broken escape in a string")
			}
			i += n
		case c < ' ':
			s.pos = i
			return nil, false, s.fail("a raw control character in a string")
		default:
			seen |= uint64(c)
			i++
		}
	}
}

// escapeLen returns the length of the escape sequence at the start of b, a
// surrogate pair counted as one, or 0 if it is not one.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		r, ok := hex4(b)
		if !ok {
			return 0
		}
		if !utf16.IsSurrogate(r) {
			return 6
		}
		if len(b) < 12 {
			return 0
		}
		low, ok := hex4(b[6:])
		if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
			return 0
		}
		return 12
	}
	return 0
}

// hex4 reads the \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendUnquoted appends the meaning of raw, the inside of a string that str
// has accepted.
func appendUnquoted(dst, raw []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, len(raw))
	}
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		n := 2
		switch c = raw[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(raw[i:])
			n = 6
			if utf16.IsSurrogate(r) {
				low, _ := hex4(raw[i+6:])
				r, n = utf16.DecodeRune(r, low), 12
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
		i += n
	}
	return dst
}

// text returns the string whose inside is raw.
func text(raw []byte, escaped bool) string {
	if escaped {
		raw = appendUnquoted(nil, raw)
	}
	return string(raw)
}

// number reads the number literal at the current position.
func (s *scanner) number() (lit []byte, ok bool) {
	data, i := s.data, s.pos
	start := i
	digits := func() bool {
		from := i
		for i < len(data) && '0' <= data[i] && data[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(data) && data[i] == '-' {
		i++
	}
	whole := i
	if !digits() {
		s.pos = i
		return nil, s.unexpected("a value")
	}
	if data[whole] == '0' && i > whole+1 {
		s.pos = whole
		return nil, s.fail("a number with a leading zero")
	}
	if i < len(data) && data[i] == '.' {
		i++
		if !digits() {
			s.pos = i
			return nil, s.unexpected("a digit")
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if !digits() {
			s.pos = i
			return nil, s.unexpected("a digit")
		}
	}
	s.pos = i
	return data[start:i], true
}

// word reads true, false or null, whichever is asked for.
func (s *scanner) word(w string) bool {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return s.unexpected("a value")
	}
	s.pos += len(w)
	return true
}

// skip reads one value of any kind and returns its bytes. Names must not
// repeat in any object of it.
func (s *scanner) skip() (raw []byte, ok bool) {
	c := s.peek()
	start := s.pos
	switch c {
	case '{':
		ok = s.skipObject()
	case '[':
		ok = s.enter()
		for first := true; ok && s.more(first, ']'); first = false {
			_, ok = s.skip()
		}
	case '"':
		_, _, ok = s.str()
	case 't':
		ok = s.word("true")
	case 'f':
		ok = s.word("false")
	case 'n':
		ok = s.word("null")
	default:
		_, ok = s.number()
	}
	if !ok || s.err != nil {
		return nil, false
	}
	return s.data[start:s.pos], true
}

func (s *scanner) skipObject() bool {
	if !s.enter() {
		return false
	}
	var names nameSet
	for first := true; s.more(first, '}'); first = false {
		name, ok := s.name()
		if !ok {
			return false
		}
		if !names.add(name) {
			return s.fail("the name %s stands twice in one object", quote(string(name)))
		}
		if _, ok = s.skip(); !ok {
			return false
		}
	}
	return s.err == nil
}

// nameSet is a set of member names that is cheap while it is small.
type nameSet struct {
	few  [8][]byte
	n    int
	many map[string]struct{}
}

// add reports whether name is new.
func (n *nameSet) add(name []byte) bool {
	if n.many != nil {
		if _, dup := n.many[string(name)]; dup {
			return false
		}
		n.many[string(name)] = struct{}{}
		return true
	}
	for _, have := range n.few[:n.n] {
		if string(have) == string(name) {
			return false
		}
	}
	if n.n < len(n.few) {
		n.few[n.n] = name
		n.n++
		return true
	}
	n.many = make(map[string]struct{}, 2*len(n.few))
	for _, have := range n.few {
		n.many[string(have)] = struct{}{}
	}
	n.many[string(name)] = struct{}{}
	return true
}

// any reads one value as map[string]any, []any, string, json.Number, bool or
// nil. Names must not repeat.
func (s *scanner) any() (v any, ok bool) {
	switch s.peek() {
	case '{':
		if !s.enter() {
			return nil, false
		}
		m := map[string]any{}
		for first := true; s.more(first, '}'); first = false {
			name, ok := s.name()
			if !ok {
				return nil, false
			}
			key := string(name)
			if _, dup := m[key]; dup {
				return nil, s.fail("the name %s stands twice in one object", quote(key))
			}
			if m[key], ok = s.any(); !ok {
				return nil, false
			}
		}
		return m, s.err == nil
	case '[':
		if !s.enter() {
			return nil, false
		}
		a := []any{}
		for first := true; s.more(first, ']'); first = false {
			e, ok := s.any()
			if !ok {
				return nil, false
			}
			a = append(a, e)
		}
		return a, s.err == nil
	case '"':
		raw, escaped, ok := s.str()
		return text(raw, escaped), ok
	case 't':
		return true, s.word("true")
	case 'f':
		return false, s.word("false")
	case 'n':
		return nil, s.word("null")
	}
	lit, ok := s.number()
	return json.Number(lit), ok
}

// parseAny reads data, one JSON value, as scanner.any does.
func parseAny(data []byte) (any, error) {
	s := scanner{data: data}
	if v, ok := s.any(); ok && s.end() {
		return v, nil
	}
	return nil, s.err
}

// member is one member of an object, in the order of the text.
type member struct {
	name  string
	value json.RawMessage
}

// members splits the JSON object in data. The values share its memory.
func members(data []byte) ([]member, error) {
	s := scanner{data: data}
	if s.peek() != '{' {
		return nil, fmt.Errorf("must be an object, got %s", kindOf(s.peek()))
	}
	var list []member
	s.enter()
	for first := true; s.more(first, '}'); first = false {
		name, ok := s.name()
		if !ok {
			return nil, s.err
		}
		raw, ok := s.skip()
		if !ok {
			return nil, s.err
		}
		list = append(list, member{string(name), raw})
	}
	if s.err == nil {
		s.end()
	}
	return list, s.err
}

// kindOf names the kind of the JSON value that starts with c.
func kindOf(c byte) string {
	switch c {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// quoteMax bounds how much of a peer's text is repeated in an error.
const quoteMax = 60

// quote quotes text from a peer for an error, cut when long.
func quote(s string) string {
	if len(s) <= quoteMax {
		return strconv.Quote(s)
	}
	cut := quoteMax
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "..."
}

// excerpt cuts a number or another bare literal for an error.
func excerpt(s string) string {
	if len(s) <= quoteMax {
		return s
	}
	return strings.ToValidUTF8(s[:quoteMax], "") + "..."
}
