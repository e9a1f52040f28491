package openapi

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	expression "github.com/patchbay-dev/patchbay/internal/pattern"
	"github.com/patchbay-dev/patchbay/schema"
)

// Bounds of the schema of one tool, in bytes and in parts, and of those of all tools, in bytes: many operations may refer
// to one large schema.
const (
	maxSchema  = 1 << 20
	maxParts   = 5000
	maxSchemas = 256 << 20
)

// schemas writes schemas as JSON Schema 2020-12: those of one operation, or one to which others refer.
type schemas struct {
	*reader
	refs    []*definition // that are referred to, in the order in which they are
	noRegex bool          // leave out patterns
	extent
	err error // the first
}

// extent is how much there is to compile in schemas.
type extent struct {
	parts  int
	levels int // of schemas in each other
	steps  int // of patterns
}

// Bounds within which schemas that compile one by one also do together: package schema has none that is lower.
const (
	safeLevels = 64
	safeSteps  = 100_000
	safeParts  = 5000 // objects of JSON
)

// definition is a schema that others refer to. It is the same in $defs of each operation, and written once.
type definition struct {
	name string // unlike that of others in the document
	from *node
	raw  []byte // nil: not written yet
	refs []*definition
	extent
	err   error
	sound bool // it has been compiled, with all to which it leads
}

func (s *schemas) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// errUnsound is the error of a schema that does not compile.
var errUnsound = errors.New("its schema cannot be used")

// input returns the schema of the arguments of an operation.
func (r *reader) input(o *Operation) ([]byte, error) {
	raw, err := r.compiled(o, false)
	if errors.Is(err, errUnsound) {
		// Patterns may be too large together, and say less than the rest.
		if plain, err := r.compiled(o, true); err == nil {
			return plain, nil
		}
	}
	return raw, err
}

// compiled writes the schema of the arguments of an operation and finds out whether it compiles. Definitions that were
// compiled with an operation before are not compiled again.
func (r *reader) compiled(o *Operation, noRegex bool) ([]byte, error) {
	s := &schemas{reader: r, noRegex: noRegex}
	own := s.arguments(o)
	defs := s.closure(len(own))
	if s.err != nil {
		return nil, s.err
	}
	raw := withDefinitions(own, defs, func(d *definition) []byte { return d.raw })
	r.bytes += len(raw) // also of those that cannot be used: they took time
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has more than %d KiB", maxSchema>>10)
	}
	part := raw
	if s.levels < safeLevels && s.steps < safeSteps && bytes.Count(raw, []byte("{")) < safeParts {
		part = withDefinitions(own, defs, func(d *definition) []byte {
			if d.sound {
				return []byte("{}")
			}
			return d.raw
		})
	}
	if _, err := schema.Compile(part); err != nil {
		return nil, fmt.Errorf("%w: %v", errUnsound, err)
	}
	for _, d := range defs {
		d.sound = true
	}
	return raw, nil
}

// closure returns the definitions to which a schema leads, beside which it has so many bytes.
func (s *schemas) closure(size int) (defs []*definition) {
	listed := map[*definition]bool{}
	for queue := s.refs; len(queue) > 0 && s.err == nil; queue = queue[1:] {
		d := queue[0]
		if listed[d] {
			continue
		}
		listed[d] = true
		s.write(d)
		defs = append(defs, d)
		queue = append(queue, d.refs...)
		s.parts, s.levels, s.steps = s.parts+d.parts, s.levels+d.levels, s.steps+d.steps
		size += len(d.name) + len(d.raw)
		switch {
		case d.err != nil:
			s.err = d.err
		case s.parts > maxParts:
			s.fail("its schema has more than %d parts", maxParts)
		case size > maxSchema:
			s.fail("its schema has more than %d KiB", maxSchema>>10)
		}
	}
	return defs
}

// write writes a definition if it is not written.
func (s *schemas) write(d *definition) {
	if d.raw == nil {
		w := &schemas{reader: s.reader, noRegex: s.noRegex}
		d.raw = w.append(nil, d.from, 0)
		d.refs, d.extent, d.err = w.refs, w.extent, w.err
		s.bytes += len(d.raw)
	}
}

// withDefinitions completes the schema of an operation with $defs.
func withDefinitions(own []byte, defs []*definition, raw func(*definition) []byte) []byte {
	dst := slices.Clip(own)
	for i, d := range defs {
		if i == 0 {
			dst = append(dst, `,"$defs":{`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(jsonx.AppendString(dst, d.name), ':')
		dst = append(dst, raw(d)...)
	}
	if len(defs) > 0 {
		dst = append(dst, '}')
	}
	return append(dst, `,"additionalProperties":false}`...)
}

// arguments appends what the schema of an operation has before $defs.
func (s *schemas) arguments(o *Operation) []byte {
	dst := []byte(`{"type":"object","properties":{`)
	var required []string
	property := func(name string, must bool, description string, value func([]byte) []byte) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(jsonx.AppendString(dst, name), ':')
		from := len(dst)
		dst = value(dst)
		if description = strings.TrimSpace(description); description != "" && dst[from] == '{' {
			dst = append(dst[:from], jsonx.With(nil, dst[from:], "description", jsonx.AppendString(nil, description))...)
		}
		if must {
			required = append(required, name)
		}
	}
	for _, p := range o.parameters {
		property(p.argument, p.required, p.description, func(dst []byte) []byte { return s.append(dst, p.schema, 0) })
	}
	if b := o.body; b != nil {
		property("body", b.required, b.description, func(dst []byte) []byte { return s.body(dst, b) })
	}
	dst = append(dst, '}')
	if len(required) > 0 {
		dst = append(dst, `,"required":[`...)
		for i, name := range required {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonx.AppendString(dst, name)
		}
		dst = append(dst, ']')
	}
	return dst
}

// body appends the schema of a body.
func (s *schemas) body(dst []byte, b *body) []byte {
	switch {
	case b.form == base64Body:
		return append(dst, `{"type":"string","contentEncoding":"base64","contentMediaType":`+string(jsonx.AppendString(nil, b.mediaType))+`}`...)
	case b.form == textBody && (b.schema == nil || b.schema.string("type") != "string"):
		return append(dst, `{"type":"string","contentMediaType":`+string(jsonx.AppendString(nil, b.mediaType))+`}`...)
	case b.schema == nil:
		return append(dst, "{}"...)
	}
	return s.append(dst, b.schema, 0)
}

// A keyword is one of JSON Schema, by the shape of its value.
type shape int

const (
	aNumber shape = iota + 1
	aCount
	aText
	aTruth
	anything
	aList // of anything
	textList
	aSchema
	schemaList
	schemaTable
	typeNames
	textLists // a table of lists of texts
)

// keywords are those of all revisions; plainKeywords are of JSON Schema and not of 3.0 and 2.0, where they are unknown.
var (
	keywords = map[string]shape{
		"title": aText, "description": aText, "default": anything, "format": aText, "deprecated": aTruth,
		"type": typeNames, "enum": aList, "contentEncoding": aText, "contentMediaType": aText,
		"multipleOf": aNumber, "maximum": aNumber, "minimum": aNumber,
		"maxLength": aCount, "minLength": aCount, "maxItems": aCount, "minItems": aCount, "maxProperties": aCount, "minProperties": aCount,
		"pattern": aText, "uniqueItems": aTruth, "required": textList,
		"items": aSchema, "additionalProperties": aSchema, "not": aSchema,
		"allOf": schemaList, "anyOf": schemaList, "oneOf": schemaList, "properties": schemaTable,
	}
	plainKeywords = map[string]shape{
		"const": anything, "exclusiveMaximum": aNumber, "exclusiveMinimum": aNumber, "examples": aList, "$comment": aText,
		"contentSchema": aSchema, "minContains": aCount, "maxContains": aCount,
		"if": aSchema, "then": aSchema, "else": aSchema, "contains": aSchema, "propertyNames": aSchema,
		"unevaluatedItems": aSchema, "unevaluatedProperties": aSchema, "prefixItems": schemaList,
		"patternProperties": schemaTable, "dependentSchemas": schemaTable, "dependentRequired": textLists,
	}
)

func (s *schemas) shape(keyword string) shape {
	if k := keywords[keyword]; k != 0 {
		return k
	}
	if s.plain {
		return plainKeywords[keyword]
	}
	return 0
}

// append appends a schema of the document. Keywords that say nothing about values, or whose value cannot be right, are
// left out.
func (s *schemas) append(dst []byte, n *node, depth int) []byte {
	switch {
	case s.err != nil:
		return append(dst, "{}"...)
	case len(dst) > maxSchema:
		s.fail("its schema has more than %d KiB", maxSchema>>10)
		return append(dst, "{}"...)
	case s.parts > maxParts:
		s.fail("its schema has more than %d parts", maxParts)
		return append(dst, "{}"...)
	case depth > maxDepth:
		s.fail("its schema nests more than %d levels", maxDepth)
		return append(dst, "{}"...)
	case n == nil:
		return append(dst, "{}"...)
	case n.kind == 'f' || n.kind == 't':
		return n.appendJSON(dst, depth)
	case n.kind != '{':
		return append(dst, "{}"...)
	}
	s.parts++
	s.levels = max(s.levels, depth+1)
	w := &schemaWriter{schemas: s, from: len(dst), dst: append(dst, '{'), depth: depth}
	ref := n.get("$ref")
	if ref != nil && ref.kind == '"' {
		w.reference(n, ref)
		if !s.plain { // others beside it are ignored there
			return append(w.dst, '}')
		}
	}
	for _, m := range n.members {
		w.member(n, m)
	}
	if !s.plain {
		w.older(n)
	}
	if ex := n.get("example"); ex != nil && n.get("examples") == nil && ex.atMost(200) >= 0 {
		if text := ex.appendJSON(nil, depth); len(text) <= 200 {
			w.raw("examples", append(append([]byte{'['}, text...), ']'))
		}
	}
	return append(w.dst, '}')
}

// schemaWriter writes the members of one schema.
type schemaWriter struct {
	*schemas
	dst   []byte
	from  int // where it begins in dst
	depth int
}

func (w *schemaWriter) key(name string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(jsonx.AppendString(w.dst, name), ':')
}

func (w *schemaWriter) raw(name string, value []byte) {
	w.key(name)
	w.dst = append(w.dst, value...)
}

// reference writes a $ref to what a schema of the document names.
func (w *schemaWriter) reference(n, ref *node) {
	target, err := w.find(ref)
	if err == nil && target.get("$ref") != nil {
		_, err = w.resolve(target) // it must end somewhere
	}
	switch {
	case err != nil && w.whole:
		w.lost = append(w.lost, ref.text)
		return
	case err != nil:
		w.fail("%v", err)
		return
	}
	d := w.definition(target, ref, w.noRegex)
	w.refs = append(w.refs, d)
	w.raw("$ref", jsonx.AppendString(nil, cmp.Or(w.prefix, "#/$defs/")+d.name))
}

// definition returns the definition of what a reference leads to.
func (r *reader) definition(target, ref *node, noRegex bool) *definition {
	d := r.defs[noRegex][target]
	if d == nil {
		d = &definition{from: target}
		if twin := r.defs[!noRegex][target]; twin != nil {
			d.name = twin.name
		} else {
			d.name = unlike(r.taken, r.scope+cmp.Or(plainName(ref.text[strings.LastIndexByte(ref.text, '/')+1:], maxName), "schema"))
		}
		r.defs[noRegex][target] = d
	}
	return d
}

// member writes one keyword if its value has the right shape.
func (w *schemaWriter) member(n *node, m member) {
	v := m.value
	switch w.shape(m.name) {
	case aNumber:
		if v.kind == '0' && (m.name != "multipleOf" || positive(v.text)) {
			w.raw(m.name, []byte(v.text))
		}
	case aCount:
		if v.kind == '0' && whole(v.text) {
			w.raw(m.name, []byte(v.text))
		}
	case aText:
		if v.kind == '"' && (m.name != "pattern" || w.matches(v.text)) {
			w.raw(m.name, jsonx.AppendString(nil, v.text))
		}
	case aTruth:
		if v.kind == 't' {
			w.raw(m.name, []byte("true"))
		}
	case anything:
		w.raw(m.name, v.appendJSON(nil, w.depth))
	case aList:
		w.choices(n, m)
	case textList:
		w.required(n, m)
	case typeNames:
		w.types(n, v)
	case aSchema:
		switch {
		case v.kind == '{' || v.kind == 't' || v.kind == 'f':
			w.key(m.name)
			w.dst = w.append(w.dst, v, w.depth+1)
		case m.name == "items" && w.plain && n.get("prefixItems") == nil: // as drafts before 2020-12 have it
			w.member(n, member{"prefixItems", v})
		}
	case schemaList:
		if v.kind == '[' && len(v.items) > 0 {
			w.key(m.name)
			w.dst = append(w.dst, '[')
			for i, item := range v.items {
				if i > 0 {
					w.dst = append(w.dst, ',')
				}
				w.dst = w.append(w.dst, item, w.depth+1)
			}
			w.dst = append(w.dst, ']')
		}
	case schemaTable:
		if v.kind == '{' {
			w.table(m)
		}
	case textLists:
		w.raw(m.name, v.appendJSON(nil, w.depth))
	}
}

// matches reports whether a pattern can be checked. It may be one of another language, and says less than the rest.
func (s *schemas) matches(pattern string) bool {
	if s.noRegex {
		return false
	}
	steps, known := s.patterns[pattern]
	if !known {
		if _, err := schema.Compile(append(jsonx.AppendString([]byte(`{"pattern":`), pattern), '}')); err == nil {
			steps = safeSteps
			if re, err := syntax.Parse(pattern, syntax.Perl); err == nil {
				steps = expression.Steps(re)
			}
		}
		s.patterns[pattern] = steps
	}
	s.steps += steps
	return steps > 0
}

// table writes schemas by name, without properties that only answers have.
func (w *schemaWriter) table(m member) {
	w.key(m.name)
	w.dst = append(w.dst, '{')
	seen := map[string]bool{}
	for _, p := range m.value.members {
		if seen[p.name] || m.name == "properties" && w.readOnly(p.value) || m.name == "patternProperties" && !w.matches(p.name) {
			continue
		}
		seen[p.name] = true
		w.key(p.name)
		w.dst = w.append(w.dst, p.value, w.depth+1)
	}
	w.dst = append(w.dst, '}')
}

// readOnly reports whether a property belongs to answers alone.
func (w *schemaWriter) readOnly(n *node) bool {
	if w.whole {
		return false
	}
	if n.bool("readOnly") {
		return true
	}
	target, err := w.resolve(n)
	return err == nil && target.bool("readOnly")
}

// required writes the names of required properties. In 2.0 documents "required": true stands in properties.
func (w *schemaWriter) required(n *node, m member) {
	out := []byte{'['}
	seen := map[string]bool{}
	if p := n.get("properties"); p != nil {
		for _, p := range p.members {
			if w.readOnly(p.value) {
				seen[p.name] = true
			}
		}
	}
	for _, item := range m.value.items {
		if item.kind != '"' || seen[item.text] {
			continue
		}
		seen[item.text] = true
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = jsonx.AppendString(out, item.text)
	}
	if len(out) > 1 {
		w.raw("required", append(out, ']'))
	}
}

// choices writes an enum or examples, without repetitions. A nullable enum has null.
func (w *schemaWriter) choices(n *node, m member) {
	if m.value.kind != '[' || len(m.value.items) == 0 {
		return
	}
	var texts []string
	seen, size := map[string]bool{}, 0
	for _, item := range m.value.items {
		text := string(item.appendJSON(nil, w.depth))
		if size += len(text) + 1; size > maxSchema {
			w.fail("its schema has more than %d KiB", maxSchema>>10)
			return
		}
		if !seen[text] || m.name != "enum" {
			texts = append(texts, text)
		}
		seen[text] = true
	}
	if m.name == "enum" && w.nullable(n) && !slices.Contains(texts, "null") {
		texts = append(texts, "null")
	}
	w.raw(m.name, []byte("["+strings.Join(texts, ",")+"]"))
}

// nullable reports whether a schema before 3.1 accepts null besides its type.
func (w *schemaWriter) nullable(n *node) bool {
	return !w.plain && (n.bool("nullable") || n.bool("x-nullable"))
}

var typeWords = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

// types writes the types of a schema that JSON Schema knows. A file is the base64 of its content.
func (w *schemaWriter) types(n, v *node) {
	var names []string
	for _, t := range append(slices.Clone(v.items), v) {
		switch {
		case t.kind != '"':
		case t.text == "file" && w.old:
			w.raw("contentEncoding", []byte(`"base64"`))
			names = append(names, "string")
		case slices.Contains(typeWords, t.text) && !slices.Contains(names, t.text):
			names = append(names, t.text)
		}
	}
	if len(names) == 0 {
		return
	}
	if w.nullable(n) && !slices.Contains(names, "null") {
		names = append(names, "null")
	}
	if len(names) == 1 {
		w.raw("type", jsonx.AppendString(nil, names[0]))
		return
	}
	w.raw("type", []byte(`["`+strings.Join(names, `","`)+`"]`))
}

// older writes what revisions before 3.1 say in another way.
func (w *schemaWriter) older(n *node) {
	for _, side := range []string{"Minimum", "Maximum"} {
		limit, exclusive := n.get(strings.ToLower(side)), n.get("exclusive"+side)
		switch {
		case exclusive == nil:
		case exclusive.kind == 't' && limit != nil && limit.kind == '0':
			w.raw("exclusive"+side, []byte(limit.text))
		case exclusive.kind == '0': // as in JSON Schema, against the specification
			w.raw("exclusive"+side, []byte(exclusive.text))
		}
	}
	if n.get("type") == nil && w.nullable(n) && n.get("allOf") != nil && n.get("anyOf") == nil {
		// Without a type nullable says nothing by the letter, and everybody who writes it means this.
		inner := slices.Clone(w.dst[w.from:])
		w.dst = append(w.dst[:w.from], `{"anyOf":[`...)
		w.dst = append(append(w.dst, inner...), `},{"type":"null"}]`...)
	}
}

// whole reports whether a number is a count.
func whole(text string) bool {
	_, err := strconv.ParseUint(text, 10, 31)
	return err == nil
}

// positive reports whether a number is above zero.
func positive(text string) bool {
	f, _, err := big.ParseFloat(text, 10, 64, big.ToNearestEven)
	return err == nil && f.Sign() > 0
}
