package model

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A splitter splits the streamed text from a model into text and calls. Its output does not depend
// on the chunks of the input.
//
// White space before and after a call is dropped, the rest of the text is emitted unchanged.
type splitter struct {
	tools []Tool
	known map[string]bool // their names
	text  func(string)
	call  func(name string, arguments json.RawMessage)

	buf    []byte // not decided
	state  splitState
	opened string // of inFence: the opening of the fence and the text after it, not emitted
	read   scan   // state of reading the value at the start of buf
	gaveUp int    // number of unfinished values that were given up
	cut    bool   // the text was cut off, so that a value that never ended is the start of a call, or of its arguments

	space string // emitted before the next text, dropped before a call
	drop  bool   // nothing but white space came after a call
	acted bool   // that call was an "Action:"
}

type splitState int

const (
	inText  splitState = iota
	inFence            // a fence that may hold calls, none was seen
	inCalls            // a fence with a call in it
	inCode             // a fence around something else, text up to its end
	inVain             // a result that the model has made up, dropped
)

const (
	space    = " \t\r\n"
	openTag  = "<tool_call>" // as some models are trained to write
	closeTag = "</tool_call>"
)

func newSplitter(tools []Tool, text func(string), call func(string, json.RawMessage)) *splitter {
	s := &splitter{tools: tools, known: map[string]bool{}, text: text, call: call}
	for _, t := range tools {
		s.known[t.Name] = true
	}
	return s
}

func (s *splitter) add(text string) {
	s.buf = append(s.buf, text...)
	s.run(false)
}

// end handles the rest at the end of the text. If cut is set, the text is incomplete.
func (s *splitter) end(cut bool) {
	s.cut = cut
	s.run(true)
	s.tell(s.opened)
	if !s.drop && s.space != "" {
		s.text(s.space)
	}
}

func (s *splitter) run(end bool) {
	for len(s.buf) > 0 && s.step(end) {
	}
}

// step processes the start of the buffer. It returns false if it needs more text, never at the
// end.
func (s *splitter) step(end bool) bool {
	switch s.state {
	case inText:
		return s.stepText(end)
	case inCode:
		return s.stepCode(end)
	case inVain:
		s.buf = nil
		return true
	}
	skip := space
	if s.state == inCalls {
		skip += ",;"
	}
	rest := bytes.TrimLeft(s.buf, skip)
	if s.state == inFence {
		s.opened += string(s.buf[:len(s.buf)-len(rest)])
	}
	s.buf = rest
	switch {
	case len(rest) == 0:
		return end
	case rest[0] == '{' || rest[0] == '[':
		return s.value(end)
	case prefixed(rest, openFunction) != absent:
		if is := s.written(end); is == present {
			return true
		} else if is == undecided && !end {
			return false
		}
		s.giveUp(1)
	case s.state == inFence:
		s.release(0)
	case rest[0] == '`':
		n := ticks(rest)
		if n == len(rest) && !end {
			return false
		}
		s.state = inText
		if n >= 3 {
			s.buf = rest[n:]
		}
	case bytes.HasPrefix(rest, []byte(closeTag)):
		s.buf, s.state = rest[len(closeTag):], inText
	case strings.HasPrefix(closeTag, string(rest)) && !end:
		return false
	default:
		s.state = inText
	}
	return true
}

func (s *splitter) stepText(end bool) bool {
	if s.acted && s.drop {
		rest := bytes.TrimLeft(s.buf, space)
		switch is := prefixed(rest, observation); {
		case is == present:
			s.state = inVain
			return true
		case is == undecided && !end:
			return false
		}
	}
	i := bytes.IndexAny(s.buf, "{[`<"+openAction[:1])
	switch {
	case i < 0:
		s.take(len(s.buf))
		return true
	case i > 0:
		s.take(i)
		return true
	}
	switch s.buf[0] {
	case '`':
		return s.fence(end)
	case '{', '[':
		return s.value(end)
	}
	tag := prefixed(s.buf, openTag)
	if tag == present {
		s.opened, s.buf, s.state = openTag, s.buf[len(openTag):], inFence
		return true
	}
	is := s.written(end)
	switch {
	case is == present:
	case (is == undecided || tag == undecided) && !end:
		return false
	case is == undecided:
		s.giveUp(1)
	default:
		s.read = scan{}
		s.take(1)
	}
	return true
}

// fence processes back quotes in the text.
func (s *splitter) fence(end bool) bool {
	n := ticks(s.buf)
	if n == len(s.buf) && !end {
		return false
	}
	if n < 3 {
		s.take(n)
		return true
	}
	const longest = 80 // of what follows an opening fence in its line
	line := s.buf[n:min(len(s.buf), n+longest)]
	stop := bytes.IndexAny(line, "\n`{[")
	switch {
	case stop < 0 && len(line) < longest && !end:
		return false
	case stop < 0 || line[stop] == '`': // the start of a line that goes on, or one in its own line
		s.take(n)
	case line[stop] != '\n': // such as ```{"tool": "add"}```
		s.opened, s.buf, s.state = string(s.buf[:n+stop]), s.buf[n+stop:], inFence
	default:
		switch language := strings.ToLower(string(bytes.TrimSpace(line[:stop]))); {
		case language == "", strings.HasPrefix(language, "json"), strings.HasPrefix(language, "tool"):
			s.opened, s.buf, s.state = string(s.buf[:n+stop+1]), s.buf[n+stop+1:], inFence
		default:
			s.take(n + stop + 1)
			s.state = inCode
		}
	}
	return true
}

func (s *splitter) stepCode(end bool) bool {
	i := bytes.IndexByte(s.buf, '`')
	if i != 0 {
		if i < 0 {
			i = len(s.buf)
		}
		s.take(i)
		return true
	}
	n := ticks(s.buf)
	if n == len(s.buf) && !end {
		return false
	}
	s.take(n)
	if n >= 3 {
		s.state = inText
	}
	return true
}

// value processes a bracket.
func (s *splitter) value(end bool) bool {
	want := byte('"') // the next character of a call
	if s.buf[0] == '[' {
		want = '{'
	}
	switch rest := bytes.TrimLeft(s.buf[1:], space); {
	case len(rest) == 0 && !end:
		return false
	case len(rest) == 0 || rest[0] != want:
		s.release(1)
		return true
	}
	n, whole := s.read.to(s.buf)
	if !whole {
		if !end {
			return false
		}
		s.giveUp(1)
		return true
	}
	s.read = scan{}
	calls := callsIn(s.buf[:n], s.known, 3)
	if calls == nil {
		s.release(n)
		return true
	}
	for _, c := range calls {
		s.call(c.Name, c.Arguments)
	}
	s.opened, s.space, s.drop = "", "", true
	s.buf = s.buf[n:]
	if s.state == inFence {
		s.state = inCalls
	}
	return true
}

// giveUp emits n bytes at the beginning of a call that has no end. They may belong to a sentence, and a
// call may follow. The attempts are bounded, because each reads all of the rest.
func (s *splitter) giveUp(n int) {
	s.read = scan{}
	s.gaveUp++
	if s.cut || s.gaveUp > 8 {
		s.release(len(s.buf))
		return
	}
	s.release(n)
	s.state = inText
}

// release emits the opening of the fence and n bytes, which are not a call.
func (s *splitter) release(n int) {
	code := s.opened != "" && s.opened[0] == '`' || s.state == inCalls
	s.tell(s.opened)
	s.opened = ""
	s.take(n)
	switch {
	case code:
		s.state = inCode
	default:
		s.state = inText
	}
}

// take emits the first n bytes as text.
func (s *splitter) take(n int) {
	s.tell(string(s.buf[:n]))
	s.buf = s.buf[n:]
}

func (s *splitter) tell(text string) {
	if s.drop {
		if text = strings.TrimLeft(text, space); text == "" {
			return
		}
		s.drop = false
	}
	shown := strings.TrimRight(text, space)
	if shown == "" {
		s.space += text
		return
	}
	s.text(s.space + shown)
	s.space = text[len(shown):]
}

func ticks(b []byte) int { return len(b) - len(bytes.TrimLeft(b, "`")) }

// scan is how far a JSON value was read, with no look at what it says.
type scan struct {
	at, depth       int
	quoted, escaped bool
}

// to reads on. It returns the length of the value once it is whole.
func (c *scan) to(b []byte) (n int, whole bool) {
	for ; c.at < len(b); c.at++ {
		switch ch := b[c.at]; {
		case c.escaped:
			c.escaped = false
		case c.quoted && ch == '\\':
			c.escaped = true
		case ch == '"':
			c.quoted = !c.quoted
		case c.quoted:
		case ch == '{' || ch == '[':
			c.depth++
		case ch == '}' || ch == ']':
			if c.depth--; c.depth == 0 {
				return c.at + 1, true
			}
		}
	}
	return 0, false
}
