package jsonx

import (
	"encoding/json"
	"fmt"
	"sync"
)

// DefaultDepth bounds nesting where the caller gives no bound.
const DefaultDepth = 128

// A SyntaxError reports where and why bytes are not one JSON value.
type SyntaxError struct {
	Offset int    // position in the input, in bytes from 0
	Msg    string // what is wrong there; never quotes the input
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Msg)
}

// Valid returns nil if b is exactly one JSON value, white space around it allowed. The package
// comment lists what is refused.
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

// A Scanner reads a JSON text once and checks all of it, as [Valid] does. The caller enters the
// objects and arrays whose members it needs and takes the other values whole:
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
// A Scanner must not be used after an error, nor by several goroutines at once.
type Scanner struct {
	b      []byte
	pos    int
	max    int
	open   int // objects and arrays around b that count towards max
	frames []frame
	names  []span // of all open objects, outermost first
	side   []byte // text of names that were escaped
	tables []nameTable
	name   NameSpan
}

// frame is an object or array that is open.
type frame struct {
	names  int    // where the names of this object begin in Scanner.names
	filter uint64 // has the bit of every name of this object, see nameBit
	object bool   // false for an array
	begun  bool   // the first member or element has been reached
	many   bool   // the last of Scanner.tables belongs to this object
}

// NameSpan is the position of a member name in the input.
type NameSpan struct {
	Start, End int  // the text between the quotes
	Escaped    bool // the text has escapes
}

var scanners = sync.Pool{New: func() any { return new(Scanner) }}

// NewScanner returns a Scanner at the beginning of b. A maxDepth of zero or less means
// [DefaultDepth]. Call Free when done.
func NewScanner(b []byte, maxDepth int) *Scanner {
	if maxDepth <= 0 {
		maxDepth = DefaultDepth
	}
	s := scanners.Get().(*Scanner)
	s.b, s.pos, s.max = b, 0, maxDepth
	return s
}

// Free releases the Scanner. Neither it nor names that Member returned may be used afterwards.
func (s *Scanner) Free() {
	const kept = 1 << 10 // one hostile message must not pin its memory
	if cap(s.names) > kept || cap(s.frames) > kept || cap(s.side) > kept {
		return
	}
	*s = Scanner{frames: s.frames[:0], names: s.names[:0], side: s.side[:0]}
	scanners.Put(s)
}

// Offset returns the position of the next byte that is not white space.
func (s *Scanner) Offset() int {
	s.pos = skipSpace(s.b, s.pos)
	return s.pos
}

// Taken returns the position after the value taken last.
func (s *Scanner) Taken() int { return s.pos }

// Kind returns the kind of the next value, as [KindOf] does, and checks only its first byte.
func (s *Scanner) Kind() byte {
	if i := s.Offset(); i < len(s.b) {
		return kinds[s.b[i]]
	}
	return 0
}

// Name returns the position of the name that Member returned last.
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
	return s.at(s.push(i, true))
}

// Array enters the next value, which must be an array.
func (s *Scanner) Array() error {
	i := s.Offset()
	if i >= len(s.b) || s.b[i] != '[' {
		return &SyntaxError{i, "want an array"}
	}
	return s.at(s.push(i, false))
}

// at moves to the position next, unless err is set.
func (s *Scanner) at(next int, err *SyntaxError) error {
	if err != nil {
		return err
	}
	s.pos = next
	return nil
}

// Member moves to the next member of the object entered last and returns its name, unescaped and
// valid until the next call. The value must be taken or entered next. At the end of the object
// Member leaves it and returns false.
func (s *Scanner) Member() (name []byte, more bool, err error) {
	next, more, fault := s.member(&s.frames[len(s.frames)-1], s.pos)
	if fault != nil {
		return nil, false, fault
	}
	s.pos = next
	if !more {
		return nil, false, nil
	}
	if s.name.Escaped {
		return s.nameText(s.names[len(s.names)-1]), true, nil
	}
	return s.b[s.name.Start:s.name.End], true, nil
}

// Element moves to the next element of the array entered last, which must be taken or entered
// next. At the end of the array Element leaves it and returns false.
func (s *Scanner) Element() (more bool, err error) {
	next, more, fault := s.element(&s.frames[len(s.frames)-1], s.pos)
	return more, s.at(next, fault)
}

// Value takes the next value whole, without the white space around it.
func (s *Scanner) Value() (json.RawMessage, error) {
	start := s.Offset()
	next, err := s.value(start)
	if err != nil {
		return nil, err
	}
	s.pos = next
	return s.b[start:next:next], nil
}

// Text takes the next value, which must be a string, and returns its text, unescaped and valid
// until the next call. It may be a sub-slice of the input.
func (s *Scanner) Text() ([]byte, error) {
	i := s.Offset()
	if i >= len(s.b) || s.b[i] != '"' {
		return nil, &SyntaxError{i, "want a string"}
	}
	next, escaped, err := scanString(s.b, i)
	if err != nil {
		return nil, err
	}
	s.pos = next
	body := s.b[i+1 : next-1]
	if !escaped {
		return body, nil
	}
	// The memory past the end of side is free to use.
	kept := len(s.side)
	s.side = appendUnescaped(s.side, body)
	body = s.side[kept:]
	s.side = s.side[:kept]
	return body, nil
}

// The functions below take a position i and return the next one, not in Scanner.pos, so that it
// stays in a register.

// value skips one value. It is a loop, not a recursion, so that depth costs no stack.
func (s *Scanner) value(i int) (next int, err *SyntaxError) {
	b, outer := s.b, len(s.frames)
	for {
		if i = skipSpace(b, i); i >= len(b) {
			return 0, unexpected(b, i, "want a value")
		}
		switch c := b[i]; c {
		case '"':
			i, _, err = scanString(b, i)
		case '{', '[':
			i, err = s.push(i, c == '{')
		case 't', 'f', 'n':
			i, err = scanBare(b, i)
		default:
			i, err = scanNumber(b, i)
		}
		if err != nil {
			return 0, err
		}
		// Move to the next value. Objects and arrays that end at this position are left on the way.
		for more := false; !more; {
			open := len(s.frames)
			if open == outer {
				return i, nil
			}
			if f := &s.frames[open-1]; f.object {
				i, more, err = s.member(f, i)
			} else {
				i, more, err = s.element(f, i)
			}
			if err != nil {
				return 0, err
			}
		}
	}
}

func (s *Scanner) push(i int, object bool) (next int, err *SyntaxError) {
	if s.open+len(s.frames) >= s.max {
		return 0, &SyntaxError{i, fmt.Sprintf("nested deeper than %d", s.max)}
	}
	s.frames = append(s.frames, frame{object: object, names: len(s.names)})
	return i + 1, nil
}

func (s *Scanner) pop(f *frame) {
	s.names = s.names[:f.names]
	if f.many {
		s.tables = s.tables[:len(s.tables)-1]
	}
	s.frames = s.frames[:len(s.frames)-1]
}

// member moves to the value of the next member of f and stores the name in Scanner.name.
func (s *Scanner) member(f *frame, i int) (next int, more bool, err *SyntaxError) {
	b := s.b
	i = skipSpace(b, i)
	if i < len(b) && b[i] == '}' {
		s.pop(f)
		return i + 1, false, nil
	}
	if f.begun {
		if i >= len(b) || b[i] != ',' {
			return 0, false, unexpected(b, i, "want , or } in an object")
		}
		i = skipSpace(b, i+1)
	}
	f.begun = true
	if i >= len(b) || b[i] != '"' {
		return 0, false, unexpected(b, i, "want a member name")
	}
	end, escaped, err := scanString(b, i)
	if err != nil {
		return 0, false, err
	}
	s.name = NameSpan{i + 1, end - 1, escaped}
	if !s.addName(f, s.name) {
		return 0, false, &SyntaxError{i, "second member with the same name"}
	}
	i = skipSpace(b, end)
	if i >= len(b) || b[i] != ':' {
		return 0, false, unexpected(b, i, "want : after a member name")
	}
	return i + 1, true, nil
}

func (s *Scanner) element(f *frame, i int) (next int, more bool, err *SyntaxError) {
	b := s.b
	i = skipSpace(b, i)
	switch {
	case i < len(b) && b[i] == ']':
		s.pop(f)
		return i + 1, false, nil
	case !f.begun:
		f.begun = true
		return i, true, nil
	case i < len(b) && b[i] == ',':
		return i + 1, true, nil
	}
	return 0, false, unexpected(b, i, "want , or ] in an array")
}
