package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
)

// A Go type is compiled once into a graph of nodes, from which both the schema and the decoder
// work.

type kind uint8

const (
	kindBool kind = iota + 1
	kindString
	kindInt
	kindUint
	kindFloat
	kindNumber   // json.Number
	kindBytes    // []byte and [N]byte: base64
	kindTime     // time.Time: RFC 3339
	kindDuration // time.Duration: 1m30s
	kindText     // has UnmarshalText; of an Output, MarshalText
	kindSlice
	kindArray
	kindMap
	kindStruct
	kindAny    // any
	kindRaw    // json.RawMessage
	kindCustom // has UnmarshalJSON; of an Output, MarshalJSON: any value
	kindHook   // has JSONSchema
)

// node is one Go type of the graph. Nodes are shared and, once built, never
// change.
type node struct {
	kind kind
	typ  reflect.Type
	bits int // of numbers; the length of arrays, -1 of []byte

	elem spec // of slices, arrays and maps, and of rest

	fields []field        // of structs
	rest   []int          // of structs: the index of the map with all other properties; nil: there is none
	index  map[string]int // of structs with many fields: by JSON name

	enum []string // of types with an Enum method

	raw   json.RawMessage // of hooks: what JSONSchema returned
	check *Validator      // of hooks

	out bool // of an Output: methods that read are not called
}

// spec is a place for a value: a node, and the rules and pointers of this place.
type spec struct {
	node     *node
	ptrs     int // how many pointers lead from the place to the node's type
	nullable bool
	rules    *rules // nil: none
}

// field is one property of a struct.
type field struct {
	spec
	name     string // JSON
	goName   string
	index    []int // as in reflect.Value.FieldByIndex
	required bool
	optional bool // by the options of json, or by an embedded pointer
	tag      reflect.StructTag
}

// must reports whether an argument is required.
func (f *field) must(t *tagged) bool {
	return t.required || !f.optional && !t.hasDefault && f.ptrs == 0
}

// hook is implemented by types that state their own schema.
type hook interface{ JSONSchema() json.RawMessage }

// enumerated is implemented by string types with a fixed set of values.
type enumerated interface{ Enum() []string }

var (
	hookType       = reflect.TypeFor[hook]()
	enumType       = reflect.TypeFor[enumerated]()
	timeType       = reflect.TypeFor[time.Time]()
	durationType   = reflect.TypeFor[time.Duration]()
	numberType     = reflect.TypeFor[json.Number]()
	rawMessageType = reflect.TypeFor[json.RawMessage]()
	byteType       = reflect.TypeFor[byte]()
)

// methods are the interfaces by which a type takes JSON into its own hands.
type methods struct{ json, text []reflect.Type }

var (
	reading = methods{
		[]reflect.Type{reflect.TypeFor[jsonv2.UnmarshalerFrom](), reflect.TypeFor[json.Unmarshaler]()},
		[]reflect.Type{reflect.TypeFor[encoding.TextUnmarshaler]()},
	}
	writing = methods{
		[]reflect.Type{reflect.TypeFor[jsonv2.MarshalerTo](), reflect.TypeFor[json.Marshaler]()},
		[]reflect.Type{reflect.TypeFor[encoding.TextAppender](), reflect.TypeFor[encoding.TextMarshaler]()},
	}
)

func implements(t reflect.Type, any []reflect.Type) bool {
	return slices.ContainsFunc(any, reflect.PointerTo(t).Implements)
}

// maxTypeDepth bounds how deep a Go type may nest without a named type in
// between.
const maxTypeDepth = 100

// builder turns Go types into nodes, for reading JSON into them or, if out is set, for writing
// them.
type builder struct {
	nodes map[reflect.Type]*node
	depth int
	out   bool

	stricter bool // a tag or a method constrains more than the Go types do
}

// place returns the spec of a place of type t without tags.
func (b *builder) place(t reflect.Type) (spec, error) {
	var s spec
	for t.Kind() == reflect.Pointer && s.ptrs < maxTypeDepth {
		t = t.Elem()
		s.ptrs++
	}
	n, err := b.node(t)
	if err != nil {
		return s, err
	}
	s.node, s.rules = n, baseRules(n)
	s.nullable = b.out && s.ptrs > 0
	return s, nil
}

func (b *builder) node(t reflect.Type) (*node, error) {
	if n := b.nodes[t]; n != nil {
		return n, nil
	}
	if b.depth++; b.depth > maxTypeDepth {
		return nil, errors.New("the type is nested too deep")
	}
	defer func() { b.depth-- }()
	n := &node{typ: t, out: b.out}
	b.nodes[t] = n // before its parts: the type may contain itself
	if err := b.fill(n, t); err != nil {
		return nil, err
	}
	return n, nil
}

func (b *builder) fill(n *node, t reflect.Type) (err error) {
	ptr, own := reflect.PointerTo(t), reading
	if b.out {
		own = writing
	}
	switch {
	case ptr.Implements(hookType) && t.Kind() != reflect.Interface:
		n.kind = kindHook
		b.stricter = true
		return n.readHook()
	case t == timeType:
		n.kind = kindTime
		return nil
	case t == durationType:
		n.kind = kindDuration
		return nil
	case t == numberType:
		n.kind = kindNumber
		return nil
	case t == rawMessageType:
		n.kind = kindRaw
		return nil
	case implements(t, own.json):
		n.kind = kindCustom
		return nil
	case implements(t, own.text):
		n.kind = kindText
		return nil
	}
	switch t.Kind() {
	case reflect.Bool:
		n.kind = kindBool
	case reflect.String:
		n.kind = kindString
		if ptr.Implements(enumType) {
			b.stricter = true
			n.enum = reflect.New(t).Interface().(enumerated).Enum()
			if len(n.enum) == 0 {
				return fmt.Errorf("%s.Enum returns no values", t)
			}
			if v, twice := repeatedValue(n.enum); twice {
				return fmt.Errorf("%s.Enum returns %s twice", t, quote(v))
			}
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n.kind, n.bits = kindInt, t.Bits()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n.kind, n.bits = kindUint, t.Bits()
	case reflect.Float32, reflect.Float64:
		n.kind, n.bits = kindFloat, t.Bits()
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("%s: an interface with methods has no schema; use any, or a type with a JSONSchema method", t)
		}
		n.kind = kindAny
	case reflect.Slice, reflect.Array:
		n.kind = kindSlice
		if t.Kind() == reflect.Array {
			n.kind, n.bits = kindArray, t.Len()
		}
		if t.Elem() == byteType {
			n.kind = kindBytes
			if t.Kind() == reflect.Slice {
				n.bits = -1
			}
			return nil
		}
		if n.elem, err = b.place(t.Elem()); err != nil {
			return fmt.Errorf("[]: %w", err)
		}
	case reflect.Map:
		n.kind = kindMap
		if t.Key().Kind() != reflect.String || implements(t.Key(), own.text) {
			return fmt.Errorf("%s: the keys of a map must be plain strings", t)
		}
		if n.elem, err = b.place(t.Elem()); err != nil {
			return fmt.Errorf("{}: %w", err)
		}
	case reflect.Struct:
		n.kind = kindStruct
		if err = b.fields(n); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s has no JSON form", t)
	}
	return nil
}

// readHook asks the type for its schema.
func (n *node) readHook() error {
	raw := reflect.New(n.typ).Interface().(hook).JSONSchema()
	check, err := Compile(raw)
	if err != nil {
		return fmt.Errorf("%s.JSONSchema: %w", n.typ, err)
	}
	if n.raw, err = literal(string(raw), n); err != nil {
		return fmt.Errorf("%s.JSONSchema: %w", n.typ, err)
	}
	n.check = check
	return nil
}

// fields fills in the fields of a struct.
func (b *builder) fields(n *node) error {
	list, err := b.collect(n)
	if err != nil {
		return err
	}
	n.fields = list
	if b.out {
		if err := written(n.typ, len(list)); err != nil {
			return err
		}
	}
	if len(list) > smallStruct {
		n.index = make(map[string]int, len(list))
		for i := range list {
			n.index[list[i].name] = i
		}
	}
	return nil
}

// smallStruct is how many fields are looked up one by one.
const smallStruct = 8

// find returns the index of the field with the JSON name, -1 if there is none.
// The members of an object mostly come in order, so try next first.
func (n *node) find(name []byte, next int) int {
	if next < len(n.fields) && n.fields[next].name == string(name) {
		return next
	}
	if n.index != nil {
		if i, ok := n.index[string(name)]; ok {
			return i
		}
		return -1
	}
	for i := range n.fields {
		if n.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

// refine adds the tags of a field to the place s.
func (b *builder) refine(s *spec, t *tagged) error {
	n := s.node
	if !b.out || n.kind == kindHook {
		s.nullable = s.nullable || t.nullable
	}
	b.stricter = b.stricter || t.words != nil || t.enum != nil || t.unique
	// On a list, the tags for one value apply to the items.
	outer, inner := *t, tagged{}
	if n.kind == kindSlice || n.kind == kindArray {
		outer.words = nil
		for _, w := range t.words {
			switch w.name {
			case "min", "max", "minItems", "maxItems":
				outer.words = append(outer.words, w)
			default:
				inner.words = append(inner.words, w)
			}
		}
		inner.enum, inner.titles = t.enum, t.titles
		outer.enum, outer.titles = nil, nil
		if inner.words != nil || inner.enum != nil {
			if n.elem.node == nil || n.elem.node.kind == 0 || n.elem.node.kind >= kindSlice {
				return fmt.Errorf("tag enum, pattern or format: does not apply to %s", n.typ)
			}
			items := *n
			items.elem.rules = newRules(n.elem.node)
			if err := items.elem.rules.from(n.elem.rules).apply(&inner, n.elem.node); err != nil {
				return err
			}
			n, s.node = &items, &items
		}
	}
	r := newRules(n).from(s.rules)
	r.title, r.doc, r.headerName = t.title, t.doc, t.header
	if err := r.apply(&outer, n); err != nil {
		return err
	}
	if t.header != "" {
		if err := r.takeHeader(s); err != nil {
			return fmt.Errorf("tag header: %w", err)
		}
	}
	s.rules = r
	if t.examples != "" {
		if err := r.readExamples(t.examples, n); err != nil {
			return fmt.Errorf("tag examples: %w", err)
		}
	}
	if t.hasDefault {
		def, err := literal(t.def, n)
		if err != nil {
			return fmt.Errorf("tag default: %w", err)
		}
		r.def = def
	}
	return nil
}

// from copies the enum of base; newRules has the bounds of the type.
func (r *rules) from(base *rules) *rules {
	if base != nil {
		r.enum, r.enumText = base.enum, base.enumText
	}
	return r
}

// takeHeader checks that the place may be mirrored into a header
// (HTTP-26-039, HTTP-26-040).
func (r *rules) takeHeader(s *spec) error {
	switch s.node.kind {
	case kindBool, kindString, kindText, kindTime, kindDuration:
	case kindInt, kindUint:
		lo, hi := newBound(fmt.Sprint(int64(-headerIntMax))), newBound(fmt.Sprint(int64(headerIntMax)))
		if r.min == nil || r.min.rat.Cmp(lo.rat) < 0 {
			r.min = lo
		}
		if r.max == nil || r.max.rat.Cmp(hi.rat) > 0 {
			r.max = hi
		}
		if err := r.settle(s.node); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s cannot be a header; only strings, integers and booleans can", s.node.typ)
	}
	if s.nullable {
		return errors.New("a nullable value cannot be a header")
	}
	return nil
}

// readExamples reads a JSON array, or a list of values split at commas.
func (r *rules) readExamples(text string, n *node) error {
	var list []json.RawMessage
	if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &list) == nil {
		r.examples = list
		return nil
	}
	for _, v := range splitList(text) {
		raw, err := literal(v, n)
		if err != nil {
			return err
		}
		r.examples = append(r.examples, raw)
	}
	return nil
}
