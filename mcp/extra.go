package mcp

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Extra keeps the members of listed features that this package does not know, so that a decoded
// feature can be offered again without loss. Each pair of methods below reads and writes them
// beside the known members.

var (
	toolMembers     = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution", "icons", "_meta"}
	promptMembers   = []string{"name", "title", "description", "arguments", "icons", "_meta"}
	resourceMembers = []string{"uri", "name", "title", "description", "mimeType", "size", "annotations", "icons", "_meta"}
	templateMembers = []string{"uriTemplate", "name", "title", "description", "mimeType", "annotations", "icons", "_meta"}
)

// MarshalJSON writes the form of the specification.
func (t Tool) MarshalJSON() ([]byte, error) {
	type plain Tool
	return marshalExtra(plain(t), t.Extra, toolMembers)
}

// UnmarshalJSON reads the form of the specification.
func (t *Tool) UnmarshalJSON(data []byte) error {
	type plain Tool
	return unmarshalExtra(data, (*plain)(t), &t.Extra, toolMembers)
}

// MarshalJSON writes the form of the specification.
func (p Prompt) MarshalJSON() ([]byte, error) {
	type plain Prompt
	return marshalExtra(plain(p), p.Extra, promptMembers)
}

// UnmarshalJSON reads the form of the specification.
func (p *Prompt) UnmarshalJSON(data []byte) error {
	type plain Prompt
	return unmarshalExtra(data, (*plain)(p), &p.Extra, promptMembers)
}

// MarshalJSON writes the form of the specification.
func (r Resource) MarshalJSON() ([]byte, error) {
	type plain Resource
	return marshalExtra(plain(r), r.Extra, resourceMembers)
}

// UnmarshalJSON reads the form of the specification.
func (r *Resource) UnmarshalJSON(data []byte) error {
	type plain Resource
	return unmarshalExtra(data, (*plain)(r), &r.Extra, resourceMembers)
}

// MarshalJSON writes the form of the specification.
func (r ResourceTemplate) MarshalJSON() ([]byte, error) {
	type plain ResourceTemplate
	return marshalExtra(plain(r), r.Extra, templateMembers)
}

// UnmarshalJSON reads the form of the specification.
func (r *ResourceTemplate) UnmarshalJSON(data []byte) error {
	type plain ResourceTemplate
	return unmarshalExtra(data, (*plain)(r), &r.Extra, templateMembers)
}

func marshalExtra(plain any, extra map[string]json.RawMessage, known []string) ([]byte, error) {
	out, err := jsonx.Marshal(plain)
	if err != nil || len(extra) == 0 {
		return out, err
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if !slices.Contains(known, name) {
			out = jsonx.With(nil, out, name, orNull(extra[name]))
		}
	}
	return out, nil
}

func unmarshalExtra(data []byte, plain any, extra *map[string]json.RawMessage, known []string) error {
	if err := jsonx.Unmarshal(data, plain); err != nil {
		return err
	}
	*extra = nil
	for name, value := range jsonx.Members(data) {
		if slices.Contains(known, string(name)) {
			continue
		}
		if *extra == nil {
			*extra = map[string]json.RawMessage{}
		}
		(*extra)[string(name)] = append(json.RawMessage(nil), value...)
	}
	return nil
}

// orNull is raw, or null for nothing.
func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`null`)
	}
	return raw
}
