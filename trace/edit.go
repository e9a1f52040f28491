package trace

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// place is the position of a value in a message. The elements of an array share the place of the
// array.
type place struct {
	name   string // member name, empty at the top
	parent *place // nil at the top
	secret bool   // set by the redactor for a whole subtree
}

// editor rewrites single values of a JSON text and keeps every other byte.
type editor struct {
	// enter, if set, is called for each object member before its value; rest begins with the
	// value.
	enter func(p *place, rest []byte)
	// leaf is called for each string, number and literal and returns its replacement as JSON, or
	// nil to keep it.
	leaf func(p *place, value jsontext.Value) []byte

	src  []byte
	dec  *jsontext.Decoder
	out  []byte
	done int // src[:done] is in out, edited
}

var errTrailing = errors.New("more than one JSON value")

// edit returns src with the replacements made; src itself if there are none.
func (e *editor) edit(src []byte) ([]byte, error) {
	e.src, e.out, e.done = src, nil, 0
	e.dec = jsontext.NewDecoder(bytes.NewBuffer(src), lax)
	if err := e.value(&place{}); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(src[e.dec.InputOffset():])) > 0 {
		return nil, errTrailing
	}
	if e.done == 0 {
		return src, nil
	}
	return append(e.out, src[e.done:]...), nil
}

func (e *editor) value(p *place) error {
	switch e.dec.PeekKind() {
	case '{':
		if _, err := e.dec.ReadToken(); err != nil {
			return err
		}
		for e.dec.PeekKind() != '}' {
			tok, err := e.dec.ReadToken()
			if err != nil {
				return err
			}
			child := &place{name: tok.String(), parent: p, secret: p.secret}
			if e.enter != nil {
				e.dec.PeekKind() // moves past the colon to the value
				rest := bytes.TrimLeft(e.src[e.dec.InputOffset():], " \t\r\n:")
				e.enter(child, rest)
			}
			if err := e.value(child); err != nil {
				return err
			}
		}
		_, err := e.dec.ReadToken()
		return err
	case '[':
		if _, err := e.dec.ReadToken(); err != nil {
			return err
		}
		for e.dec.PeekKind() != ']' {
			if err := e.value(p); err != nil {
				return err
			}
		}
		_, err := e.dec.ReadToken()
		return err
	}
	value, err := e.dec.ReadValue()
	if err != nil {
		return err
	}
	if with := e.leaf(p, value); with != nil {
		end := int(e.dec.InputOffset())
		e.out = append(e.out, e.src[e.done:end-len(value)]...)
		e.out = append(e.out, with...)
		e.done = end
	}
	return nil
}
