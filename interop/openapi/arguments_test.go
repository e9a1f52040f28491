package openapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
)

type object = map[string]any

// maker makes values that fit a schema most of the time; those that matter are validated.
type maker struct {
	*rand.Rand
	defs  object
	files map[string]string // the contents of files, by their base64
}

// contents returns a form with the contents of its files.
func (m *maker) contents(v any) any {
	switch v := v.(type) {
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = m.contents(out[i])
		}
		return out
	case object:
		out := maps.Clone(v)
		for name := range out {
			out[name] = m.contents(out[name])
		}
		return out
	case string:
		if content, ok := m.files[v]; ok {
			return content
		}
	}
	return v
}

// arguments makes arguments of a tool: those that are required, and the others half of the time. Without all, only the
// required ones are made. It returns nil where a required one cannot be made.
func (m *maker) arguments(input object, all bool) object {
	m.defs, _ = input["$defs"].(object)
	out := object{}
	properties, _ := input["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		must := listed(input, name)
		if !must && (!all || m.IntN(2) == 0) {
			continue
		}
		if v, ok := m.value(properties[name], 0); ok {
			out[name] = v
		} else if must {
			return nil
		}
	}
	return out
}

func listed(s object, name string) bool {
	required, _ := s["required"].([]any)
	return slices.Contains(required, any(name))
}

// merge returns a with the members of b; properties and required names are united.
func merge(a, b object) object {
	out := maps.Clone(a)
	for name, v := range b {
		switch old := out[name].(type) {
		case object:
			if v, ok := v.(object); ok && name == "properties" {
				out[name] = merge(old, v)
				continue
			}
		case []any:
			if v, ok := v.([]any); ok && name == "required" {
				out[name] = slices.Concat(old, v)
				continue
			}
		}
		out[name] = v
	}
	return out
}

// flat returns a schema with what it refers to, and one of its alternatives.
func (m *maker) flat(s any, depth int) (object, bool) {
	o, ok := s.(object)
	if depth > 20 || !ok {
		return object{}, s != false && depth <= 20
	}
	if ref, ok := o["$ref"].(string); ok {
		rest := maps.Clone(o)
		delete(rest, "$ref")
		target, ok := m.flat(m.defs[strings.TrimPrefix(ref, "#/$defs/")], depth+1)
		if !ok {
			return nil, false
		}
		o = merge(target, rest)
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := o[word].([]any)
		if len(list) == 0 {
			continue
		}
		if o = maps.Clone(o); word != "allOf" {
			i := m.IntN(len(list))
			list = list[i : i+1]
		}
		delete(o, word)
		for _, item := range list {
			one, ok := m.flat(item, depth+1)
			if !ok {
				return nil, false
			}
			o = merge(o, one)
		}
	}
	return o, true
}

func (m *maker) value(schema any, depth int) (any, bool) {
	s, ok := m.flat(schema, 0)
	if !ok || depth > 8 {
		return nil, false
	}
	if v, ok := s["const"]; ok {
		return v, true
	}
	if list, _ := s["enum"].([]any); len(list) > 0 {
		return list[m.IntN(len(list))], true
	}
	kind, _ := s["type"].(string)
	if list, _ := s["type"].([]any); len(list) > 0 {
		kind, _ = list[m.IntN(len(list))].(string)
	}
	switch {
	case kind == "" && s["properties"] != nil:
		kind = "object"
	case kind == "" && s["items"] != nil:
		kind = "array"
	}
	switch kind {
	case "null":
		return nil, true
	case "boolean":
		return m.IntN(2) == 0, true
	case "integer", "number":
		return m.number(s, kind == "integer"), true
	case "array":
		return m.list(s, depth)
	case "object":
		return m.table(s, depth)
	}
	return m.text(s)
}

func (m *maker) table(s object, depth int) (any, bool) {
	out := object{}
	properties, _ := s["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		must := listed(s, name)
		if !must && (depth > 2 || m.IntN(2) == 0) {
			continue
		}
		if v, ok := m.value(properties[name], depth+1); ok {
			out[name] = v
		} else if must {
			return nil, false
		}
	}
	if more, ok := s["additionalProperties"].(object); ok && len(out) == 0 && depth < 3 {
		if v, ok := m.value(more, depth+1); ok {
			out["key "+words[m.IntN(len(words))]] = v
		}
	}
	return out, true
}

func (m *maker) list(s object, depth int) (any, bool) {
	least, most := m.count(s, "minItems", 1), m.count(s, "maxItems", 1<<20)
	var out []any
	for n := min(max(least, 1)+m.IntN(2), most); len(out) < n; {
		v, ok := m.value(s["items"], depth+1)
		if !ok {
			return nil, false
		}
		out = append(out, v)
	}
	return out, len(out) > 0
}

func (m *maker) count(s object, name string, or int) int {
	if n, ok := s[name].(json.Number); ok {
		if n, err := n.Int64(); err == nil {
			return int(n)
		}
	}
	return or
}

// number makes a number within the limits of a schema, as the text of JSON.
func (m *maker) number(s object, whole bool) json.Number {
	limit := func(name string, or *big.Rat) *big.Rat {
		if n, ok := s[name].(json.Number); ok {
			if r, ok := new(big.Rat).SetString(n.String()); ok {
				return r
			}
		}
		return or
	}
	step := limit("multipleOf", big.NewRat(1, 1))
	if s["multipleOf"] == nil && !whole {
		step = big.NewRat(1, 4)
	}
	low := limit("minimum", limit("exclusiveMinimum", nil))
	high := limit("maximum", limit("exclusiveMaximum", nil))
	from := big.NewRat(m.Int64N(1000)-100, 1)
	switch {
	case low != nil && high != nil:
		from = new(big.Rat).Add(low, new(big.Rat).Mul(new(big.Rat).Sub(high, low), big.NewRat(m.Int64N(5), 5)))
	case low != nil:
		from = new(big.Rat).Add(low, big.NewRat(m.Int64N(50), 1))
	case high != nil:
		from = new(big.Rat).Sub(high, big.NewRat(m.Int64N(50), 1))
	case whole && s["format"] == "int64" && m.IntN(4) == 0:
		from = big.NewRat(9007199254740993, 1)
	}
	times := new(big.Rat).Quo(from, step)
	floor := new(big.Int).Div(times.Num(), times.Denom())
	n := new(big.Rat).Mul(new(big.Rat).SetInt(floor), step)
	if low != nil && n.Cmp(low) <= 0 && (n.Cmp(low) < 0 || s["minimum"] == nil) {
		n.Add(n, step)
	}
	if n.IsInt() {
		return json.Number(n.Num().String())
	}
	return json.Number(strings.TrimRight(n.FloatString(10), "0"))
}

// words have what is special in a part of a request.
var words = []string{
	"plain", "two words", "a/b", "100%", "a+b", "x&y=z", "käse", "日本語", "☃ 😀", "semi;colon", `quote"s`, `back\slash`, "a,b", "what?#frag",
	"..a", "%2F", "a%252e", "<x>", "a|b", "[0]", "{b}", "it's", "~user", "a:b@c", "$top", "*", "=", "true", "null", "007",
}

var formats = map[string]string{
	"date": "2026-02-28", "date-time": "2026-02-28T12:00:00Z", "time": "12:00:00Z", "uuid": "0b0c5f6c-6f0e-4f3c-9a58-3f0c1e2d4a5b",
	"email": "a+b@example.com", "uri": "https://example.com/a%20b?c=d&e#f", "url": "https://example.com/a?b=c", "hostname": "example.com",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "byte": "aGVsbG8gd29ybGQ/", "duration": "PT1H", "uri-reference": "/a?b", "regex": "^a+$",
	"json-pointer": "/a~1b", "unix-time": "1700000000", "decimal": "1.5", "int64": "9007199254740993", "uint64": "18446744073709551615",
}

func (m *maker) text(s object) (any, bool) {
	if s["contentEncoding"] == "base64" {
		content := "\xff\x00\r\n--" + words[m.IntN(len(words))]
		text := base64.StdEncoding.EncodeToString([]byte(content))
		m.files[text] = content
		return text, true
	}
	least, most := m.count(s, "minLength", 0), m.count(s, "maxLength", 1<<20)
	if pattern, ok := s["pattern"].(string); ok {
		re, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return nil, false
		}
		for range 20 {
			if text := m.matching(re.Simplify()); len([]rune(text)) >= least && len([]rune(text)) <= most {
				return text, true
			}
		}
		return nil, false
	}
	if format, ok := s["format"].(string); ok && formats[format] != "" {
		return formats[format], true
	}
	text := []rune(words[m.IntN(len(words))])
	for len(text) < least {
		text = append(text, text...)
	}
	return string(text[:min(len(text), max(most, least))]), most > 0
}

// matching makes a text for a regular expression.
func (m *maker) matching(re *syntax.Regexp) string {
	var b strings.Builder
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		for range 20 {
			i := m.IntN(len(re.Rune)/2) * 2
			if c := re.Rune[i] + m.Int32N(min(re.Rune[i+1]-re.Rune[i], 60)+1); c >= ' ' && c != 0x7f {
				return string(c)
			}
		}
		return "a"
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return string([]rune("ab1 %é")[m.IntN(6)])
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			b.WriteString(m.matching(sub))
		}
	case syntax.OpAlternate:
		return m.matching(re.Sub[m.IntN(len(re.Sub))])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		n := m.IntN(2)
		switch re.Op {
		case syntax.OpPlus:
			n = 1 + m.IntN(4)
		case syntax.OpRepeat:
			n = re.Min + n
			if re.Max >= 0 {
				n = min(n, re.Max)
			}
		}
		for range n {
			b.WriteString(m.matching(re.Sub[0]))
		}
	}
	return b.String()
}

// exact returns how two values of JSON differ, "" if they do not. Numbers are compared as numbers.
func exact(got, want any) string {
	g, w := plain(got), plain(want)
	if equal(g, w) {
		return ""
	}
	a, _ := json.Marshal(g)
	b, _ := json.Marshal(w)
	return fmt.Sprintf("%.300s arrived, %.300s was sent", a, b)
}

// plain returns a value as it is in JSON, with the text of its numbers.
func plain(v any) (out any) {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		return err
	}
	return out
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case object:
		b, ok := b.(object)
		return ok && maps.EqualFunc(a, b, equal)
	case json.Number:
		b, ok := b.(json.Number)
		x, okX := new(big.Rat).SetString(a.String())
		y, okY := new(big.Rat).SetString(b.String())
		return ok && okX && okY && x.Cmp(y) == 0
	}
	return a == b
}
