package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Type is the schema and the decoder of one Go type. It is immutable and may
// be used by several goroutines at once.
type Type struct {
	typ  reflect.Type
	root spec
	json json.RawMessage

	elicitation func() (json.RawMessage, error)
}

// types holds the Type of every Go type that was asked for.
var types sync.Map // reflect.Type -> *Type

// For returns the Type of T. It is made once per T and then cached.
//
// For fails on types that JSON cannot express (channels, functions, complex numbers, interfaces
// with methods), on two fields of a struct with one JSON name, and on struct tags that do not apply to
// their field or that no value obeys; the error names the type and the field. The package comment
// says how Go types and tags become schemas.
func For[T any]() (*Type, error) { return ForType(reflect.TypeFor[T]()) }

// ForType is [For] with a type known at run time. A nil type is an error.
func ForType(t reflect.Type) (*Type, error) {
	if t == nil {
		return nil, errors.New("schema: no type given")
	}
	if have, ok := types.Load(t); ok {
		return have.(*Type), nil
	}
	made, err := newType(t)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	have, _ := types.LoadOrStore(t, made)
	return have.(*Type), nil
}

func newType(t reflect.Type) (*Type, error) {
	b := builder{nodes: map[reflect.Type]*node{}}
	root, err := b.place(t)
	if err != nil {
		return nil, err
	}
	return finish(t, root)
}

// finish makes the Type for the graph of a Go type.
func finish(t reflect.Type, root spec) (*Type, error) {
	made := &Type{typ: t, root: root}
	raw, defs, err := emit(&made.root)
	if err != nil {
		return nil, err
	}
	made.json = raw
	if err := checkHeaders(root.node, defs); err != nil {
		return nil, err
	}
	if err := checkDefaults(root.node, map[*node]bool{}); err != nil {
		return nil, err
	}
	made.elicitation = sync.OnceValues(made.flat)
	return made, nil
}

// checkDefaults decodes every default and example once, so that a tag that
// does not fit its field is found at start-up and not in a call.
func checkDefaults(n *node, done map[*node]bool) error {
	if n == nil || done[n] {
		return nil
	}
	done[n] = true
	for i := range n.fields {
		if err := n.fields[i].checkDefault(n); err != nil {
			return fmt.Errorf("%s: %w", n.fields[i].goName, err)
		}
	}
	var err error
	n.inside(func(below *node) {
		if err == nil {
			err = checkDefaults(below, done)
		}
	})
	return err
}

// checkDefault decodes the default and the examples of a field of n.
func (f *field) checkDefault(n *node) error {
	if f.rules == nil {
		return nil
	}
	check := func(role string, raw json.RawMessage) error {
		if err := decodeInto(raw, &f.spec, at(reflect.New(n.typ).Elem(), f.index), false); err != nil {
			return fmt.Errorf("the %s %s does not fit: %w", role, excerpt(string(raw)), err)
		}
		return nil
	}
	for _, raw := range f.rules.examples {
		if err := check("example", raw); err != nil {
			return err
		}
	}
	if f.rules.def != nil {
		return check("default", f.rules.def)
	}
	return nil
}

// JSON returns the JSON Schema of the type: 2020-12, compact, its members in a
// fixed order and the properties in the order of the struct fields. The bytes
// are the same in every run and must not be changed.
//
// The schema of a struct always has "type":"object" and "properties" at its
// root.
func (t *Type) JSON() json.RawMessage { return t.json }

// String returns the name of the Go type.
func (t *Type) String() string { return t.typ.String() }

// GoType returns the Go type.
func (t *Type) GoType() reflect.Type { return t.typ }

// IsObject reports whether the root of the schema says "type":"object".
func (t *Type) IsObject() bool {
	switch n := t.root.node; n.kind {
	case kindStruct, kindMap:
		return true
	case kindHook:
		typ, _ := jsonx.Lookup(n.raw, "type")
		return string(typ) == `"object"`
	}
	return false
}

// Decode reads the one JSON value in data into v, which must be a non-nil pointer to the Go type,
// and checks it. It overwrites the value of v; properties that are absent, or null where they are
// optional and not nullable, get their default. Decode keeps no reference to data.
//
// If the value does not fit the schema, the error is a [*ValidationError] with the faults in the
// order of the text, and v holds the parts that could be read. Invalid JSON ends the search: the
// last fault then has its position.
//
// Integers are exact: 3, 3.0 and 3e0 are the integer 3, nothing is rounded, and a number that the
// Go type cannot hold is a fault. Names match in their exact case, a name must not occur twice in
// an object, and nesting is limited to 128 levels.
func (t *Type) Decode(data []byte, v any) error {
	return t.decodeTo(decoder{scanner: scanner{data: data}}, v)
}

// DecodeValid is [Type.Decode] for data known to be valid JSON, such as a part of a decoded
// message: the contents of strings are not checked again.
func (t *Type) DecodeValid(data []byte, v any) error {
	return t.decodeTo(decoder{scanner: scanner{data: data, valid: true}}, v)
}

// DecodeLenient is [Type.Decode] for arguments as some models write them: a number or a boolean may
// be in a string ("3", "true"). Where the Go type is a string, nothing changes.
func (t *Type) DecodeLenient(data []byte, v any) error {
	return t.decodeTo(decoder{scanner: scanner{data: data}, asText: true}, v)
}

// DecodeAnswer is [Type.Decode] for the answer to the form that [Type.Elicitation] describes.
// Properties that the form does not ask for are ignored, because the schema of a form
// cannot forbid them.
//
// Specification: 2026-07-28, client/elicitation, Requested Schema.
func (t *Type) DecodeAnswer(data []byte, v any) error {
	return t.decodeTo(decoder{scanner: scanner{data: data}, answer: true}, v)
}

func (t *Type) decodeTo(d decoder, v any) error {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.Type().Elem() != t.typ || p.IsNil() {
		return fmt.Errorf("schema: cannot decode into %T, need a *%s", v, t.typ)
	}
	p.Elem().SetZero()
	return d.into(&t.root, p.Elem())
}

// Validate checks the JSON value in data as Decode does, without returning it.
func (t *Type) Validate(data []byte) error {
	return decodeInto(data, &t.root, reflect.New(t.typ).Elem(), false)
}

// Decode checks data against the schema of T and returns it as a T. It is
// [Type.Decode] on the Type that [For] returns.
func Decode[T any](data []byte) (T, error) {
	var v T
	t, err := For[T]()
	if err != nil {
		return v, err
	}
	err = t.Decode(data, &v)
	return v, err
}
