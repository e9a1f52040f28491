package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Some models are trained to write calls in forms that are not a JSON object:
//
//	<function=NAME>{"a": 1}</function>
//
//	<function=NAME>
//	<parameter=a>
//	1
//	</parameter>
//	</function>
//
//	Action: NAME
//	Action Input: {"a": 1}
//
// They count only with the name of a tool of the request. A model that writes the last one may go on
// with a result that it has made up, after "Observation:"; the rest of the text is dropped then.
const (
	openFunction  = "<function="
	closeFunction = "</function>"
	openParameter = "<parameter="
	closeParam    = "</parameter>"
	openAction    = "Action:"
	openInput     = "Action Input:"
	observation   = "Observation:"

	maxHead = 300 // bytes of such a call before its arguments
)

// found is what a reader knows of the text at its place.
type found int

const (
	undecided found = iota // more text is needed
	absent
	present
)

// prefixed reports whether b begins with text; it is undecided if b is too short to tell.
func prefixed(b []byte, text string) found {
	switch {
	case bytes.HasPrefix(b, []byte(text)):
		return present
	case strings.HasPrefix(text, string(b[:min(len(b), len(text))])):
		return undecided
	}
	return absent
}

// head reads a call up to its arguments, which begin at the place at.
func (s *splitter) head() (name string, at int, action bool, is found) {
	b := s.buf[:min(len(s.buf), maxHead)]
	more := func() found { // the head is too short, or it is not one
		if len(b) == maxHead {
			return absent
		}
		return undecided
	}
	if is := prefixed(b, openFunction); is != absent {
		n := bytes.IndexByte(b, '>')
		if is == undecided || n < 0 {
			return "", 0, false, more()
		}
		name, at = string(b[len(openFunction):n]), n+1
	} else if is := prefixed(b, openAction); is != absent {
		n := bytes.IndexByte(b, '\n')
		if is == undecided || n < 0 {
			return "", 0, true, more()
		}
		name, action = strings.Trim(string(b[len(openAction):n]), "`*"+space), true
		at = len(b) - len(bytes.TrimLeft(b[n:], space))
		if is := prefixed(b[at:], openInput); is == undecided {
			return "", 0, true, more()
		} else if is == absent {
			return "", 0, true, absent
		}
		at += len(openInput)
	} else {
		return "", 0, false, absent
	}
	if !s.known[name] {
		return "", 0, action, absent
	}
	at = len(b) - len(bytes.TrimLeft(b[at:], space))
	if n := ticks(b[at:]); action && n > 0 { // a fence around the arguments
		line := bytes.IndexByte(b[at:], '{')
		if line < 0 {
			return "", 0, true, more()
		}
		at += line
	}
	if at == len(b) {
		return "", 0, action, more()
	}
	return name, at, action, present
}

// written reads a call of one of these forms at the start of the buffer, and emits it.
func (s *splitter) written(end bool) found {
	name, at, action, is := s.head()
	if is != present {
		return is
	}
	var arguments json.RawMessage
	n := 0 // length of the arguments
	switch b := s.buf[at:]; {
	case b[0] == '{':
		begun := s.read
		var whole bool
		if n, whole = s.read.to(b); !whole {
			return undecided
		}
		s.read = begun // until it is decided what follows
		if arguments = b[:n]; !json.Valid(arguments) {
			arguments = repair(arguments)
		}
		if !json.Valid(arguments) {
			return absent
		}
		arguments = bytes.Clone(arguments)
	case action:
		return absent
	case prefixed(b, openParameter) == undecided && prefixed(b, closeFunction) == undecided:
		return undecided
	default:
		i := bytes.Index(b[s.read.at:], []byte(closeFunction))
		if i < 0 {
			if prefixed(b, openParameter) == absent && prefixed(b, closeFunction) == absent {
				return absent
			}
			s.read.at = max(0, len(b)-len(closeFunction))
			return undecided
		}
		n = s.read.at + i
		if arguments = s.parameters(name, b[:n]); arguments == nil {
			return absent
		}
	}
	rest := s.buf[at+n:]
	if !action {
		after := bytes.TrimLeft(rest, space)
		switch is := prefixed(after, closeFunction); {
		case is == undecided && !end:
			return undecided
		case is == present:
			rest = after[len(closeFunction):]
		}
	} else if after := bytes.TrimLeft(rest, space); ticks(after) > 0 || len(after) == 0 {
		if ticks(after) == len(after) && !end {
			return undecided
		}
		rest = after[ticks(after):]
	}
	s.call(name, arguments)
	s.opened, s.space, s.drop, s.read = "", "", true, scan{}
	s.buf, s.acted = rest, action
	if s.state == inFence {
		s.state = inCalls
	}
	return present
}

// parameters returns the arguments in the form of parameters, or nil if the text is not in that form.
// Text that is JSON is the value of a property, unless its schema says that it is a string.
func (s *splitter) parameters(tool string, text []byte) json.RawMessage {
	var schema struct {
		Properties map[string]struct{ Type any }
	}
	if i := slices.IndexFunc(s.tools, func(t Tool) bool { return t.Name == tool }); i >= 0 {
		_ = json.Unmarshal(s.tools[i].Schema, &schema)
	}
	arguments := map[string]json.RawMessage{}
	for rest := strings.Trim(string(text), space); rest != ""; rest = strings.TrimLeft(rest, space) {
		after, ok := strings.CutPrefix(rest, openParameter)
		name, after, named := strings.Cut(after, ">")
		value, after, closed := strings.Cut(after, closeParam)
		if !ok || !named || !closed {
			return nil
		}
		value = strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")
		if schema.Properties[name].Type != "string" && json.Valid([]byte(value)) {
			arguments[name] = json.RawMessage(value)
		} else {
			arguments[name], _ = json.Marshal(value)
		}
		rest = after
	}
	raw, _ := json.Marshal(arguments)
	return raw
}
