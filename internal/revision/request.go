package revision

import (
	"crypto/rand"
	"encoding/json"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Question converts the params of a request that a server sends to a client (elicitation,
// sampling, roots) from the inner form. The error, a [*Lack], names the part that the revision
// does not have.
func (t *Table) Question(method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case MethodElicit:
		return t.elicitation(params)
	case MethodSample:
		return t.sampling(params)
	}
	return params, nil
}

// InnerQuestion converts the params of a request that a server of this revision
// sent to the inner form.
func (t *Table) InnerQuestion(method string, params json.RawMessage) json.RawMessage {
	if method == MethodElicit && t.Sessions {
		return jsonx.Without(nil, params, "elicitationId") // T-43
	}
	return params
}

// Answer converts a client's answer to such a request from the inner form. Before 2025-11-25 a
// completion is one block: the texts of several are joined; without texts the first block is used.
func (t *Table) Answer(method string, answer json.RawMessage) json.RawMessage {
	if method != MethodSample || t.Lacks&SampleTools == 0 {
		return answer
	}
	content, _ := jsonx.Lookup(answer, "content")
	if jsonx.KindOf(content) == '{' {
		return jsonx.With(nil, answer, "content", t.block(content))
	}
	if jsonx.KindOf(content) != '[' {
		return answer
	}
	one := json.RawMessage(`{"type":"text","text":""}`)
	var texts []string
	first := true
	for b := range jsonx.Elements(content) {
		if first {
			one, first = t.block(b), false
		}
		if raw, ok := jsonx.Lookup(b, "text"); ok {
			text, _ := jsonx.Unquote(raw)
			texts = append(texts, text)
		}
	}
	if texts != nil {
		one = append(jsonx.AppendString([]byte(`{"type":"text","text":`), strings.Join(texts, "\n")), '}')
	}
	return jsonx.With(nil, answer, "content", one)
}

// Params converts the params of a request that a client sends, from the inner form.
func (t *Table) Params(method string, params json.RawMessage) json.RawMessage {
	if method == MethodComplete && t.Lacks&CompleteContext != 0 {
		return jsonx.Without(nil, params, "context")
	}
	return params
}

// Notification converts the params of a notification that a server sends.
func (t *Table) Notification(method string, params json.RawMessage) json.RawMessage {
	if method == NoteProgress && t.Lacks&ProgressMessage != 0 {
		return jsonx.Without(nil, params, "message")
	}
	return params
}

// ClientCapabilities converts a client's capabilities to those that this revision has.
func (t *Table) ClientCapabilities(caps json.RawMessage) json.RawMessage {
	if ext, ok := jsonx.Lookup(caps, "extensions"); ok && t.Sessions {
		// A client that speaks 2025-11-25 requests a task with each call.
		if ext = jsonx.Without(nil, ext, Tasks); len(ext) > 2 {
			caps = jsonx.With(nil, caps, "extensions", ext)
		} else {
			caps = jsonx.Without(nil, caps, "extensions")
		}
	}
	if t.Lacks&Elicitation != 0 {
		return dropAll(caps, "elicitation", "sampling")
	}
	if t.Lacks&RichForms != 0 {
		return dropSettings(caps, "elicitation", "sampling")
	}
	return caps
}

// dropAll removes the first capability and empties the others.
func dropAll(caps json.RawMessage, gone string, empty ...string) json.RawMessage {
	return dropSettings(jsonx.Without(nil, caps, gone), empty...)
}

// dropSettings keeps capabilities but empties their settings.
func dropSettings(caps json.RawMessage, names ...string) json.RawMessage {
	for _, n := range names {
		if _, ok := jsonx.Lookup(caps, n); ok {
			caps = jsonx.With(nil, caps, n, []byte(`{}`))
		}
	}
	return caps
}

// ServerCapabilities converts a server's capabilities to those that this revision has.
func (t *Table) ServerCapabilities(caps json.RawMessage) json.RawMessage {
	if !t.Sessions {
		return caps
	}
	if ext, ok := jsonx.Lookup(caps, "extensions"); ok {
		if _, ok := jsonx.Lookup(ext, Tasks); ok {
			if ext = jsonx.Without(nil, ext, Tasks); len(ext) > 2 {
				caps = jsonx.With(nil, caps, "extensions", ext)
			} else {
				caps = jsonx.Without(nil, caps, "extensions")
			}
			if t.CoreTasks {
				caps = jsonx.With(nil, caps, "tasks", []byte(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`))
			}
		}
	}
	if t == V20241105 {
		return jsonx.Without(nil, caps, "completions")
	}
	return caps
}

func (t *Table) elicitation(params json.RawMessage) (json.RawMessage, error) {
	switch {
	case t.Lacks&Elicitation != 0:
		return nil, &Lack{Revision: t.Name, What: "elicitation"}
	case text(params, "mode") == "url":
		if t.Lacks&ElicitURL != 0 {
			return nil, &Lack{Revision: t.Name, What: "elicitation by URL"}
		}
		if t.Sessions {
			// 2025-11-25 gives each URL elicitation an id; in 2026-07-28 the retry signals its
			// end (T-26).
			params = jsonx.With(nil, params, "elicitationId", jsonx.AppendString(nil, rand.Text()))
		}
		return params, nil
	case t.Lacks&RichForms == 0:
		return params, nil
	}
	params = jsonx.Without(nil, params, "mode")
	form, ok := jsonx.Lookup(params, "requestedSchema")
	if !ok {
		return params, nil
	}
	props, ok := jsonx.Lookup(form, "properties")
	if !ok {
		return params, nil
	}
	plain := []byte{'{'}
	for name, field := range jsonx.Members(props) {
		field, err := t.plainField(field)
		if err != nil {
			return nil, err
		}
		if len(plain) > 1 {
			plain = append(plain, ',')
		}
		plain = jsonx.AppendString(plain, string(name))
		plain = append(append(plain, ':'), field...)
	}
	plain = append(plain, '}')
	return jsonx.With(nil, params, "requestedSchema", jsonx.With(nil, form, "properties", plain)), nil
}

// plainField converts one field of a form to 2025-06-18 (T-72 to T-76).
func (t *Table) plainField(field json.RawMessage) (json.RawMessage, error) {
	kind := text(field, "type")
	if kind == "array" {
		return nil, &Lack{Revision: t.Name, What: "form with a multiple choice"}
	}
	if kind != "boolean" {
		field = jsonx.Without(nil, field, "default")
	}
	field = jsonx.Without(nil, field, "pattern")
	options, ok := jsonx.Lookup(field, "oneOf")
	if !ok {
		return field, nil
	}
	values, names := []byte{'['}, []byte{'['}
	for o := range jsonx.Elements(options) {
		value, ok := jsonx.Lookup(o, "const")
		if !ok {
			continue // not an option that could be chosen
		}
		name, ok := jsonx.Lookup(o, "title")
		if !ok {
			name = value
		}
		if len(values) > 1 {
			values, names = append(values, ','), append(names, ',')
		}
		values, names = append(values, value...), append(names, name...)
	}
	field = jsonx.Without(nil, field, "oneOf")
	field = jsonx.With(nil, field, "enum", append(values, ']'))
	return jsonx.With(nil, field, "enumNames", append(names, ']')), nil
}

func (t *Table) sampling(params json.RawMessage) (json.RawMessage, error) {
	if t.Lacks&SampleTools == 0 {
		return params, nil
	}
	if tools, ok := jsonx.Lookup(params, "tools"); ok && string(tools) != "[]" {
		return nil, &Lack{Revision: t.Name, What: "sampling with tools"}
	}
	params = jsonx.Without(nil, params, "tools", "toolChoice")
	var fault error
	params = mapMember(params, "messages", func(m json.RawMessage) json.RawMessage {
		c, ok := jsonx.Lookup(m, "content")
		if !ok {
			return m
		}
		if jsonx.KindOf(c) == '[' {
			var blocks []json.RawMessage
			for b := range jsonx.Elements(c) {
				blocks = append(blocks, b)
			}
			if len(blocks) != 1 {
				fault = &Lack{Revision: t.Name, What: "sampling message of several blocks"}
				return m
			}
			c = blocks[0]
		}
		return jsonx.With(nil, m, "content", t.block(c))
	})
	return params, fault
}

// Lack is the error for a part of a message that a revision does not have.
type Lack struct {
	Revision string
	What     string
}

func (l *Lack) Error() string { return "revision " + l.Revision + " has no " + l.What }
