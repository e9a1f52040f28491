package schema

import (
	"encoding/json"
	"strings"
)

// references resolves each $ref in a schema document for a [Form]. It is immutable.
type references struct {
	doc  json.RawMessage
	defs map[string]json.RawMessage // the members of $defs and definitions, by pointer and by $anchor
	left *int                       // bytes of named schemas that may still be read
}

const (
	maxReferenced = 16 << 20 // bytes of schemas that the fields of a form may take in by reference
	maxNested     = 1 << 20  // the same for the fields of one object in it
	maxInRow      = 8        // references that lead to references
)

func newReferences(doc json.RawMessage) *references {
	r := &references{doc: doc, defs: map[string]json.RawMessage{}, left: new(maxReferenced)}
	list, _ := members(doc)
	for _, where := range []string{"$defs", "definitions"} {
		defs, _ := members(orEmpty(schemaObject(list).get(where)))
		for _, d := range defs {
			r.defs["/"+where+"/"+escapePointer.Replace(d.name)] = d.value
			def, _ := members(d.value)
			if anchor := schemaObject(def).text("$anchor"); anchor != "" {
				r.defs[anchor] = d.value
			}
		}
	}
	return r
}

var (
	escapePointer   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")
)

// anew returns r with nothing read yet, for another look at the same document.
func (r *references) anew() *references { return &references{r.doc, r.defs, new(maxNested)} }

// resolve returns the schema in raw, a part of the document, with a $ref into the document replaced
// by its target. Keywords beside the $ref win. A schema that would make the whole larger than
// maxReferenced, or maxNested, stays a reference, because many small ones may name one huge one.
func (r *references) resolve(raw json.RawMessage) schemaObject {
	list, err := members(raw)
	if err != nil {
		return nil // true and false
	}
	s := schemaObject(list)
	for range maxInRow {
		pointer, local := strings.CutPrefix(s.text("$ref"), "#")
		if !local {
			return s
		}
		target, ok := r.find(pointer)
		if *r.left -= len(target); !ok || *r.left < 0 {
			return s
		}
		if list, err = members(target); err != nil {
			return s
		}
		s = schemaObject(list).with(s.without("$ref"))
	}
	return s
}

// find returns the target of a JSON pointer.
func (r *references) find(pointer string) (json.RawMessage, bool) {
	if target, ok := r.defs[pointer]; ok {
		return target, true
	}
	tokens := strings.Split(pointer, "/")
	if tokens[0] != "" {
		return nil, false // an $anchor elsewhere
	}
	target := r.doc
	for _, token := range tokens[1:] {
		if *r.left -= len(target); *r.left < 0 {
			return nil, false
		}
		list, err := members(target)
		if err != nil {
			return nil, false
		}
		if target = schemaObject(list).get(unescapePointer.Replace(token)); target == nil {
			return nil, false
		}
	}
	return target, true
}

// fields are the properties of an object schema.
func (r *references) fields(s schemaObject) ([]Field, error) {
	properties, err := members(orEmpty(s.get("properties")))
	if err != nil {
		return nil, err
	}
	required := map[string]bool{}
	for _, name := range s.list("required") {
		required[shown(name)] = true
	}
	out := make([]Field, 0, len(properties))
	for _, p := range properties {
		f := newField(p.name, p.value, r)
		f.Required = required[p.name]
		out = append(out, f)
	}
	return out, nil
}
