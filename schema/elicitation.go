package schema

import (
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// elicitationFormats are the formats that a form may ask for. The others are
// left out of the schema and checked when the answer is decoded.
var elicitationFormats = map[string]bool{"email": true, "uri": true, "date": true, "date-time": true}

// Elicitation returns the schema of the type in the restricted form that
// elicitation/create allows as requestedSchema: a flat object of strings,
// numbers, booleans, choices and lists of choices. A choice with titles (tag
// enumTitles) is a oneOf, and a list of such choices an anyOf.
//
// It fails, naming the field, if T is not a struct or a field is not flat. Constraints that the
// restricted form does not have (patterns, exclusive bounds of floating-point numbers, multiples)
// are left out; [Type.Decode] checks them in the answer.
//
// Specification: 2026-07-28, client/elicitation, Requested Schema (ELIC-26-013).
// Lists of choices and titles exist since 2025-11-25.
func (t *Type) Elicitation() (json.RawMessage, error) { return t.elicitation() }

func (t *Type) flat() (json.RawMessage, error) {
	n := t.root.node
	if n.kind != kindStruct {
		return nil, fmt.Errorf("schema: %s cannot be an elicitation form: it must be a struct", t.typ)
	}
	e := emitter{buf: []byte(`{"type":"object","properties":{`)}
	var required []string
	for i := range n.fields {
		f := &n.fields[i]
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = append(jsonx.AppendString(e.buf, f.name), ':', '{')
		if problem := e.primitive(&f.spec); problem != "" {
			return nil, fmt.Errorf("schema: %s cannot be an elicitation form: field %s (%s) %s; a form is flat: strings, numbers, booleans, choices and lists of choices", t.typ, f.goName, f.node.typ, problem)
		}
		e.buf = append(e.buf, '}')
		if f.required {
			required = append(required, f.name)
		}
	}
	e.buf = append(e.buf, '}')
	if required != nil {
		e.list("required", len(required), func(i int) { e.buf = jsonx.AppendString(e.buf, required[i]) })
	}
	e.buf = append(e.buf, '}')
	return e.buf, nil
}

// primitive writes the members of a PrimitiveSchemaDefinition. It returns the reason why the
// place cannot be one, or "".
func (e *emitter) primitive(s *spec) string {
	n, r := s.node, s.rules
	if r == nil {
		r = newRules(n)
	}
	if s.nullable {
		return "may be null"
	}
	switch n.kind {
	case kindString, kindTime, kindDuration, kindText, kindBool, kindInt, kindUint, kindFloat, kindNumber:
		if r.enum != nil && n.kind != kindString {
			return "is a choice of numbers"
		}
		e.raw("type", string(quoteJSON(n.jsonType())))
	case kindSlice, kindArray:
		item := n.elem
		if item.node.kind != kindString || item.rules == nil || item.rules.enum == nil || item.nullable {
			return "is a list, but not of choices"
		}
		e.raw("type", `"array"`)
	case kindStruct, kindMap:
		return "is an object"
	case kindBytes:
		return "is binary"
	default:
		return "has no fixed type"
	}
	if r.title != "" {
		e.raw("title", string(quoteJSON(r.title)))
	}
	if r.doc != "" {
		e.raw("description", string(quoteJSON(r.doc)))
	}
	switch n.kind {
	case kindString, kindText:
		if r.enum != nil {
			e.choices(r, "oneOf")
			break
		}
		if r.minSize > 0 {
			e.raw("minLength", fmt.Sprint(r.minSize))
		}
		if r.maxSize >= 0 {
			e.raw("maxLength", fmt.Sprint(r.maxSize))
		}
		if r.format != nil && elicitationFormats[r.format.name] {
			e.raw("format", string(quoteJSON(r.format.name)))
		}
	case kindTime:
		e.raw("format", `"date-time"`)
	case kindInt, kindUint, kindFloat, kindNumber:
		lo, hi := inclusive(n, r)
		if lo != "" {
			e.raw("minimum", lo)
		}
		if hi != "" {
			e.raw("maximum", hi)
		}
	case kindSlice, kindArray:
		lo, hi := r.minSize, r.maxSize
		if n.kind == kindArray {
			lo, hi = n.bits, n.bits
		}
		if lo > 0 {
			e.raw("minItems", fmt.Sprint(lo))
		}
		if hi >= 0 {
			e.raw("maxItems", fmt.Sprint(hi))
		}
		e.key("items")
		e.buf = append(e.buf, '{')
		if items := n.elem.rules; items.enumTitles == nil {
			e.raw("type", `"string"`)
			e.choices(items, "")
		} else {
			e.choices(items, "anyOf")
		}
		e.buf = append(e.buf, '}')
	}
	if r.def != nil {
		e.raw("default", string(r.def))
	}
	return ""
}

// choices writes an enum, or with titles a list of constants under key.
func (e *emitter) choices(r *rules, key string) {
	if r.enumTitles == nil {
		e.list("enum", len(r.enum), func(i int) { e.buf = append(e.buf, r.enum[i]...) })
		return
	}
	e.list(key, len(r.enum), func(i int) {
		e.buf = append(e.buf, `{"const":`...)
		e.buf = append(e.buf, r.enum[i]...)
		e.buf = append(e.buf, `,"title":`...)
		e.buf = append(jsonx.AppendString(e.buf, r.enumTitles[i]), '}')
	})
}

// inclusive returns the bounds of a number as minimum and maximum, "" for
// none. For integers an exclusive bound is the next integer.
func inclusive(n *node, r *rules) (lo, hi string) {
	if r.min != nil {
		lo = r.min.lit
	}
	if r.max != nil {
		hi = r.max.lit
	}
	if n.kind != kindInt && n.kind != kindUint {
		return lo, hi
	}
	one := big.NewInt(1)
	if r.exMin != nil {
		next := new(big.Int).Add(floor(r.exMin.rat), one)
		if r.min == nil || new(big.Rat).SetInt(next).Cmp(r.min.rat) > 0 {
			lo = next.String()
		}
	}
	if r.exMax != nil {
		next := new(big.Int).Sub(ceil(r.exMax.rat), one)
		if r.max == nil || new(big.Rat).SetInt(next).Cmp(r.max.rat) < 0 {
			hi = next.String()
		}
	}
	return lo, hi
}
