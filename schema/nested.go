package schema

import (
	"encoding/json"
	"slices"
)

// Outline returns a schema as one field without a name, to be shown. It does not compile the
// schema: Parse of the field and of its parts checks only kinds.
func Outline(raw json.RawMessage) Field { return newField("", raw, newReferences(raw)) }

// Types returns the JSON types that the schema names, without null; none if it names no type.
func (f *Field) Types() []string {
	list, _ := members(f.Schema)
	return slices.DeleteFunc(schemaObject(list).types(), func(t string) bool { return t == "null" })
}

// Members returns the fields of an object, in the order of the schema; none if the schema names
// none. A schema may contain itself: the caller bounds how deep it looks.
func (f *Field) Members() []Field {
	list, _ := members(f.Schema)
	out, _ := f.refs.anew().fields(list)
	for i := range out {
		out[i].check, out[i].outer = f.check, f.part()
	}
	return out
}

// Elements returns the field for each element of a list, under the name of the list. It returns
// nil if the schema does not say, and for a field that is not a list.
func (f *Field) Elements() *Field {
	list, _ := members(f.Schema)
	items := schemaObject(list).get("items")
	if items == nil || items[0] != '{' || !slices.Contains(f.Types(), "array") {
		return nil
	}
	e := newField(f.Name, items, f.refs.anew())
	e.check, e.outer, e.element = f.check, f.part(), true
	return &e
}

// Others returns the field for the members of an object that Members does not name: its
// additionalProperties. It returns nil if the schema does not say.
func (f *Field) Others() *Field {
	list, _ := members(f.Schema)
	others := schemaObject(list).get("additionalProperties")
	if others == nil || others[0] != '{' {
		return nil
	}
	o := newField("", others, f.refs.anew())
	return &o
}

// Alternatives returns the schemas of anyOf and oneOf, without null.
func (f *Field) Alternatives() []Field {
	list, _ := members(f.Schema)
	refs := f.refs.anew()
	var out []Field
	for _, key := range []string{"anyOf", "oneOf"} {
		for _, raw := range schemaObject(list).list(key) {
			alt := newField(f.Name, raw, refs)
			if slices.Equal(refs.resolve(raw).types(), []string{"null"}) {
				continue
			}
			alt.check, alt.outer, alt.element = f.check, f.outer, f.element
			out = append(out, alt)
		}
	}
	return out
}

// part returns the outer field for a part of f; nil for the whole document.
func (f *Field) part() *Field {
	if f.Name == "" && f.outer == nil && !f.element {
		return nil
	}
	return f
}
