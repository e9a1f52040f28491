package schema

import (
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// choices are the values of an enum, or the one of a const.
type choices struct {
	strings map[string]bool // the choices that are strings
	others  map[string]bool // the canonical text of the other choices
	written []json.RawMessage
}

func newChoices(doc *document, places []int32) *choices {
	c := &choices{}
	for _, i := range places {
		v := &doc.values[i]
		if v.kind == '"' {
			if c.strings == nil {
				c.strings = make(map[string]bool, len(places))
			}
			c.strings[v.text] = true
			c.written = append(c.written, quoteJSON(v.text))
			continue
		}
		if c.others == nil {
			c.others = make(map[string]bool, len(places))
		}
		c.others[string(doc.appendCanonical(nil, i))] = true
		c.written = append(c.written, jsonx.Compact(nil, []byte(v.text)))
	}
	return c
}

// include reports whether the value at a place is one of the choices.
func (c *choices) include(r *run, at int32) bool {
	v := &r.doc.values[at]
	if v.kind == '"' {
		return r.spend(len(v.text)/64) && c.strings[v.text]
	}
	if c.others == nil || !r.spend(int(v.next-at)+len(v.text)/64) {
		return false
	}
	r.key = r.doc.appendCanonical(r.key[:0], at)
	return c.others[string(r.key)]
}
