package hosts

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// goose lists extensions in YAML. Those of the types stdio, sse and streamable_http
// are servers; the others are parts of goose itself.

// gooseWords are goose's names for members of mcp.json.
var gooseWords = [][2]string{{"cmd", "command"}, {"envs", "env"}, {"uri", "url"}}

func readGoose(_ Host, data []byte, from From) (*Listing, error) {
	var file struct {
		Extensions yaml.Node `yaml:"extensions"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s is not YAML: %w", from.Path, err)
	}
	l := new(Listing)
	if file.Extensions.Kind == 0 || file.Extensions.Tag == "!!null" {
		return l, nil
	}
	if file.Extensions.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: \"extensions\" is not a mapping", from.Path, file.Extensions.Line)
	}
	for i := 0; i+1 < len(file.Extensions.Content); i += 2 {
		name := file.Extensions.Content[i].Value
		note := l.about(name)
		var v any
		if err := file.Extensions.Content[i+1].Decode(&v); err != nil {
			note("left out: it cannot be read")
			continue
		}
		o, ok := ordered(v)
		if !ok {
			note("left out: it is a mapping that JSON cannot represent")
			continue
		}
		switch kind := o.text("type"); kind {
		case "stdio", "sse", "streamable_http":
		default:
			note(fmt.Sprintf("left out: an extension of the type %q is part of goose", kind))
			continue
		}
		for _, w := range gooseWords {
			o.rename(w[0], w[1])
		}
		takeEnabled(o)
		for key := range jsonx.Elements(o.get("env_keys")) {
			text, err := jsonx.Unquote(key)
			if _, set := jsonx.Lookup(o.get("env"), text); err == nil && !set {
				note("goose keeps the value of " + text + " itself: set the environment variable " + text)
			}
		}
		verbatim.check(o, note)
		l.Servers = append(l.Servers, config.Entry{Name: name, Object: arrange(o)})
	}
	return l, nil
}

// arrange sorts the members of an object into the usual order.
func arrange(o *object) json.RawMessage {
	out := new(object)
	for _, name := range order {
		if o.has(name) {
			out.set(name, o.get(name))
		}
	}
	for _, f := range o.fields {
		if !out.has(f.name) {
			out.set(f.name, f.value)
		}
	}
	return out.json()
}

func writeGoose(_ Host, l *Listing) ([]byte, error) {
	extensions := yaml.Node{Kind: yaml.MappingNode}
	for _, e := range l.Servers {
		o, note := objectOf(e.Object), l.about(e.Name)
		if !portable(o, note) {
			continue
		}
		keys := takeVariables(o, "env") // goose asks for them, or finds them in the environment
		verbatim.write(o, note)
		switch {
		case !o.has("url"):
			setType(o, "stdio")
		case transport(o) == "sse":
			setType(o, "sse")
		default:
			setType(o, "streamable_http")
		}
		if !o.has("disabled") {
			o.set("disabled", json.RawMessage("false"))
		}
		giveEnabled(o)
		for _, w := range gooseWords {
			o.rename(w[1], w[0])
		}
		if !o.has("name") {
			o.setText("name", e.Name)
		}
		if !o.has("timeout") {
			o.set("timeout", json.RawMessage("300"))
		}
		if len(keys) > 0 {
			for key := range jsonx.Elements(o.get("env_keys")) {
				if text, err := jsonx.Unquote(key); err == nil {
					keys = append(keys, text)
				}
			}
			raw, err := json.Marshal(keys)
			if err != nil {
				return nil, err
			}
			o.set("env_keys", raw)
		}
		v, err := decoded(o.json())
		if err != nil {
			return nil, err
		}
		var value yaml.Node
		if err := value.Encode(v); err != nil {
			return nil, err
		}
		key := yaml.Node{Kind: yaml.ScalarNode}
		key.SetString(e.Name)
		extensions.Content = append(extensions.Content, &key, &value)
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(map[string]*yaml.Node{"extensions": &extensions}); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

// takeVariables removes the entries of a table that are only the variable of the same name, ${K}
// or ${env:K} for K, and returns the names.
func takeVariables(o *object, member string) []string {
	if jsonx.KindOf(o.get(member)) != '{' {
		return nil
	}
	var names []string
	table := objectOf(o.get(member))
	for _, f := range table.fields {
		if name := variable(f.value); name == f.name {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	table.remove(names...)
	o.set(member, table.json())
	if len(table.fields) == 0 {
		o.remove(member)
	}
	return names
}

// variable returns the name of the variable that the text consists of, or "" if it is anything else.
func variable(raw json.RawMessage) string {
	text, err := jsonx.Unquote(raw)
	if err != nil {
		return ""
	}
	m := wholeVariable().FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}
