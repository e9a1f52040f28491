package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// chatAPI is Chat Completions.
type chatAPI struct{}

var _ api = chatAPI{}

func (chatAPI) read(body []byte, _ http.Header) (*Request, error) {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, fmt.Errorf("we could not parse the JSON body of your request: %w", err)
	}
	r := &reader{}
	o := r.object("body", v, "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "temperature", "top_p",
		"max_tokens", "max_completion_tokens", "stop", "response_format", "reasoning_effort", "seed", "n", "user", "store", "metadata")
	req := &Request{API: "chat", Model: r.text("model", o["model"])}
	req.Stream, _ = o["stream"].(bool)
	r.number("temperature", o["temperature"], 0, 2)
	r.thinking(req.Model, o, "temperature", "top_p", "stop")
	r.number("max_tokens", o["max_tokens"], 1, 1e9)
	r.number("max_completion_tokens", o["max_completion_tokens"], 1, 1e9)
	if o["stream_options"] != nil {
		r.object("stream_options", o["stream_options"], "include_usage")
		if !req.Stream {
			r.wrong("stream_options", "only allowed when 'stream' is enabled")
		}
	}
	if o["stop"] != nil {
		if _, one := o["stop"].(string); !one && len(r.list("stop", o["stop"])) > 4 {
			r.wrong("stop", "expected at most 4")
		}
	}
	if f := o["response_format"]; f != nil {
		format := r.object("response_format", f, "type", "json_schema")
		r.oneOf("response_format.type", r.text("response_format.type", format["type"]), "json_schema")
		schema := r.object("response_format.json_schema", format["json_schema"], "name", "schema", "strict", "description")
		r.name("response_format.json_schema.name", schema["name"])
	}
	if o["tools"] != nil {
		tools := r.list("tools", o["tools"])
		if len(tools) == 0 || len(tools) > 128 {
			r.wrong("tools", "expected 1 to 128, got %d", len(tools))
		}
		for i, t := range tools {
			at := fmt.Sprintf("tools[%d]", i)
			tool := r.object(at, t, "type", "function")
			r.oneOf(at+".type", r.text(at+".type", tool["type"]), "function")
			f := r.object(at+".function", tool["function"], "name", "description", "parameters", "strict")
			req.Tools = append(req.Tools, r.name(at+".function.name", f["name"]))
			r.parameters(at+".function.parameters", f["parameters"])
		}
	}
	req.Choice = r.openAIChoice(o["tool_choice"], req.Tools, true)
	r.chatMessages(req, r.list("messages", o["messages"]))
	req.readText()
	return req, r.err
}

// openAIChoice reads a choice of tools. If inner is set, the name is in an object of its own.
func (r *reader) openAIChoice(v any, tools []string, inner bool) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if len(tools) == 0 {
			r.wrong("tool_choice", "only allowed when 'tools' are specified")
		}
		if r.oneOf("tool_choice", v, "none", "auto", "required") == "auto" {
			return ""
		}
		return v
	}
	known := []string{"type", "name"}
	if inner {
		known[1] = "function"
	}
	o := r.object("tool_choice", v, known...)
	r.oneOf("tool_choice.type", r.text("tool_choice.type", o["type"]), "function")
	if inner {
		o = r.object("tool_choice.function", o["function"], "name")
	}
	return r.oneOf("tool_choice.name", r.text("tool_choice.name", o["name"]), tools...)
}

func (r *reader) chatMessages(req *Request, messages []any) {
	open := map[string]string{} // names of the calls without a result, by id
	if len(messages) == 0 {
		r.wrong("messages", "expected at least one")
	}
	for i, v := range messages {
		at := fmt.Sprintf("messages[%d]", i)
		m, _ := v.(object)
		role, _ := m["role"].(string)
		if role != "tool" && len(open) > 0 {
			r.wrong(at, "an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'")
		}
		switch role {
		case "system", "developer":
			r.object(at, m, "role", "content", "name")
			req.System += r.text(at+".content", m["content"])
		case "user":
			r.object(at, m, "role", "content", "name")
			r.chatContent(at+".content", m["content"], req.say(false))
		case "assistant":
			r.object(at, m, "role", "content", "name", "refusal", "tool_calls", "reasoning_content")
			say := req.say(true)
			if m["content"] != nil {
				say.add(r.text(at+".content", m["content"]))
			} else if m["tool_calls"] == nil {
				r.wrong(at+".content", "expected a string, got null")
			}
			if m["tool_calls"] == nil {
				continue
			}
			calls := r.list(at+".tool_calls", m["tool_calls"])
			if len(calls) == 0 {
				r.wrong(at+".tool_calls", "empty array")
			}
			for j, v := range calls {
				at := fmt.Sprintf("%s.tool_calls[%d]", at, j)
				c := r.object(at, v, "id", "type", "function")
				r.oneOf(at+".type", r.text(at+".type", c["type"]), "function")
				f := r.object(at+".function", c["function"], "name", "arguments")
				r.arguments(at+".function.arguments", f["arguments"])
				id, name := r.text(at+".id", c["id"]), r.name(at+".function.name", f["name"])
				if id == "" || len(id) > 40 || open[id] != "" {
					r.wrong(at+".id", "%q is empty, too long or taken", id)
				}
				open[id] = name
				say.Calls = append(say.Calls, name)
			}
		case "tool":
			r.object(at, m, "role", "content", "tool_call_id")
			id := r.text(at+".tool_call_id", m["tool_call_id"])
			name, ok := open[id]
			if !ok {
				r.wrong(at, "a message with role 'tool' must be a response to a preceding message with 'tool_calls'")
			}
			delete(open, id)
			say := req.say(false)
			say.Results = append(say.Results, Result{Name: name, Text: r.text(at+".content", m["content"])})
		default:
			r.wrong(at+".role", "invalid value %q", role)
		}
	}
	if len(open) > 0 {
		r.wrong("messages", "%d calls have no result", len(open))
	}
}

func (r *reader) chatContent(path string, v any, m *Message) {
	if text, ok := v.(string); ok {
		m.add(text)
		return
	}
	parts := r.list(path, v)
	if len(parts) == 0 {
		r.wrong(path, "empty array")
	}
	for i, v := range parts {
		at := fmt.Sprintf("%s[%d]", path, i)
		part := r.object(at, v, "type", "text", "image_url", "input_audio", "file")
		switch part["type"] {
		case "text":
			m.add(r.text(at+".text", part["text"]))
		case "image_url":
			r.oneOf(at, r.dataURL(at, r.object(at+".image_url", part["image_url"], "url", "detail")["url"]), "image/png", "image/jpeg", "image/gif", "image/webp")
			m.Images++
		case "input_audio":
			audio := r.object(at+".input_audio", part["input_audio"], "data", "format")
			r.oneOf(at+".format", r.text(at+".format", audio["format"]), "wav", "mp3")
			r.base64(at+".data", audio["data"])
		case "file":
			file := r.object(at+".file", part["file"], "file_data", "filename")
			r.oneOf(at, r.dataURL(at+".file_data", file["file_data"]), "application/pdf")
			r.text(at+".filename", file["filename"])
		default:
			r.wrong(at+".type", "invalid value %v", part["type"])
		}
	}
}

func (a *answer) chatFinish() string {
	switch {
	case a.Stop == "length":
		return "length"
	case a.Stop == "refused":
		return "content_filter"
	case a.calls():
		return "tool_calls"
	}
	return "stop"
}

func (a *answer) chatUsage() object {
	return object{
		"prompt_tokens": a.Usage.Input, "completion_tokens": a.Usage.Output, "total_tokens": a.Usage.Input + a.Usage.Output,
		"prompt_tokens_details": object{"cached_tokens": a.Usage.Cached, "audio_tokens": 0},
	}
}

func (chatAPI) whole(a *answer) any {
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	var text, thinking string
	var calls []object
	for _, p := range a.Answer {
		text += p.Text
		thinking += p.Thinking
		if p.Call != nil {
			calls = append(calls, object{"id": p.Call.id, "type": "function", "function": object{"name": p.Call.Name, "arguments": p.Call.arguments()}})
		}
	}
	if text != "" {
		message["content"] = text
	}
	if thinking != "" {
		message["reasoning_content"] = thinking
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return object{
		"id": "chatcmpl-" + a.id, "object": "chat.completion", "created": 1_700_000_000, "model": a.model,
		"choices": []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": a.chatFinish()}},
		"usage":   a.chatUsage(),
	}
}

func (chatAPI) events(a *answer) []event {
	chunk := func(choices []object) object {
		return object{"id": "chatcmpl-" + a.id, "object": "chat.completion.chunk", "created": 1_700_000_000, "model": a.model, "choices": choices}
	}
	var all []event
	delta := func(d object, finish any) {
		all = append(all, event{data: chunk([]object{{"index": 0, "delta": d, "logprobs": nil, "finish_reason": finish}})})
	}
	delta(object{"role": "assistant", "content": "", "refusal": nil}, nil)
	n := 0
	for _, p := range a.Answer {
		for _, piece := range pieces(p.Thinking) {
			delta(object{"reasoning_content": piece}, nil)
		}
		for _, piece := range pieces(p.Text) {
			delta(object{"content": piece}, nil)
		}
		if p.Call == nil {
			continue
		}
		delta(object{"tool_calls": []object{{"index": n, "id": p.Call.id, "type": "function", "function": object{"name": p.Call.Name, "arguments": ""}}}}, nil)
		for _, piece := range pieces(p.Call.arguments()) {
			delta(object{"tool_calls": []object{{"index": n, "function": object{"arguments": piece}}}}, nil)
		}
		n++
	}
	delta(object{}, a.chatFinish())
	if a.usageOf {
		last := chunk([]object{})
		last["usage"] = a.chatUsage()
		all = append(all, event{data: last})
	}
	return append(all, event{data: "[DONE]"})
}

func (chatAPI) fail(kind, message string) (any, event) {
	body := object{"error": object{"message": message, "type": kind, "param": nil, "code": openAICode(kind)}}
	return body, event{data: body}
}

// openAICode returns OpenAI's code for a kind of error.
func openAICode(kind string) any {
	switch kind {
	case "authentication_error":
		return "invalid_api_key"
	case "not_found_error":
		return "model_not_found"
	case "rate_limit_error":
		return "rate_limit_exceeded"
	case "invalid_request_error":
		return nil
	}
	return kind
}
