package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// maxInline bounds the schema of a type whose parts are all written where they
// are used. Over it, the parts that are used more than once move to $defs.
const maxInline = 64 << 10

// emitter writes the schema of a graph of nodes.
type emitter struct {
	buf   []byte
	defs  map[*node]string // nodes that are written as $ref
	limit int              // stop past this many bytes; 0: no limit
	err   error
}

// emit returns the schema of root and the nodes in its $defs.
func emit(root *spec) (json.RawMessage, map[*node]string, error) {
	recursive := cycles(root.node)
	e := emitter{defs: named(recursive), limit: maxInline}
	raw := e.document(root, recursive)
	if e.err == nil && len(raw) > e.limit {
		shared := append(recursive, repeated(root.node, recursive)...)
		e = emitter{defs: named(shared)}
		raw = e.document(root, shared)
	}
	return raw, e.defs, e.err
}

// document writes the schema and then its definitions.
func (e *emitter) document(root *spec, defs []*node) json.RawMessage {
	e.spec(root, true)
	if len(defs) == 0 {
		return e.buf
	}
	e.buf = append(e.buf[:len(e.buf)-1], `,"$defs":{`...)
	for i, n := range defs {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = jsonx.AppendString(e.buf, e.defs[n])
		e.buf = append(e.buf, ':')
		e.place(&spec{node: n}, true)
	}
	e.buf = append(e.buf, "}}"...)
	return e.buf
}

// cycles returns the nodes that contain themselves and are met again on the
// way down, in the order they are met.
func cycles(root *node) []*node {
	var found []*node
	const open, done = 1, 2
	state := map[*node]int{}
	marked := map[*node]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		if n == nil {
			return
		}
		switch state[n] {
		case open:
			if !marked[n] {
				marked[n] = true
				found = append(found, n)
			}
			return
		case done:
			return
		}
		state[n] = open
		n.inside(walk)
		state[n] = done
	}
	walk(root)
	return found
}

// repeated returns the structs that are used in more than one place.
func repeated(root *node, except []*node) []*node {
	var found []*node
	uses := map[*node]int{}
	var walk func(n *node)
	walk = func(n *node) {
		if n == nil {
			return
		}
		uses[n]++
		if uses[n] == 2 && n.kind == kindStruct && n.typ.Name() != "" {
			for _, x := range except {
				if x == n {
					return
				}
			}
			found = append(found, n)
		}
		if uses[n] == 1 {
			n.inside(walk)
		}
	}
	walk(root)
	return found
}

// inside calls f with the nodes directly below n.
func (n *node) inside(f func(*node)) {
	for i := range n.fields {
		f(n.fields[i].node)
	}
	f(n.elem.node)
}

// named gives each node a name of its own within $defs.
func named(nodes []*node) map[*node]string {
	names := map[*node]string{}
	taken := map[string]bool{}
	for _, n := range nodes {
		base := defName(n.typ)
		name := base
		for i := 2; taken[name]; i++ {
			name = base + strconv.Itoa(i)
		}
		taken[name] = true
		names[n] = name
	}
	return names
}

// defName turns a type's name into one that needs no escaping in a $ref:
// Page[main.Item] becomes Page_Item.
func defName(t reflect.Type) string {
	name := t.Name()
	if name == "" {
		return "value"
	}
	head, args, generic := strings.Cut(name, "[")
	if generic {
		for arg := range strings.SplitSeq(strings.TrimSuffix(args, "]"), ",") {
			head += "_" + arg[strings.LastIndexAny(arg, "./")+1:]
		}
	}
	return strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, head)
}

// spec writes the schema of a place. The root is never a $ref.
func (e *emitter) spec(s *spec, root bool) {
	_, ref := e.defs[s.node]
	plain := s.node.kind == kindAny || s.node.kind == kindRaw || s.node.kind == kindCustom
	if !s.nullable || plain || !(ref || s.node.kind == kindHook) {
		e.place(s, root)
		return
	}
	e.buf = append(e.buf, `{"anyOf":[`...)
	e.place(&spec{node: s.node}, root)
	e.buf = append(e.buf, `,{"type":"null"}]`...)
	e.annotations(s.rules)
	e.buf = append(e.buf, '}')
}

// place writes the schema of a place that is not null.
func (e *emitter) place(s *spec, root bool) {
	if e.limit > 0 && len(e.buf) > e.limit {
		e.buf = append(e.buf, "{}"...)
		return
	}
	n, r := s.node, s.rules
	if name, ref := e.defs[n]; ref && !root {
		e.buf = append(e.buf, `{"$ref":"#/$defs/`+name+`"`...)
		e.annotations(r)
		e.buf = append(e.buf, '}')
		return
	}
	if n.kind == kindHook {
		e.hook(s, root)
		return
	}
	e.buf = append(e.buf, '{')
	if t := n.jsonType(); t != "" {
		if s.nullable {
			e.buf = append(e.buf, `"type":["`+t+`","null"]`...)
		} else {
			e.buf = append(e.buf, `"type":"`+t+`"`...)
		}
	}
	e.annotations(r)
	switch n.kind {
	case kindBytes:
		e.raw("contentEncoding", `"base64"`)
		if n.bits >= 0 {
			e.base64Length(n.bits)
		}
	case kindTime:
		e.raw("format", `"date-time"`)
	case kindDuration:
		e.raw("pattern", string(quoteJSON(durationPattern)))
	case kindSlice, kindArray, kindMap:
		if n.kind == kindMap {
			e.key("additionalProperties")
		} else {
			e.key("items")
		}
		e.spec(&n.elem, false)
		if n.kind == kindArray {
			e.raw("minItems", strconv.Itoa(n.bits))
			e.raw("maxItems", strconv.Itoa(n.bits))
		}
	case kindStruct:
		e.object(n)
	}
	e.constraints(s)
	e.buf = append(e.buf, '}')
}

// base64Length writes that a base64 text holds exactly n bytes.
func (e *emitter) base64Length(n int) {
	padding := (3 - n%3) % 3
	digits := (n+2)/3*4 - padding
	if digits > 1000 { // the most that Go's regexp repeats
		size := strconv.Itoa(digits + padding)
		e.raw("minLength", size)
		e.raw("maxLength", size)
		return
	}
	e.raw("pattern", fmt.Sprintf(`"^[A-Za-z0-9+/]{%d}%s$"`, digits, "=="[:padding]))
}

func (e *emitter) object(n *node) {
	e.buf = append(e.buf, `,"properties":{`...)
	var required []string
	for i := range n.fields {
		f := &n.fields[i]
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = jsonx.AppendString(e.buf, f.name)
		e.buf = append(e.buf, ':')
		e.spec(&f.spec, false)
		if f.required {
			required = append(required, f.name)
		}
	}
	e.buf = append(e.buf, '}')
	if required != nil {
		e.list("required", len(required), func(i int) { e.buf = jsonx.AppendString(e.buf, required[i]) })
	}
	if n.rest == nil {
		e.raw("additionalProperties", "false")
		return
	}
	e.key("additionalProperties")
	e.spec(&n.elem, false)
}

// hook writes the schema that a type's own method returns, with the annotations of the place.
func (e *emitter) hook(s *spec, root bool) {
	raw := string(s.node.raw)
	if root {
		e.buf = append(e.buf, raw...)
		return
	}
	for _, word := range []string{`"$ref"`, `"$dynamicRef"`, `"$id"`, `"$schema"`, `"$anchor"`} {
		if strings.Contains(raw, word) && e.err == nil {
			// Inside a larger schema a reference would lead to another place.
			e.err = fmt.Errorf("%s: its JSONSchema has %s and can only be the whole schema, not a part of one", s.node.typ, word)
		}
	}
	if s.rules == nil || raw == "true" || raw == "false" {
		e.buf = append(e.buf, raw...)
		return
	}
	mark := len(e.buf)
	e.buf = append(e.buf, '{')
	e.annotations(s.rules)
	switch {
	case len(e.buf) == mark+1:
		e.buf = append(e.buf[:mark], raw...)
	default:
		e.raw("allOf", "["+raw+"]")
		e.buf = append(e.buf, '}')
	}
}

// jsonType returns the "type" of a node, "" for any.
func (n *node) jsonType() string {
	switch n.kind {
	case kindBool:
		return "boolean"
	case kindString, kindBytes, kindTime, kindDuration, kindText:
		return "string"
	case kindInt, kindUint:
		return "integer"
	case kindFloat, kindNumber:
		return "number"
	case kindSlice, kindArray:
		return "array"
	case kindMap, kindStruct:
		return "object"
	}
	return ""
}

// annotations writes the keywords that do not affect validity.
func (e *emitter) annotations(r *rules) {
	if r == nil {
		return
	}
	if r.title != "" {
		e.raw("title", string(quoteJSON(r.title)))
	}
	if r.doc != "" {
		e.raw("description", string(quoteJSON(r.doc)))
	}
	if r.headerName != "" {
		e.raw("x-mcp-header", string(quoteJSON(r.headerName)))
	}
	if r.def != nil {
		e.raw("default", string(r.def))
	}
	if r.examples != nil {
		e.list("examples", len(r.examples), func(i int) { e.buf = append(e.buf, r.examples[i]...) })
	}
}

// constraints writes the constraints of the rules of a place.
func (e *emitter) constraints(s *spec) {
	r := s.rules
	if r == nil {
		return
	}
	if r.enum != nil {
		values := r.enum
		if s.nullable {
			values = append(values[:len(values):len(values)], json.RawMessage("null"))
		}
		e.list("enum", len(values), func(i int) { e.buf = append(e.buf, values[i]...) })
	}
	for _, b := range []struct {
		key   string
		bound *bound
	}{
		{"minimum", r.min}, {"maximum", r.max},
		{"exclusiveMinimum", r.exMin}, {"exclusiveMaximum", r.exMax}, {"multipleOf", r.multipleOf},
	} {
		if b.bound != nil {
			e.raw(b.key, b.bound.lit)
		}
	}
	what := map[kind]string{kindString: "Length", kindText: "Length", kindSlice: "Items", kindArray: "Items", kindMap: "Properties"}[s.node.kind]
	if r.minSize > 0 && what != "" {
		e.raw("min"+what, strconv.Itoa(r.minSize))
	}
	if r.maxSize >= 0 && what != "" {
		e.raw("max"+what, strconv.Itoa(r.maxSize))
	}
	if r.unique {
		e.raw("uniqueItems", "true")
	}
	if r.pattern != nil {
		e.raw("pattern", string(quoteJSON(r.pattern.String())))
	}
	if r.format != nil {
		e.raw("format", string(quoteJSON(r.format.name)))
	}
}

// key starts a member, with a comma before all but the first.
func (e *emitter) key(name string) {
	if e.buf[len(e.buf)-1] != '{' {
		e.buf = append(e.buf, ',')
	}
	e.buf = jsonx.AppendString(e.buf, name)
	e.buf = append(e.buf, ':')
}

func (e *emitter) raw(key, value string) {
	e.key(key)
	e.buf = append(e.buf, value...)
}

func (e *emitter) list(key string, n int, item func(int)) {
	e.key(key)
	e.buf = append(e.buf, '[')
	for i := range n {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		item(i)
	}
	e.buf = append(e.buf, ']')
}
