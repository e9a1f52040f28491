package jsonx

import (
	"encoding/json"
	"fmt"
	"sync"
)

// DefaultDepth bounds nesting where the caller gives no bound.
const DefaultDepth = 128

// A SyntaxError says where and why bytes are not one JSON value.
type SyntaxError struct {
	Offset int    // place in the input, counted in bytes from 0
	Msg    string // what is wrong there; never holds text of the input
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Msg)
}

// Valid reports why b is not exactly one JSON value, with white space around
// it, or nil when it is. The package comment says what is refused.
//
// A scalar has depth 0 and [] has depth 1. A value nested deeper than maxDepth
// is refused; zero or less means [DefaultDepth]. The error is a [*SyntaxError].
func Valid(b []byte, maxDepth int) error {
	s := NewScanner(b, maxDepth)
	defer s.Free()
	if _, err := s.Value(); err != nil {
		return err
	}
	return s.End()
}

// A Scanner goes once over a JSON text and checks all of it on the way, as
// [Valid] does. Its caller enters the objects and arrays whose members it wants
// to see and takes the other values whole:
//
//	s := jsonx.NewScanner(b, 0)
//	defer s.Free()
//	err := s.Object()
//	for err == nil {
//		var name []byte
//		var more bool
//		if name, more, err = s.Member(); more {
//			value, err = s.Value()
//		}
//	}
//
// After an error a Scanner is of no more use. It is for one goroutine.
type Scanner struct {
	b      []byte
	pos    int
	max    int
	frames []frame
	names  []span // of all open objects, outermost first
	side   []byte // text of names that were escaped
	tables []nameTable
	name   NameSpan
}

// frame is an object or array that is open.
type frame struct {
	names  int  // where the names of this object begin in Scanner.names
	object bool // and not an array
	begun  bool // the first member or element was reached
	many   bool // the last of Scanner.tables is of this object
}

// NameSpan says where a member name stands in the input.
type NameSpan struct {
	Start, End int  // the text between the quotes
	Escaped    bool // the text there is not the name itself
}

var scanners = sync.Pool{New: func() any { return new(Scanner) }}

// NewScanner returns a Scanner at the beginning of b. Give it back with Free.
func NewScanner(b []byte, maxDepth int) *Scanner {
	if maxDepth <= 0 {
		maxDepth = DefaultDepth
	}
	s := scanners.Get().(*Scanner)
	s.b, s.pos, s.max = b, 0, maxDepth
	return s
}

// Free gives the Scanner back. It must not be used after, nor must names that
// Member returned.
func (s *Scanner) Free() {
	const kept = 1 << 10 // one hostile message must not pin its memory
	if cap(s.names) > kept || cap(s.frames) > kept || cap(s.side) > kept {
		return
	}
	*s = Scanner{frames: s.frames[:0], names: s.names[:0], side: s.side[:0]}
	scanners.Put(s)
}

// Offset returns the place of the next byte that is not white space.
func (s *Scanner) Offset() int {
	s.pos = skipSpace(s.b, s.pos)
	return s.pos
}

// Taken returns the place after what was taken last.
func (s *Scanner) Taken() int { return s.pos }

// Kind returns the kind of the next value, as [KindOf] does, without checking
// more than its first byte.
func (s *Scanner) Kind() byte { return KindOf(s.b[s.Offset():]) }

// Name says where the name stands that Member returned last.
func (s *Scanner) Name() NameSpan { return s.name }

// End checks that nothing but white space is left.
func (s *Scanner) End() error {
	if i := s.Offset(); i < len(s.b) {
		return &SyntaxError{i, "bytes after the value"}
	}
	return nil
}

// Object enters the next value, which must be an object.
func (s *Scanner) Object() error {
	i := s.Offset()
	if i >= len(s.b) || s.b[i] != '{' {
		return &SyntaxError{i, "want an object"}
	}
	return asError(s.push(true))
}

// Array enters the next value, which must be an array.
func (s *Scanner) Array() error {
	i := s.Offset()
	if i >= len(s.b) || s.b[i] != '[' {
		return &SyntaxError{i, "want an array"}
	}
	return asError(s.push(false))
}

// asError keeps a nil *SyntaxError from becoming an error that is not nil.
func asError(err *SyntaxError) error {
	if err == nil {
		return nil
	}
	return err
}

// Member goes to the next member of the object entered last and returns its
// name, unescaped and good until the next call. The value must be taken or
// entered next. At the end of the object Member leaves it and returns false.
func (s *Scanner) Member() (name []byte, more bool, err error) {
	name, more, fault := s.member()
	return name, more, asError(fault)
}

// Element goes to the next element of the array entered last, which must be
// taken or entered next. At the end of the array Element leaves it and returns
// false.
func (s *Scanner) Element() (more bool, err error) {
	more, fault := s.element()
	return more, asError(fault)
}

// Value takes the next value whole, without the white space around it.
func (s *Scanner) Value() (json.RawMessage, error) {
	start := s.Offset()
	if err := s.value(); err != nil {
		return nil, err
	}
	return s.b[start:s.pos:s.pos], nil
}

// value is a loop, not a recursion, so that depth costs no stack.
func (s *Scanner) value() (err *SyntaxError) {
	outer := len(s.frames)
	for {
		i := skipSpace(s.b, s.pos)
		s.pos = i
		if i >= len(s.b) {
			return &SyntaxError{i, "unexpected end, want a value"}
		}
		switch c := s.b[i]; c {
		case '{', '[':
			err = s.push(c == '{')
		case '"':
			s.pos, _, err = scanString(s.b, i)
		case 't':
			err = s.literal("true")
		case 'f':
			err = s.literal("false")
		case 'n':
			err = s.literal("null")
		default:
			s.pos, err = scanNumber(s.b, i)
		}
		if err != nil {
			return err
		}
		// Go on to the next value inside, leaving what ends here.
		for more := false; !more; {
			if len(s.frames) == outer {
				return nil
			}
			if s.frames[len(s.frames)-1].object {
				_, more, err = s.member()
			} else {
				more, err = s.element()
			}
			if err != nil {
				return err
			}
		}
	}
}

func (s *Scanner) push(object bool) *SyntaxError {
	if len(s.frames) >= s.max {
		return &SyntaxError{s.pos, fmt.Sprintf("nested deeper than %d", s.max)}
	}
	s.pos++
	s.frames = append(s.frames, frame{object: object, names: len(s.names)})
	return nil
}

func (s *Scanner) pop() {
	last := len(s.frames) - 1
	f := &s.frames[last]
	s.names = s.names[:f.names]
	if f.many {
		s.tables = s.tables[:len(s.tables)-1]
	}
	s.frames = s.frames[:last]
}

func (s *Scanner) member() (name []byte, more bool, err *SyntaxError) {
	f := &s.frames[len(s.frames)-1]
	b, i := s.b, skipSpace(s.b, s.pos)
	if i < len(b) && b[i] == '}' {
		s.pos = i + 1
		s.pop()
		return nil, false, nil
	}
	if f.begun {
		if i >= len(b) || b[i] != ',' {
			return nil, false, unexpected(b, i, "want , or } in an object")
		}
		i = skipSpace(b, i+1)
	}
	f.begun = true
	if i >= len(b) || b[i] != '"' {
		return nil, false, unexpected(b, i, "want a member name")
	}
	end, escaped, err := scanString(b, i)
	if err != nil {
		return nil, false, err
	}
	s.name = NameSpan{i + 1, end - 1, escaped}
	name, fresh := s.addName(f, s.name)
	if !fresh {
		return nil, false, &SyntaxError{i, "second member with the same name"}
	}
	i = skipSpace(b, end)
	if i >= len(b) || b[i] != ':' {
		return nil, false, unexpected(b, i, "want : after a member name")
	}
	s.pos = i + 1
	return name, true, nil
}

func (s *Scanner) element() (more bool, err *SyntaxError) {
	f := &s.frames[len(s.frames)-1]
	b, i := s.b, skipSpace(s.b, s.pos)
	if !f.begun {
		f.begun = true
		if i < len(b) && b[i] == ']' {
			s.pos = i + 1
			s.pop()
			return false, nil
		}
		s.pos = i
		return true, nil
	}
	if i < len(b) {
		switch b[i] {
		case ',':
			s.pos = i + 1
			return true, nil
		case ']':
			s.pos = i + 1
			s.pop()
			return false, nil
		}
	}
	return false, unexpected(b, i, "want , or ] in an array")
}

func (s *Scanner) literal(word string) *SyntaxError {
	end := s.pos + len(word)
	if end > len(s.b) || string(s.b[s.pos:end]) != word {
		return &SyntaxError{s.pos, "want a value"}
	}
	s.pos = end
	return nil
}

// scanNumber checks the number at b[i] and returns the place after it.
func scanNumber(b []byte, i int) (next int, err *SyntaxError) {
	start := i
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && isDigit(b[i]):
		i = skipDigits(b, i)
	case i == start:
		return 0, &SyntaxError{i, "want a value"}
	default:
		return 0, unexpected(b, i, "want a digit")
	}
	if i < len(b) && b[i] == '.' {
		i++
		if i >= len(b) || !isDigit(b[i]) {
			return 0, unexpected(b, i, "want a digit")
		}
		i = skipDigits(b, i)
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i >= len(b) || !isDigit(b[i]) {
			return 0, unexpected(b, i, "want a digit")
		}
		i = skipDigits(b, i)
	}
	return i, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func skipDigits(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

func unexpected(b []byte, i int, msg string) *SyntaxError {
	if i >= len(b) {
		msg = "unexpected end, " + msg
	}
	return &SyntaxError{i, msg}
}
