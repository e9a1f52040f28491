package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// messagesAPI is Messages.
type messagesAPI struct{}

var _ api = messagesAPI{}

func (messagesAPI) read(body []byte, h http.Header) (*Request, error) {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, fmt.Errorf("the request body is not valid JSON: %w", err)
	}
	r := &messagesReader{}
	if h.Get("Anthropic-Version") == "" {
		r.wrong("anthropic-version", "header is required")
	}
	o := r.object("body", v, "model", "messages", "system", "max_tokens", "tools", "tool_choice", "stream", "temperature", "top_p", "top_k",
		"stop_sequences", "thinking", "metadata", "output_config")
	req := &Request{API: "messages", Model: r.text("model", o["model"])}
	req.Stream, _ = o["stream"].(bool)
	r.number("temperature", o["temperature"], 0, 1)
	if o["max_tokens"] == nil {
		r.wrong("max_tokens", "field required")
	}
	r.number("max_tokens", o["max_tokens"], 1, 1e6)
	if text, ok := o["system"].(string); ok {
		req.System = text
	} else if o["system"] != nil {
		for i, b := range r.list("system", o["system"]) {
			at := fmt.Sprintf("system.%d", i)
			block := r.block(at, b, "type", "text")
			req.System += r.filled(at+".text", block["text"])
		}
	}
	if o["output_config"] != nil {
		format := r.object("output_config.format", r.object("output_config", o["output_config"], "format")["format"], "type", "schema")
		r.oneOf("output_config.format.type", r.text("output_config.format.type", format["type"]), "json_schema")
		if schema, _ := format["schema"].(object); schema["type"] == "object" && schema["additionalProperties"] != false {
			r.wrong("output_config.format.schema", "for 'object' type, 'additionalProperties' must be explicitly set to false")
		}
	}
	if o["tools"] != nil {
		for i, t := range r.list("tools", o["tools"]) {
			at := fmt.Sprintf("tools.%d", i)
			tool := r.block(at, t, "name", "description", "input_schema")
			name := r.name(at+".name", tool["name"])
			if slices.Contains(req.Tools, name) {
				r.wrong("tools", "tool names must be unique")
			}
			req.Tools = append(req.Tools, name)
			r.parameters(at+".input_schema", tool["input_schema"])
		}
	}
	req.Choice = r.choice(o["tool_choice"], req.Tools)
	r.messages(req, r.list("messages", o["messages"]))
	if r.marks > 4 {
		r.wrong("cache_control", "a maximum of 4 blocks with cache_control may be provided, found %d", r.marks)
	}
	return req, r.err
}

// messagesReader counts the marks of the cache.
type messagesReader struct {
	reader
	marks int
}

// block reads an object that may be marked for the cache.
func (r *messagesReader) block(path string, v any, known ...string) object {
	o := r.object(path, v, append(known, "cache_control")...)
	if mark := o["cache_control"]; mark != nil {
		r.marks++
		r.oneOf(path+".cache_control", r.text(path, r.object(path+".cache_control", mark, "type", "ttl")["type"]), "ephemeral")
		if text, ok := o["text"].(string); ok && text == "" {
			r.wrong(path, "cache_control cannot be set for empty text blocks")
		}
	}
	return o
}

func (r *messagesReader) filled(path string, v any) string {
	text := r.text(path, v)
	if strings.TrimSpace(text) == "" {
		r.wrong(path, "text content blocks must contain non-whitespace text")
	}
	return text
}

func (r *messagesReader) choice(v any, tools []string) string {
	if v == nil {
		return ""
	}
	if len(tools) == 0 {
		r.wrong("tool_choice", "may only be specified while providing tools")
	}
	o := r.object("tool_choice", v, "type", "name", "disable_parallel_tool_use")
	switch r.oneOf("tool_choice.type", r.text("tool_choice.type", o["type"]), "auto", "any", "tool", "none") {
	case "any":
		return "required"
	case "none":
		return "none"
	case "tool":
		return r.oneOf("tool_choice.name", r.text("tool_choice.name", o["name"]), tools...)
	}
	return ""
}

func (r *messagesReader) messages(req *Request, messages []any) {
	var open []string // calls without a result
	names := map[string]string{}
	for i, v := range messages {
		at := fmt.Sprintf("messages.%d", i)
		m := r.object(at, v, "role", "content")
		role := r.oneOf(at+".role", r.text(at+".role", m["role"]), "user", "assistant")
		if want := []string{"user", "assistant"}[i%2]; role != want {
			r.wrong(at, "roles must alternate between \"user\" and \"assistant\", beginning with \"user\"")
		}
		say := req.say(role == "assistant")
		if text, ok := m["content"].(string); ok {
			m["content"] = []any{object{"type": "text", "text": text}}
		}
		blocks := r.list(at+".content", m["content"])
		if len(blocks) == 0 {
			r.wrong(at, "all messages must have non-empty content")
			continue
		}
		if last, _ := blocks[max(0, len(blocks)-1)].(object); last["type"] == "thinking" {
			r.wrong(at, "the final block in an assistant message cannot be `thinking`")
		}
		waiting := open
		open = nil
		for j, v := range blocks {
			at := fmt.Sprintf("%s.content.%d", at, j)
			b, _ := v.(object)
			kind, _ := b["type"].(string)
			switch {
			case kind == "text":
				say.add(r.filled(at+".text", r.block(at, b, "type", "text")["text"]))
			case role == "user" && (kind == "image" || kind == "document"):
				r.medium(at, b, say)
			case role == "user" && kind == "tool_result":
				id := r.text(at+".tool_use_id", b["tool_use_id"])
				k := slices.Index(waiting, id)
				if k < 0 {
					r.wrong(at, "unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message", id)
				} else {
					waiting = slices.Delete(slices.Clone(waiting), k, k+1)
				}
				if j > len(say.Results) {
					r.wrong(at, "tool_result blocks come first in a message")
				}
				say.Results = append(say.Results, Result{Name: names[id], Text: r.result(at, b, say)})
			case role == "assistant" && kind == "tool_use":
				r.block(at, b, "type", "id", "name", "input")
				id := r.text(at+".id", b["id"])
				if !anyID.MatchString(id) || names[id] != "" {
					r.wrong(at+".id", "%q is malformed or taken", id)
				}
				if _, ok := b["input"].(object); !ok {
					r.wrong(at+".input", "input should be a valid dictionary")
				}
				names[id] = r.name(at+".name", b["name"])
				open = append(open, id)
				say.Calls = append(say.Calls, names[id])
			case role == "assistant" && kind == "thinking":
				r.object(at, b, "type", "thinking", "signature")
				if b["signature"] != sealed(r.text(at+".thinking", b["thinking"])) {
					r.wrong(at, "invalid `signature` in `thinking` block")
				}
			default:
				r.wrong(at+".type", "%q is not expected in a message of the %s", kind, role)
			}
		}
		if len(waiting) > 0 {
			r.wrong(at, "`tool_use` ids were found without `tool_result` blocks immediately after: %s", strings.Join(waiting, ", "))
		}
	}
	if len(messages)%2 == 0 {
		r.wrong("messages", "the final position must be a message of the user")
	}
	if len(names) > 0 && len(req.Tools) == 0 {
		r.wrong("tools", "requests which include `tool_use` or `tool_result` blocks must define tools")
	}
}

func (r *messagesReader) medium(at string, b object, say *Message) {
	b = r.block(at, b, "type", "source", "title")
	source := r.object(at+".source", b["source"], "type", "media_type", "data")
	r.oneOf(at+".source.type", r.text(at, source["type"]), "base64")
	r.base64(at+".source.data", source["data"])
	if b["type"] == "document" {
		r.oneOf(at+".source.media_type", r.text(at, source["media_type"]), "application/pdf")
		return
	}
	r.oneOf(at+".source.media_type", r.text(at, source["media_type"]), "image/png", "image/jpeg", "image/gif", "image/webp")
	say.Images++
}

// result reads the content of a result, and returns its text.
func (r *messagesReader) result(at string, b object, say *Message) string {
	b = r.block(at, b, "type", "tool_use_id", "content", "is_error")
	if text, ok := b["content"].(string); ok {
		return text
	}
	var m Message
	for i, v := range r.list(at+".content", b["content"]) {
		at := fmt.Sprintf("%s.content.%d", at, i)
		part, _ := v.(object)
		switch part["type"] {
		case "text":
			m.add(r.filled(at+".text", r.block(at, part, "type", "text")["text"]))
		case "image", "document":
			r.medium(at, part, say)
		default:
			r.wrong(at+".type", "%v is not expected in a result", part["type"])
		}
	}
	return m.Text
}

func (a *answer) block(p Piece) object {
	switch {
	case p.Thinking != "":
		return object{"type": "thinking", "thinking": p.Thinking, "signature": sealed(p.Thinking)}
	case p.Call != nil:
		var input any
		if json.Unmarshal([]byte(p.Call.arguments()), &input) != nil {
			input = object{} // the behaviour of the real server is not known
		}
		return object{"type": "tool_use", "id": p.Call.id, "name": p.Call.Name, "input": input}
	}
	return object{"type": "text", "text": p.Text}
}

func (a *answer) stopReason() string {
	switch {
	case a.Stop == "length":
		return "max_tokens"
	case a.Stop == "refused":
		return "refusal"
	case a.Stop == "text":
		return "stop_sequence"
	case a.calls():
		return "tool_use"
	}
	return "end_turn"
}

func (messagesAPI) whole(a *answer) any {
	content := []object{}
	for _, p := range a.Answer {
		content = append(content, a.block(p))
	}
	return object{
		"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": a.model, "content": content, "stop_reason": a.stopReason(), "stop_sequence": nil,
		"usage": object{"input_tokens": a.Usage.Input - a.Usage.Cached, "cache_read_input_tokens": a.Usage.Cached, "cache_creation_input_tokens": 0, "output_tokens": a.Usage.Output},
	}
}

func (api messagesAPI) events(a *answer) []event {
	var all []event
	add := func(kind string, o object) {
		o["type"] = kind
		all = append(all, event{name: kind, data: o})
	}
	begun := api.whole(a).(object)
	usage := begun["usage"].(object)
	begun["content"], begun["stop_reason"] = []any{}, nil
	begun["usage"] = object{"input_tokens": usage["input_tokens"], "cache_read_input_tokens": usage["cache_read_input_tokens"], "cache_creation_input_tokens": 0, "output_tokens": min(1, a.Usage.Output)}
	add("message_start", object{"message": begun})
	add("ping", object{})
	for i, p := range a.Answer {
		delta := func(d object) { add("content_block_delta", object{"index": i, "delta": d}) }
		block := a.block(p)
		switch {
		case p.Thinking != "":
			add("content_block_start", object{"index": i, "content_block": object{"type": "thinking", "thinking": "", "signature": ""}})
			for _, piece := range pieces(p.Thinking) {
				delta(object{"type": "thinking_delta", "thinking": piece})
			}
			delta(object{"type": "signature_delta", "signature": block["signature"]})
		case p.Call != nil:
			add("content_block_start", object{"index": i, "content_block": object{"type": "tool_use", "id": p.Call.id, "name": p.Call.Name, "input": object{}}})
			delta(object{"type": "input_json_delta", "partial_json": ""})
			for _, piece := range pieces(p.Call.arguments()) {
				delta(object{"type": "input_json_delta", "partial_json": piece})
			}
		default:
			add("content_block_start", object{"index": i, "content_block": object{"type": "text", "text": ""}})
			for _, piece := range pieces(p.Text) {
				delta(object{"type": "text_delta", "text": piece})
			}
		}
		add("content_block_stop", object{"index": i})
	}
	add("message_delta", object{"delta": object{"stop_reason": a.stopReason(), "stop_sequence": nil}, "usage": object{"output_tokens": a.Usage.Output}})
	add("message_stop", object{})
	return all
}

func (messagesAPI) fail(kind, message string) (any, event) {
	body := object{"type": "error", "error": object{"type": kind, "message": message}}
	return body, event{name: "error", data: body}
}
