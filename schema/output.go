package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Output is the schema and the encoder of one Go type as a result. It is
// immutable and may be used by several goroutines at once.
//
// It differs from the [Type] of the same Go type, whose schema lets callers omit arguments, in
// that fields that are always written are required:
//
//	field                       Type        Output
//	T                           required    required
//	*T                          optional    required, or null
//	T, *T with omitzero         optional    optional, never null
//	T, *T with omitempty        optional    optional, never null; but required
//	                                        if T is never empty JSON: numbers,
//	                                        booleans, times, structs with a
//	                                        required field
//	T with a default            optional    required, without "default"
//	embedded through a pointer  optional    optional
//	items, values of maps *T    never null  may be null
//	header                      x-mcp-header  nothing
//
// Output looks at MarshalJSON and MarshalText where Type looks at UnmarshalJSON and
// UnmarshalText. A root that is a pointer is described as what it points to.
type Output struct {
	typ   reflect.Type
	root  spec
	json  json.RawMessage
	check bool // encoded values may not fit the schema
}

// outputs holds the Output of every Go type that was asked for.
var outputs sync.Map // reflect.Type -> *Output

// ForOutput returns the Output of T. It is made once per T and then cached. It fails where [For]
// does, and on struct fields that the codec refuses.
func ForOutput[T any]() (*Output, error) {
	t := reflect.TypeFor[T]()
	if have, ok := outputs.Load(t); ok {
		return have.(*Output), nil
	}
	made, err := newOutput(t)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	have, _ := outputs.LoadOrStore(t, made)
	return have.(*Output), nil
}

func newOutput(t reflect.Type) (*Output, error) {
	b := builder{nodes: map[reflect.Type]*node{}, out: true}
	root, err := b.place(t)
	if err != nil {
		return nil, err
	}
	root.nullable = false
	return b.finish(t, root)
}

// finish makes the Output for the graph of a Go type.
func (b *builder) finish(t reflect.Type, root spec) (made *Output, err error) {
	made = &Output{typ: t, root: root, check: b.stricter || root.ptrs > 0}
	if made.json, _, err = emit(&made.root); err != nil {
		return nil, err
	}
	return made, checkDefaults(root.node, map[*node]bool{})
}

// JSON returns the JSON Schema of the results of Encode, in the form of [Type.JSON].
func (o *Output) JSON() json.RawMessage { return o.json }

// String returns the name of the Go type.
func (o *Output) String() string { return o.typ.String() }

// Encode returns v, a value of the Go type, as compact JSON that fits the
// schema: nil slices and maps are empty, durations strings as "1m30s".
//
// If v does not obey its own tags (min, enum, pattern and the like), its Enum
// or its JSONSchema method, or is a nil pointer, the error is a
// [*ValidationError].
func (o *Output) Encode(v any) (json.RawMessage, error) {
	if t := reflect.TypeOf(v); t != o.typ && o.typ.Kind() != reflect.Interface {
		return nil, fmt.Errorf("schema: cannot encode %T, need a %s", v, o.typ)
	}
	raw, err := jsonx.Marshal(v)
	if err != nil {
		return nil, err
	}
	if o.check {
		if err := decodeInto(raw, &o.root, reflect.New(o.typ).Elem(), false); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// written finds out when the codec writes the field, and when as null.
func (f *field) written(c *candidate) {
	f.required = !c.through && !c.omitzero && !(c.omitempty && f.mayBeEmpty())
	if c.omitempty || c.omitzero && f.ptrs == 1 && f.node.kind != kindHook {
		f.nullable = false
	}
}

// mayBeEmpty reports whether the encoded value may be null, "", {} or []. For a struct that is
// still being built it returns true.
func (s *spec) mayBeEmpty() bool {
	n := s.node
	if s.ptrs > 0 {
		return true
	}
	switch n.kind {
	case kindBool, kindInt, kindUint, kindFloat, kindNumber, kindTime, kindDuration:
		return false
	case kindArray, kindBytes:
		return n.bits <= 0
	case kindStruct:
		return !slices.ContainsFunc(n.fields, func(f field) bool { return f.required })
	}
	return true
}

// written returns the error with which the codec refuses to write any value of a struct. It reads
// instead of writing, which checks the fields in the same way and needs no value.
func written(t reflect.Type, fields int) error {
	if fields == 0 || implements(t, reading.json) || implements(t, reading.text) {
		return nil // nothing to check, or no way to check it
	}
	return jsonx.Unmarshal([]byte("{}"), reflect.New(t).Interface())
}
