package hosts

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// object is a JSON object that is being changed. Its members keep their order.
type object struct{ fields []field }

type field struct {
	name  string
	value json.RawMessage
}

func objectOf(raw []byte) *object {
	o := new(object)
	for name, value := range jsonx.Members(raw) {
		o.fields = append(o.fields, field{string(name), value})
	}
	return o
}

func (o *object) at(name string) int {
	return slices.IndexFunc(o.fields, func(f field) bool { return f.name == name })
}

func (o *object) has(name string) bool { return o.at(name) >= 0 }

func (o *object) get(name string) json.RawMessage {
	if i := o.at(name); i >= 0 {
		return o.fields[i].value
	}
	return nil
}

// text returns a member, or "" if it is not a string.
func (o *object) text(name string) string {
	s, err := jsonx.Unquote(o.get(name))
	if err != nil {
		return ""
	}
	return s
}

// set changes a member or adds it to the end.
func (o *object) set(name string, value json.RawMessage) {
	if i := o.at(name); i >= 0 {
		o.fields[i].value = value
	} else {
		o.fields = append(o.fields, field{name, value})
	}
}

func (o *object) setText(name, value string) { o.set(name, quoted(value)) }

// rename gives a member another name, unless that is taken.
func (o *object) rename(from, to string) {
	if i := o.at(from); i >= 0 && !o.has(to) {
		o.fields[i].name = to
	}
}

func (o *object) remove(names ...string) {
	o.fields = slices.DeleteFunc(o.fields, func(f field) bool { return slices.Contains(names, f.name) })
}

func (o *object) json() json.RawMessage {
	out := []byte{'{'}
	for i, f := range o.fields {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(jsonx.AppendString(out, f.name), ':'), f.value...)
	}
	return append(out, '}')
}

func quoted(s string) json.RawMessage { return jsonx.AppendString(nil, s) }

// order is the order of a server's members for formats without an order.
var order = []string{"type", "command", "args", "env", "envFile", "cwd", "url", "headers", "disabled"}

// ordered makes an object of decoded YAML or TOML. The result ok is false if JSON cannot represent
// the value.
func ordered(v any) (o *object, ok bool) {
	members, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	o = new(object)
	rank := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	for _, name := range slices.SortedFunc(maps.Keys(members), func(a, b string) int {
		if c := rank(a) - rank(b); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	}) {
		raw, err := json.Marshal(members[name])
		if err != nil {
			return nil, false
		}
		o.set(name, raw)
	}
	return o, true
}

// decoded decodes a JSON text and keeps whole numbers as integers.
func decoded(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return numbers(v), nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // JSON has no others
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}
