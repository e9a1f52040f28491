package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Form is the flat view of an object schema that people can fill in, for
// elicitation dialogs and for arguments on a command line. It is immutable and
// may be used by several goroutines at once.
type Form struct {
	Title, Description string
	Fields             []Field // in the order of the schema

	check *Validator
}

// Field is one property of a form.
type Field struct {
	Name        string
	Title       string // empty: none; show the name
	Description string
	Kind        Kind
	Required    bool
	Default     json.RawMessage // nil: none
	Options     []Option        // of Enum and MultiEnum
	Format      string
	Pattern     string

	// Min and Max bound the value of a Number or Integer, the characters of a String, and the
	// choices of a MultiEnum, both inclusive. Empty: no bound. Other bounds are in Schema and are
	// checked too.
	Min, Max json.Number

	// Schema is the property's schema, with a local $ref resolved.
	Schema json.RawMessage

	nullable, text bool // null, or a string, is among the types of an Other
	check          *Validator
	refs           *references
	outer          *Field // the field that contains it; nil: the form
	element        bool   // it is an element of outer, which is a list
}

// Option is one choice of a field.
type Option struct {
	Value json.RawMessage
	Title string // what to show; never empty
}

// Kind is the kind of value that a form field takes.
type Kind uint8

// The kinds of fields. The zero Kind is none of them.
const (
	String Kind = iota + 1
	Number
	Integer
	Boolean
	Enum      // one of Options
	MultiEnum // several of Options
	Other     // anything else, typed as JSON
)

func (k Kind) String() string {
	names := [...]string{"invalid", "string", "number", "integer", "boolean", "enum", "multi-enum", "other"}
	if int(k) < len(names) {
		return names[k]
	}
	return names[0]
}

// FormOf returns the form of an object schema. It accepts the schemas that [Compile] accepts; in
// forms, formats are always checked. A property that is only a local $ref, or that may be null or
// one other thing, is shown as the schema it refers to.
//
// A property that is neither a primitive nor a list of choices is a field of kind [Other]. FormOf
// fails if the schema does not compile, or is not for objects.
func FormOf(raw json.RawMessage) (*Form, error) {
	check, err := newValidator(raw, true)
	if err != nil {
		return nil, err
	}
	refs := newReferences(raw)
	root := refs.joined(refs.resolve(raw), 0)
	if t := root.types(); len(t) > 0 && !slices.Contains(t, "object") {
		return nil, fmt.Errorf("schema: a form needs a schema of type object, got %s", strings.Join(t, ", "))
	}
	form := &Form{Title: root.text("title"), Description: root.text("description"), check: check}
	form.Fields, err = refs.fields(root)
	if err != nil {
		return nil, errors.New("schema: a form needs an object schema with properties")
	}
	for i := range form.Fields {
		form.Fields[i].check = check
	}
	return form, nil
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("{}")
	}
	return raw
}

// Field returns the field called name, or nil if there is none.
func (f *Form) Field(name string) *Field {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			return &f.Fields[i]
		}
	}
	return nil
}

// Defaults returns the default of every field that has one, by name.
func (f *Form) Defaults() map[string]json.RawMessage {
	values := map[string]json.RawMessage{}
	for i := range f.Fields {
		if d := f.Fields[i].Default; d != nil {
			values[f.Fields[i].Name] = d
		}
	}
	return values
}

// Check validates a filled-in form against the whole schema. A form that does
// not fit is a [*ValidationError].
func (f *Form) Check(values map[string]json.RawMessage) error {
	return f.check.Validate(appendObject(nil, values))
}

// appendObject appends values as a JSON object.
func appendObject(dst []byte, values map[string]json.RawMessage) []byte {
	dst = append(dst, '{')
	for i, name := range sortedKeys(values) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonx.AppendString(dst, name), ':')
		dst = append(dst, values[name]...)
	}
	return append(dst, '}')
}

// schemaObject is the members of one schema, in the order of the text.
type schemaObject []member

// get returns a member of the schema, or nil if it is not there.
func (s schemaObject) get(name string) json.RawMessage {
	for _, m := range s {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// text returns a string member.
func (s schemaObject) text(name string) string {
	var v string
	s.decode(name, &v)
	return v
}

// number returns a number member as it is written.
func (s schemaObject) number(name string) json.Number {
	raw := bytes.TrimSpace(s.get(name))
	if jsonx.KindOf(raw) != '0' {
		return ""
	}
	return json.Number(raw)
}

// list returns the elements of an array member.
func (s schemaObject) list(name string) []json.RawMessage {
	var v []json.RawMessage
	s.decode(name, &v)
	return v
}

// types returns the member type, which is one name or several.
func (s schemaObject) types() []string {
	if t := s.text("type"); t != "" {
		return []string{t}
	}
	var list []string
	s.decode("type", &list)
	return list
}

// decode leaves v as it is if there is no such member or it is of another kind.
func (s schemaObject) decode(name string, v any) {
	if raw := s.get(name); raw != nil {
		_ = json.Unmarshal(raw, v)
	}
}

// with returns s with the members of above added or replaced.
func (s schemaObject) with(above schemaObject) schemaObject {
	merged := slices.Clone(s)
	for _, m := range above {
		if i := slices.IndexFunc(merged, func(have member) bool { return have.name == m.name }); i >= 0 {
			merged[i] = m
		} else {
			merged = append(merged, m)
		}
	}
	return merged
}

func (s schemaObject) without(name string) schemaObject {
	return slices.DeleteFunc(slices.Clone(s), func(m member) bool { return m.name == name })
}

func (s schemaObject) raw() json.RawMessage {
	dst := []byte{'{'}
	for i, m := range s {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonx.AppendString(dst, m.name), ':')
		dst = append(dst, bytes.TrimSpace(m.value)...)
	}
	return append(dst, '}')
}
