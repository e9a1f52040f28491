package schema

import (
	"strings"
)

// subschema is one schema of a foreign schema, compiled. It is immutable once [Compile] returns.
type subschema struct {
	res   *resource
	chain int // the longest chain of subschemas for one value from here on

	always bool // fits every value
	never  bool // fits none
	types  typeSet
	konst  *choices
	enum   *choices
	number *numberRules
	text   *textRules
	object *objectRules
	list   *listRules
	logic  *logic
}

// same calls yield with the subschemas that apply to the same value as s.
func (s *subschema) same(yield func(*subschema)) {
	each := func(list ...*subschema) {
		for _, sub := range list {
			if sub != nil {
				yield(sub)
			}
		}
	}
	if l := s.logic; l != nil {
		each(l.ref, l.not, l.when, l.then, l.otherwise)
		if l.dynamic != nil {
			each(l.dynamic.first)
		}
		each(l.allOf...)
		each(l.anyOf...)
		each(l.oneOf...)
	}
	if s.object != nil {
		for i := range s.object.dependents {
			each(s.object.dependents[i].schema)
		}
	}
}

// below returns the subschemas that apply to members and items, added to list.
func (s *subschema) below(list []*subschema) []*subschema {
	add := func(sub *subschema) {
		if sub != nil {
			list = append(list, sub)
		}
	}
	if o := s.object; o != nil {
		for _, name := range sortedKeys(o.properties) { // so that errors are the same each time
			add(o.properties[name].schema)
		}
		for i := range o.patterns {
			add(o.patterns[i].schema)
		}
		add(o.additional)
		add(o.names)
		add(o.unevaluated)
	}
	if l := s.list; l != nil {
		for _, sub := range l.prefix {
			add(sub)
		}
		add(l.rest)
		add(l.contains)
		add(l.unevaluated)
	}
	return list
}

// typeSet is a set of JSON Schema types; the empty set allows all.
type typeSet uint8

const (
	typeString typeSet = 1 << iota
	typeInteger
	typeNumber
	typeBoolean
	typeArray
	typeObject
	typeNull
)

// typeNames are the types in the order in which faults name them.
var typeNames = [...]struct{ name, article string }{
	{"string", "a "}, {"integer", "an "}, {"number", "a "}, {"boolean", ""}, {"array", "an "}, {"object", "an "}, {"null", ""},
}

// typeNamed returns the type called name, none if there is no such type.
func typeNamed(name string) typeSet {
	for i, t := range typeNames {
		if t.name == name {
			return 1 << i
		}
	}
	return 0
}

// typesOf returns the types of a value.
func typesOf(v *value) typeSet {
	switch v.kind {
	case '{':
		return typeObject
	case '[':
		return typeArray
	case '"':
		return typeString
	case 't', 'f':
		return typeBoolean
	case 'n':
		return typeNull
	}
	if isInteger(v.text) {
		return typeNumber | typeInteger
	}
	return typeNumber
}

// isInteger reports whether a number has no fraction, however it is written.
func isInteger(lit string) bool {
	if !strings.ContainsAny(lit, ".eE") {
		return true
	}
	d := parseDecimal([]byte(lit))
	return d.exp >= 0 || d.sign() == 0
}

// mismatch returns the fault of a value that has none of the wanted types.
func (want typeSet) mismatch(v *value) string {
	got := kindName(v.kind)
	if v.kind == '0' && want&typeInteger != 0 {
		got = excerpt(v.text) // it is a number, but not an integer
	}
	var b strings.Builder
	b.WriteString("must be ")
	first := true
	for i, t := range typeNames {
		if want&(1<<i) == 0 {
			continue
		}
		if !first {
			b.WriteString(" or ")
		}
		first = false
		if t.name == "boolean" {
			t.name = "true or false"
		}
		b.WriteString(t.article + t.name)
	}
	return b.String() + ", got " + got
}
