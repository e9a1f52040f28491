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
	object int    // where the object of the member begins
	depth  int    // number of objects that it is in
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
	// follows, if set, is called for each string in an array after another, and reports whether it
	// is a secret.
	follows func(p *place, i int, before jsontext.Value, nested, last bool) bool

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
	if err := e.value(&place{}, false); err != nil {
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

// value edits the next value; nested says that it is an element of an array.
func (e *editor) value(p *place, nested bool) error {
	switch e.dec.PeekKind() {
	case '{':
		if _, err := e.dec.ReadToken(); err != nil {
			return err
		}
		object := int(e.dec.InputOffset()) - 1
		for e.dec.PeekKind() != '}' {
			tok, err := e.dec.ReadToken()
			if err != nil {
				return err
			}
			child := &place{name: tok.String(), parent: p, object: object, depth: p.depth + 1, secret: p.secret}
			if e.enter != nil {
				e.dec.PeekKind() // moves past the colon to the value
				rest := bytes.TrimLeft(e.src[e.dec.InputOffset():], " \t\r\n:")
				e.enter(child, rest)
			}
			if err := e.value(child, false); err != nil {
				return err
			}
		}
		_, err := e.dec.ReadToken()
		return err
	case '[':
		if _, err := e.dec.ReadToken(); err != nil {
			return err
		}
		var before jsontext.Value // if it is a string
		for i := 0; e.dec.PeekKind() != ']'; i++ {
			of, text := p, e.dec.PeekKind() == '"'
			from := e.dec.InputOffset()
			if text && before != nil && e.follows != nil && !p.secret {
				rest := bytes.TrimLeft(e.src[from:], " \t\r\n,")
				after := bytes.TrimLeft(rest[quoted(rest):], " \t\r\n")
				if e.follows(p, i, before, nested, len(after) > 0 && after[0] == ']') {
					of = &place{name: p.name, parent: p.parent, secret: true}
				}
			}
			if err := e.value(of, true); err != nil {
				return err
			}
			before = nil
			if text {
				before = bytes.TrimLeft(e.src[from:e.dec.InputOffset()], " \t\r\n,")
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

// quoted returns the length of the JSON string at the beginning of b.
func quoted(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}
