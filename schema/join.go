package schema

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// maxJoined bounds how deep schemas in an allOf have an allOf of their own.
const maxJoined = 8

// shaping are the keywords that describe the form of a value. The others only exclude values.
var shaping = []string{"type", "properties", "additionalProperties", "patternProperties", "items", "prefixItems", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}

func (s schemaObject) shapes() bool {
	return slices.ContainsFunc(s, func(m member) bool { return slices.Contains(shaping, m.name) })
}

// joined returns s with the schemas of its allOf in it; true and false, and references that lead nowhere, stay there.
func (r *references) joined(s schemaObject, depth int) schemaObject {
	if s.get("allOf") == nil || depth == maxJoined { // the form of each question comes here
		return s
	}
	list := s.list("allOf")
	if len(list) == 0 {
		return s
	}
	var rest []json.RawMessage
	out := s.without("allOf")
	for _, raw := range list {
		part := r.resolve(raw)
		if part == nil || part.get("$ref") != nil {
			rest = append(rest, raw)
			continue
		}
		out = out.join(r.joined(part, depth+1))
	}
	if rest != nil {
		out = out.with(schemaObject{{name: "allOf", value: appendArray(nil, append(rest, out.list("allOf")...))}})
	}
	return out
}

// join returns s with what another schema for the same value says too. A property of both must fit both. Of other
// keywords that both have, the one of s stays: a value is checked against the whole schema anyway.
func (s schemaObject) join(other schemaObject) schemaObject {
	out := slices.Clone(s)
	for _, m := range other {
		i := slices.IndexFunc(out, func(have member) bool { return have.name == m.name })
		switch {
		case i < 0:
			out = append(out, m)
		case m.name == "properties":
			out[i].value = joinProperties(out[i].value, m.value)
		case m.name == "required" || m.name == "allOf":
			out[i].value = appendArray(nil, append(s.list(m.name), other.list(m.name)...))
		}
	}
	return out
}

func joinProperties(a, b json.RawMessage) json.RawMessage {
	have, err := members(a)
	more, otherErr := members(b)
	if err != nil || otherErr != nil {
		return a
	}
	have = slices.Clone(have)
	for _, m := range more {
		i := slices.IndexFunc(have, func(h member) bool { return h.name == m.name })
		switch {
		case i < 0:
			have = append(have, m)
		case !bytes.Equal(bytes.TrimSpace(have[i].value), bytes.TrimSpace(m.value)):
			both := appendArray([]byte(`{"allOf":`), []json.RawMessage{have[i].value, m.value})
			have[i].value = append(both, '}')
		}
	}
	return schemaObject(have).raw()
}

func appendArray(dst []byte, list []json.RawMessage) []byte {
	dst = append(dst, '[')
	for i, raw := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, bytes.TrimSpace(raw)...)
	}
	return append(dst, ']')
}

// Variants returns the forms that a value of f may have, if there are several: for each schema of its anyOf or oneOf
// that says more than which values are excluded, the whole schema of f with that one joined in; otherwise one for each
// of the types that f names. Null is not among them. Variants returns nil if together they would be larger than 1 MiB.
func (f *Field) Variants() []Field {
	list, _ := members(f.Schema)
	s := schemaObject(list)
	refs := f.refs.anew()
	for _, key := range []string{"anyOf", "oneOf"} {
		var out []Field
		several := false
		for _, raw := range s.list(key) {
			alt := refs.resolve(raw)
			if slices.Equal(alt.types(), []string{"null"}) {
				continue
			}
			if *refs.left -= len(f.Schema); *refs.left < 0 {
				return nil // too many of a large schema
			}
			several = several || alt.shapes()
			out = append(out, f.variant(alt.join(s.without(key)), refs))
		}
		if several && len(out) > 1 {
			return out
		}
	}
	types := f.Types()
	if len(types) < 2 {
		return nil
	}
	var out []Field
	for _, t := range types {
		one := schemaObject{{name: "type", value: jsonx.AppendString(nil, t)}}
		v := f.variant(one.join(s.without("type")), refs)
		v.Title = t
		out = append(out, v)
	}
	return out
}

func (f *Field) variant(s schemaObject, refs *references) Field {
	v := newField(f.Name, s.raw(), refs)
	v.Required, v.check, v.outer, v.element = f.Required, f.check, f.outer, f.element
	return v
}

// Places returns the fields for the first elements of a list whose schema describes each by its place: prefixItems, and
// before 2020-12 an array of items. They have no names.
func (f *Field) Places() []Field {
	list, _ := members(f.Schema)
	s := schemaObject(list)
	places := s.list("prefixItems")
	if places == nil {
		places = s.list("items")
	}
	refs := f.refs.anew()
	var out []Field
	for _, raw := range places {
		e := newField("", raw, refs)
		e.check = f.check
		out = append(out, e)
	}
	return out
}
