package schema

import (
	"encoding/json"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// maxDepth bounds how deep objects and arrays nest, in values and in schemas.
const maxDepth = 128

// scanner reads one JSON text, as strictly as jsonx. Its methods return false once the text is
// broken; err is then the reason.
//
// The tokens are those of jsonx, but it is not a jsonx.Scanner: the decoder already knows which
// fields were seen, and how deep it is. Keeping both a second time made decoding an object of
// three fields 50% slower (360 to 540 ns).
type scanner struct {
	data  []byte
	pos   int
	named int // where the last name began
	depth int
	err   *jsonx.SyntaxError
	valid bool // the text was checked before
}

// fail records the first problem with the text.
func (s *scanner) fail(err *jsonx.SyntaxError) bool {
	if s.err == nil {
		s.err = err
	}
	return false
}

// unexpected reports that the text at the current position is not what want says.
func (s *scanner) unexpected(want string) bool {
	if s.pos >= len(s.data) {
		want = "unexpected end, " + want
	}
	return s.fail(&jsonx.SyntaxError{Offset: s.pos, Msg: want})
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos = jsonx.SkipSpace(s.data, s.pos); s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// end checks that nothing but white space is left.
func (s *scanner) end() bool {
	if s.peek(); s.pos < len(s.data) {
		return s.unexpected("bytes after the value")
	}
	return true
}

// enter enters the object or array at the current position.
func (s *scanner) enter() bool {
	if s.depth++; s.depth > maxDepth {
		return s.unexpected(fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	s.pos++
	return true
}

// more moves to the next element of an object or array that ends with end. It is called with
// first set before the first element. It returns false at the end of the container, or if the
// text is broken.
func (s *scanner) more(first bool, end byte) bool {
	c := s.peek()
	switch {
	case c == end && s.pos < len(s.data):
		s.pos++
		s.depth--
		return false
	case first:
		return true
	case c == ',':
		s.pos++
		return true // to a name or value, or a fault
	case end == '}':
		return s.unexpected("want , or } in an object")
	}
	return s.unexpected("want , or ] in an array")
}

// name reads the name of an object member and the colon after it. The name may be a sub-slice of
// the text.
func (s *scanner) name() (name []byte, ok bool) {
	if s.peek() != '"' {
		return nil, s.unexpected("want a member name")
	}
	s.named = s.pos
	if name, ok = s.text(); !ok {
		return nil, false
	}
	if s.peek() != ':' {
		return nil, s.unexpected("want : after a member name")
	}
	s.pos++
	return name, true
}

// repeated reports that the name just read is a duplicate.
func (s *scanner) repeated() bool {
	return s.fail(&jsonx.SyntaxError{Offset: s.named, Msg: "second member with the same name"})
}

// longText is the length in bytes from which searching the end of a string while unescaping it is
// faster, as it is for strings that fit on the stack.
const longText = 256

// str reads the string at the current position.
func (s *scanner) str() (text string, ok bool) {
	if s.valid && (len(s.data)-s.pos > longText || len(s.data)-s.pos <= jsonx.ShortText) {
		text, s.pos = jsonx.Unescaped(s.data, s.pos)
		return text, true
	}
	start := s.pos
	body, escaped, ok := s.quoted()
	if !ok {
		return "", false
	}
	if escaped {
		text, _ = jsonx.Unescaped(s.data[:s.pos], start)
		return text, true
	}
	return string(body), true
}

// text reads the string at the current position and returns it unescaped. The result may be a
// sub-slice of the text.
func (s *scanner) text() (text []byte, ok bool) {
	text, escaped, ok := s.quoted()
	if !ok {
		return nil, false
	}
	if escaped {
		text = jsonx.AppendUnescaped(make([]byte, 0, len(text)), text)
	}
	return text, true
}

// quoted takes the string at the current position, without its quotes.
func (s *scanner) quoted() (body []byte, escaped, ok bool) {
	var next int
	if s.valid {
		next, escaped = jsonx.SkipString(s.data, s.pos)
	} else {
		var err *jsonx.SyntaxError
		if next, escaped, err = jsonx.ScanString(s.data, s.pos); err != nil {
			return nil, false, s.fail(err)
		}
	}
	body = s.data[s.pos+1 : next-1]
	s.pos = next
	return body, escaped, true
}

// take reads one value of any kind and returns its bytes.
func (s *scanner) take() (raw json.RawMessage, ok bool) {
	s.peek()
	start := s.pos
	next, err := jsonx.ScanValue(s.data, start, s.depth, maxDepth)
	if err != nil {
		return nil, s.fail(err)
	}
	s.pos = next
	return s.data[start:next:next], true
}

// any reads one value as map[string]any, []any, string, json.Number, bool or
// nil.
func (s *scanner) any() (v any, ok bool) {
	switch c := s.peek(); c {
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
				return nil, s.repeated()
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
		return s.str()
	default:
		raw, ok := s.take()
		switch {
		case !ok || c == 'n':
			return nil, ok
		case c == 't' || c == 'f':
			return c == 't', true
		}
		return json.Number(raw), true
	}
}
