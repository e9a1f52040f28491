package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// compiler turns one document into subschemas. The first pass makes them and checks them against
// their dialect; link then joins them.
type compiler struct {
	doc    *document
	strict bool // as of newValidator

	// onlyCheck is set to find out only whether a value is a valid schema. The dialect is then
	// the same throughout, and references are ignored.
	onlyCheck bool

	made     []*subschema // by place; nil for a value that is not a schema
	whole    *resource
	embedded map[string]*resource // by URI, including whole if it has one
	refers   bool                 // there are references
	followed int                  // values that resolving references has skipped
	patterns patternSet
	faults   []fault
	err      error // the first error that is not about the dialect
}

// compile returns the root of the schema in raw.
func compile(raw json.RawMessage, strict bool) (*subschema, error) {
	if len(raw) > maxSchemaBytes {
		return nil, fmt.Errorf("%d bytes of schema, at most %d are read", len(raw), maxSchemaBytes)
	}
	doc, err := parseDocument(raw)
	switch {
	case err != nil:
		return nil, err
	case doc.huge >= 0:
		return nil, errors.New("a number in the schema is too large")
	case doc.objects > maxSubschemas:
		return nil, fmt.Errorf("%d subschemas, at most %d are read", doc.objects, maxSubschemas)
	}
	if k := doc.values[root].kind; k != '{' && k != 't' && k != 'f' {
		return nil, errors.New("a schema must be an object or a boolean")
	}
	c := &compiler{doc: doc, strict: strict, made: make([]*subschema, len(doc.values)), whole: &resource{uri: base, dialect: draft2020}}
	s := c.schema(root, c.whole)
	if c.refers && c.sound() {
		c.link(s)
	}
	return s, c.failure()
}

// sound reports whether no error has been found so far.
func (c *compiler) sound() bool { return c.err == nil && len(c.faults) == 0 }

// failure returns the error of the schema, or nil if there is none.
func (c *compiler) failure() error {
	if c.err == nil && len(c.faults) > 0 {
		return fmt.Errorf("not a valid schema: %w", faultError(settled(c.doc, c.faults), 0))
	}
	return c.err
}

// fail records an error that is not about the dialect.
func (c *compiler) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// fault records that the value at a place is not what the dialect allows.
func (c *compiler) fault(at int32, problem string) {
	c.faults = append(c.faults, fault{at: at, problem: problem})
}

// schema returns the subschema at a place, which is in res or the root of a
// resource of its own. It is never nil.
func (c *compiler) schema(at int32, res *resource) *subschema {
	if c.made != nil {
		if s := c.made[at]; s != nil {
			return s
		}
	}
	s := &subschema{res: res}
	if c.made != nil {
		c.made[at] = s
	}
	if at == root {
		res.root = s
	}
	switch v := &c.doc.values[at]; v.kind {
	case 't', 'f':
		if res.dialect == draft4 {
			c.fault(at, typeObject.mismatch(v))
		}
		s.always, s.never = v.kind == 't', v.kind == 'f'
		return s
	case '{':
	default:
		want := typeObject | typeBoolean
		if res.dialect == draft4 {
			want = typeObject
		}
		c.fault(at, want.mismatch(v))
		return s
	}
	if !c.onlyCheck {
		c.identify(s, at)
	}
	k := keywords{c, s, at, s.res.dialect}
	for i := at + 1; i < c.doc.values[at].next; i = c.doc.values[i].next {
		k.read(i, c.doc.values[i].name)
	}
	if k.dialect.refHides() && s.logic != nil && s.logic.written != nil {
		*s = subschema{res: s.res, logic: &logic{written: s.logic.written}}
	}
	s.always = s.types == 0 && s.konst == nil && s.enum == nil && s.number == nil && s.text == nil &&
		s.object == nil && s.list == nil && s.logic == nil
	return s
}

// keywords reads the members of the object at a place into s.
type keywords struct {
	*compiler
	s       *subschema
	at      int32
	dialect dialect
}

// read reads one keyword with its value at i. It ignores unknown keywords.
func (k *keywords) read(i int32, name string) {
	if !k.dialect.has(name) {
		return
	}
	s := k.s
	switch name {
	case "$schema", "$id", "id", "$anchor", "$dynamicAnchor":
		k.identifier(i, name)
	case "$ref", "$dynamicRef", "$recursiveRef":
		if k.is(i, typeString) {
			l := k.logic()
			l.written = append(l.written, reference{name, k.doc.values[i].text})
			k.refers = true
		}
	case "title", "description", "$comment", "contentMediaType":
		k.is(i, typeString)
	case "readOnly", "writeOnly", "deprecated", "$recursiveAnchor":
		k.is(i, typeBoolean)
	case "examples":
		k.is(i, typeArray)
	case "$vocabulary":
		for j := range k.members(i) {
			k.is(j, typeBoolean)
		}
	case "$defs", "definitions":
		for j := range k.members(i) {
			k.schema(j, s.res)
		}
	case "contentSchema":
		k.schema(i, s.res)

	case "type":
		s.types = k.types(i)
	case "const":
		s.konst = newChoices(k.doc, []int32{i})
	case "enum":
		least := 0
		if k.dialect <= draft6 {
			least = 1
		}
		if list := k.items(i, least); list != nil {
			if k.dialect <= draft6 {
				k.unique(list)
			}
			s.enum = newChoices(k.doc, list)
		}

	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		k.bound(i, name)
	case "minLength", "maxLength", "pattern", "format", "contentEncoding":
		k.ofText(i, name)
	case "minProperties", "maxProperties", "required", "properties", "patternProperties", "additionalProperties", "propertyNames",
		"dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties":
		k.ofObject(i, name)
	case "minItems", "maxItems", "uniqueItems", "items", "additionalItems", "prefixItems", "contains", "minContains", "maxContains",
		"unevaluatedItems":
		k.ofList(i, name)
	case "allOf", "anyOf", "oneOf", "not", "if", "then", "else":
		k.ofLogic(i, name)
	}
}

// is reports whether the value of a keyword is of one of the types.
func (k *keywords) is(i int32, want typeSet) bool {
	v := &k.doc.values[i]
	if typesOf(v)&want == 0 {
		k.fault(i, want.mismatch(v))
		return false
	}
	return true
}

// members goes over the members of the value of a keyword, an object.
func (k *keywords) members(i int32) func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		if !k.is(i, typeObject) {
			return
		}
		for j := i + 1; j < k.doc.values[i].next; j = k.doc.values[j].next {
			if !yield(j) {
				return
			}
		}
	}
}

// items returns the items of the value of a keyword, an array of at least
// least. Nil without a fault is an empty array.
func (k *keywords) items(i int32, least int) []int32 {
	if !k.is(i, typeArray) {
		return nil
	}
	v := &k.doc.values[i]
	if int(v.size) < least {
		k.fault(i, wrongSize(int(v.size), least, -1, "item", "items"))
	}
	list := make([]int32, 0, v.size)
	for j := i + 1; j < v.next; j = k.doc.values[j].next {
		list = append(list, j)
	}
	return list
}

// schemas returns the subschemas in an array.
func (k *keywords) schemas(i int32, least int) []*subschema {
	var list []*subschema
	for _, j := range k.items(i, least) {
		list = append(list, k.schema(j, k.s.res))
	}
	return list
}

// names returns the strings in an array, which must differ.
func (k *keywords) names(i int32) []string {
	least := 0
	if k.dialect == draft4 {
		least = 1
	}
	list := k.items(i, least)
	names := make([]string, 0, len(list))
	differ := len(list) < 32
	for _, j := range list {
		if k.is(j, typeString) {
			name := k.doc.values[j].text
			differ = differ && !slices.Contains(names, name)
			names = append(names, name)
		}
	}
	if !differ {
		k.unique(list)
	}
	return names
}

// unique checks that no two values at the places are equal.
func (k *keywords) unique(places []int32) {
	var u uniqueItems
	for i, j := range places {
		if earlier, dup := u.addValue(k.doc, j, i); dup {
			k.fault(k.doc.values[j].parent, repeatFault(i, earlier))
			return
		}
	}
}

// count reads a keyword whose value is a count.
func (k *keywords) count(i int32) int {
	if !k.is(i, typeInteger) {
		return 0
	}
	text := k.doc.values[i].text
	neg, n, m := parseInteger([]byte(text))
	if neg {
		k.fault(i, "must be at least 0, got "+excerpt(text))
	}
	if m == huge || n > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(n)
}

// types reads the keyword type.
func (k *keywords) types(i int32) (set typeSet) {
	if !k.is(i, typeString|typeArray) {
		return 0
	}
	list := []int32{i}
	if k.doc.values[i].kind == '[' {
		list = k.items(i, 1)
	}
	differ := true
	for _, j := range list {
		if !k.is(j, typeString) {
			differ = false
			continue
		}
		t := typeNamed(k.doc.values[j].text)
		if t == 0 {
			k.fault(j, notAmong(typeChoices, k.doc.shown(j)))
		}
		differ = differ && t != 0 && set&t == 0
		set |= t
	}
	if !differ {
		k.unique(list)
	}
	return set
}

// typeChoices are the values of type as JSON.
var typeChoices = func() (list []json.RawMessage) {
	for _, t := range typeNames {
		list = append(list, json.RawMessage(`"`+t.name+`"`))
	}
	slices.SortFunc(list, func(a, b json.RawMessage) int { return strings.Compare(string(a), string(b)) })
	return list
}()
