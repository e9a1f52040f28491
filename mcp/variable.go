package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/yosida95/uritemplate/v3"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/urimatch"
	"github.com/patchbay-dev/patchbay/schema"
)

// variable says how one variable of a URI template becomes JSON for its field.
type variable struct {
	name string
	kind string // type in JSON Schema; of a list, that of its items; empty: any
	list bool
}

// bindVariables finds the field of each variable of a template in the schema of its In. It refuses
// variables without a field, required fields without a variable, and fields that cannot be decoded
// from text.
func bindVariables(t *urimatch.Template, in reflect.Type, typ *schema.Type) ([]variable, error) {
	if err := checkIn(in); err != nil {
		return nil, err
	}
	form, err := schema.FormOf(typ.JSON())
	if err != nil {
		return nil, err
	}
	rest, open := jsonx.Lookup(typ.JSON(), "additionalProperties")
	open = (open || len(form.Fields) == 0) && string(rest) != "false" // a map, or any value
	var out []variable
	for _, name := range t.Names() {
		raw := rest
		if f := form.Field(name); f != nil {
			raw = f.Schema
		} else if !open {
			return nil, fmt.Errorf("variable {%s} has no field in %s; add one with the tag `json:%q`", name, in, name)
		}
		v := variable{name: name, kind: typeIn(raw)}
		if v.kind == "array" {
			items, _ := jsonx.Lookup(raw, "items")
			v.list, v.kind = true, typeIn(items)
		}
		if v.kind == "object" || v.kind == "array" {
			return nil, fmt.Errorf("the field of variable {%s} in %s is an object, or a list of lists, which no part of a URI can be; use a string, a number, a boolean or a list of them", name, in)
		}
		out = append(out, v)
	}
	for _, f := range form.Fields {
		if f.Required && !slices.Contains(t.Names(), f.Name) {
			return nil, fmt.Errorf("field %q of %s is required, but is not a variable of the template; add {%s} to it, or the option omitempty to the field", f.Name, in, f.Name)
		}
	}
	return out, nil
}

// typeIn returns the type of a schema; of several types, the first other than null.
func typeIn(raw json.RawMessage) string {
	typ, ok := jsonx.Lookup(raw, "type")
	if !ok {
		return ""
	}
	for one := range jsonx.Elements(typ) {
		if name, err := jsonx.Unquote(one); err == nil && name != "null" {
			return name
		}
	}
	name, _ := jsonx.Unquote(typ)
	return name
}

// bound builds an object from the values that a URI template matched.
func bound(variables []variable, vars uritemplate.Values) json.RawMessage {
	out := []byte{'{'}
	for _, v := range variables {
		value := vars.Get(v.name)
		if !value.Valid() {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsonx.AppendString(out, v.name), ':')
		if value.T == uritemplate.ValueTypeString && !v.list {
			out = v.append(out, value.String())
			continue
		}
		out = append(out, '[')
		for i, part := range value.V {
			if i > 0 {
				out = append(out, ',')
			}
			out = v.append(out, part)
		}
		out = append(out, ']')
	}
	return append(out, '}')
}

// append appends the text of a value: unquoted if it is the number or boolean that the field needs,
// else as a string, which the field's schema accepts or refuses.
func (v *variable) append(dst []byte, text string) []byte {
	kind := jsonx.KindOf([]byte(text))
	if jsonx.Valid([]byte(text), 1) == nil && len(text) > 0 && text[0] > ' ' && text[len(text)-1] > ' ' {
		switch v.kind {
		case "integer", "number":
			if kind == '0' {
				return append(dst, text...)
			}
		case "boolean":
			if kind == 't' || kind == 'f' {
				return append(dst, text...)
			}
		}
	}
	return jsonx.AppendString(dst, text)
}
