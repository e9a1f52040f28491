package config

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// node is one JSON value with its place in the file.
type node struct {
	kind    jsontext.Kind // one of n t " 0 { [ ; false is f
	pos     int           // offset in the file
	end     int           // offset after it
	text    string        // of a string, its content; of a number, its literal
	members []member      // of an object, in the order of the file
	items   []*node       // of an array
}

type member struct {
	name  string
	pos   int
	value *node
}

// member returns the first member of a name, or nil.
func (n *node) member(name string) *node {
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// syntaxError is the first place where the text is not JSON.
type syntaxError struct {
	pos       int
	text, fix string
}

func (e *syntaxError) Error() string { return e.text }

// parseTree reads one JSON value. Names given twice are kept: the caller
// reports them with both places. Any error is a *syntaxError.
func parseTree(src []byte) (*node, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(src), jsontext.AllowDuplicateNames(true))
	n, err := parseNode(d)
	if err == nil {
		if rest := bytes.TrimLeft(src[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
			return nil, &syntaxError{len(src) - len(rest), "text after the end of the JSON", "remove it, or put it inside the braces"}
		}
		return n, nil
	}
	var syntactic *jsontext.SyntacticError
	pos := len(src)
	if errors.As(err, &syntactic) {
		pos = min(int(syntactic.ByteOffset), len(src))
	}
	return nil, explain(src, pos)
}

func parseNode(d *jsontext.Decoder) (*node, error) {
	kind := d.PeekKind()
	if kind != '{' && kind != '[' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		n := &node{kind: kind, pos: int(d.InputOffset()) - len(value), end: int(d.InputOffset()), text: string(value)}
		if kind == '"' {
			text, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return nil, err
			}
			n.text = string(text)
		}
		return n, nil
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	n := &node{kind: kind, pos: int(d.InputOffset()) - 1}
	for {
		switch d.PeekKind() {
		case '}', ']':
			_, err := d.ReadToken()
			n.end = int(d.InputOffset())
			return n, err
		}
		var m member
		if kind == '{' {
			name, err := d.ReadValue()
			if err != nil {
				return nil, err
			}
			text, err := jsontext.AppendUnquote(nil, name)
			if err != nil {
				return nil, err
			}
			m.name, m.pos = string(text), int(d.InputOffset())-len(name)
		}
		value, err := parseNode(d)
		if err != nil {
			return nil, err
		}
		if m.value = value; kind == '{' {
			n.members = append(n.members, m)
		} else {
			n.items = append(n.items, value)
		}
	}
}

// explain returns the fault at pos in words. It quotes only a single character, because the text
// around it may be a secret.
func explain(src []byte, pos int) *syntaxError {
	e := &syntaxError{pos: pos, text: "this is not valid JSON", fix: "check the quotes, commas and braces around here"}
	before := bytes.TrimRight(src[:pos], " \t\r\n")
	rest := bytes.TrimLeft(src[pos:], " \t\r\n")
	r, _ := utf8.DecodeRune(rest)
	switch at := len(src) - len(rest); {
	case len(bytes.TrimSpace(src)) == 0:
		e.text, e.fix = "the file is empty", `write {"mcpServers": {}}`
	case r == utf8.RuneError && len(rest) > 0:
		e.text, e.fix = "bytes that are not UTF-8", "save the file as UTF-8"
	case len(src[pos:]) > 0 && src[pos] == '\\' || pos > 0 && src[pos-1] == '\\':
		e.text, e.fix = "unknown escape in a string", `write \\ for one backslash, as in "C:\\Users"`
	case inString(src, pos):
		e.text, e.fix = "a string without its closing quote, or with a line break or control character in it", `end it with " on the same line`
	case len(rest) == 0:
		e.text, e.fix = "the file ends too early", "close every { and ["
	case bytes.HasPrefix(rest, []byte("/*")):
		e.pos, e.text, e.fix = at, "a comment without an end", "end it with */"
	case r == '"' && len(before) > 0 && before[len(before)-1] != ':':
		e.pos, e.text, e.fix = at, "a comma or colon is missing before this string", "write , between members and : after a name"
	case r == '\'':
		e.pos, e.text, e.fix = at, "single quotes are not JSON", `write "`
	default:
		e.pos, e.text = at, "unexpected character "+quote(string(r))
	}
	return e
}

// inString reports whether pos is inside a string of src.
func inString(src []byte, pos int) bool {
	for i := 0; i < pos; {
		if src[i] != '"' {
			i++
			continue
		}
		end := stringEnd(src, i)
		if pos < end || pos == end && src[end-1] != '"' || pos == end && end == i+1 {
			return true
		}
		i = end
	}
	return false
}
