package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// responsesAPI is Responses.
type responsesAPI struct{}

var _ api = responsesAPI{}

func (responsesAPI) read(body []byte, _ http.Header) (*Request, error) {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, fmt.Errorf("we could not parse the JSON body of your request: %w", err)
	}
	r := &reader{}
	o := r.object("body", v, "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream", "store", "include", "temperature", "top_p",
		"max_output_tokens", "text", "reasoning", "metadata", "user", "truncation")
	req := &Request{API: "responses", Model: r.text("model", o["model"])}
	req.Stream, _ = o["stream"].(bool)
	r.number("temperature", o["temperature"], 0, 2)
	r.thinking(req.Model, o, "temperature", "top_p")
	r.number("max_output_tokens", o["max_output_tokens"], 16, 1e9)
	if o["instructions"] != nil {
		req.System = r.text("instructions", o["instructions"])
	}
	if o["text"] != nil {
		format := r.object("text.format", r.object("text", o["text"], "format", "verbosity")["format"], "type", "name", "schema", "strict", "description")
		r.oneOf("text.format.type", r.text("text.format.type", format["type"]), "json_schema")
		r.name("text.format.name", format["name"])
	}
	if o["tools"] != nil {
		for i, t := range r.list("tools", o["tools"]) {
			at := fmt.Sprintf("tools[%d]", i)
			tool := r.object(at, t, "type", "name", "description", "parameters", "strict")
			r.oneOf(at+".type", r.text(at+".type", tool["type"]), "function")
			req.Tools = append(req.Tools, r.name(at+".name", tool["name"]))
			r.parameters(at+".parameters", tool["parameters"])
			if strict, _ := tool["strict"].(bool); strict {
				r.wrong(at+".strict", "not known to this server")
			}
		}
	}
	req.Choice = r.openAIChoice(o["tool_choice"], req.Tools, false)
	if text, ok := o["input"].(string); ok {
		req.say(false).add(text)
	} else {
		r.items(req, r.list("input", o["input"]))
	}
	return req, r.err
}

func (r *reader) items(req *Request, items []any) {
	open, names := map[string]bool{}, map[string]string{}
	for i, v := range items {
		at := fmt.Sprintf("input[%d]", i)
		item, _ := v.(object)
		kind, _ := item["type"].(string)
		switch {
		case kind == "function_call":
			r.object(at, item, "type", "id", "call_id", "name", "arguments", "status")
			id := r.text(at+".call_id", item["call_id"])
			if names[id] != "" || !anyID.MatchString(id) {
				r.wrong(at+".call_id", "%q is malformed or taken", id)
			}
			open[id], names[id] = true, r.name(at+".name", item["name"])
			r.arguments(at+".arguments", item["arguments"])
			say := req.say(true)
			say.Calls = append(say.Calls, names[id])
		case kind == "function_call_output":
			r.object(at, item, "type", "id", "call_id", "output", "status")
			id := r.text(at+".call_id", item["call_id"])
			if !open[id] {
				r.wrong(at, "no tool call found for function call output with call_id %s", id)
			}
			delete(open, id)
			say := req.say(false)
			got := Message{}
			r.input(at+".output", item["output"], &got)
			say.Images += got.Images
			say.Results = append(say.Results, Result{Name: names[id], Text: got.Text})
		case kind == "reasoning":
			r.object(at, item, "type", "id", "summary", "encrypted_content", "content")
			text := ""
			for _, s := range r.list(at+".summary", item["summary"]) {
				text += r.text(at+".summary", r.object(at+".summary", s, "type", "text")["text"])
			}
			if item["encrypted_content"] != sealed(text) {
				r.wrong(at+".encrypted_content", "could not be verified")
			}
			if next, _ := following(items, i).(object); next["type"] != "function_call" && next["type"] != "reasoning" && next["role"] != "assistant" {
				r.wrong(at, "item of type 'reasoning' was provided without its required following item")
			}
		case kind == "message" || kind == "" && item["role"] != nil:
			r.object(at, item, "type", "role", "content", "id", "status")
			role := r.oneOf(at+".role", r.text(at+".role", item["role"]), "user", "assistant", "system", "developer")
			if role == "assistant" {
				say := req.say(true)
				if text, ok := item["content"].(string); ok {
					say.add(text)
					continue
				}
				for _, p := range r.list(at+".content", item["content"]) {
					part := r.object(at+".content", p, "type", "text", "annotations")
					r.oneOf(at+".content.type", r.text(at, part["type"]), "output_text")
					say.add(r.text(at, part["text"]))
				}
				continue
			}
			say := req.say(false)
			r.input(at+".content", item["content"], say)
			if role != "user" {
				req.System += say.Text
				say.Text = ""
			}
		default:
			r.wrong(at+".type", "invalid value %q", kind)
		}
	}
	for id := range open {
		r.wrong("input", "no tool output found for function call %s", id)
	}
}

func following(list []any, i int) any {
	if i+1 < len(list) {
		return list[i+1]
	}
	return nil
}

func (r *reader) input(path string, v any, m *Message) {
	if text, ok := v.(string); ok {
		m.add(text)
		return
	}
	for i, v := range r.list(path, v) {
		at := fmt.Sprintf("%s[%d]", path, i)
		part := r.object(at, v, "type", "text", "image_url", "detail", "file_data", "filename")
		switch part["type"] {
		case "input_text":
			m.add(r.text(at+".text", part["text"]))
		case "input_image":
			r.oneOf(at, r.dataURL(at+".image_url", part["image_url"]), "image/png", "image/jpeg", "image/gif", "image/webp")
			m.Images++
		case "input_file":
			r.oneOf(at, r.dataURL(at+".file_data", part["file_data"]), "application/pdf")
			r.text(at+".filename", part["filename"])
		default:
			r.wrong(at+".type", "invalid value %v", part["type"])
		}
	}
}

// items returns an answer as items, one for each piece.
func (a *answer) items() []object {
	var all []object
	for i, p := range a.Answer {
		id := fmt.Sprintf("_%s_%d", a.id, i)
		switch {
		case p.Thinking != "":
			all = append(all, object{"id": "rs" + id, "type": "reasoning", "summary": []object{{"type": "summary_text", "text": p.Thinking}}, "encrypted_content": sealed(p.Thinking), "status": nil})
		case p.Call != nil:
			all = append(all, object{"id": "fc" + id, "type": "function_call", "status": "completed", "call_id": p.Call.id, "name": p.Call.Name, "arguments": p.Call.arguments()})
		default:
			all = append(all, object{"id": "msg" + id, "type": "message", "status": "completed", "role": "assistant", "content": []object{{"type": "output_text", "text": p.Text, "annotations": []any{}}}})
		}
	}
	return all
}

func (responsesAPI) whole(a *answer) any {
	status, details := "completed", any(nil)
	switch a.Stop {
	case "length":
		status, details = "incomplete", object{"reason": "max_output_tokens"}
	case "refused":
		status, details = "incomplete", object{"reason": "content_filter"}
	}
	return object{
		"id": "resp_" + a.id, "object": "response", "created_at": 1_700_000_000, "status": status, "incomplete_details": details, "error": nil,
		"model": a.model, "output": a.items(), "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{}, "metadata": object{},
		"usage": object{
			"input_tokens": a.Usage.Input, "input_tokens_details": object{"cached_tokens": a.Usage.Cached},
			"output_tokens": a.Usage.Output, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": a.Usage.Input + a.Usage.Output,
		},
	}
}

func (api responsesAPI) events(a *answer) []event {
	var all []event
	add := func(kind string, o object) {
		o["type"], o["sequence_number"] = kind, len(all)
		all = append(all, event{name: kind, data: o})
	}
	begun := api.whole(a).(object)
	begun["status"], begun["output"], begun["usage"], begun["incomplete_details"] = "in_progress", []any{}, nil, nil
	add("response.created", object{"response": begun})
	add("response.in_progress", object{"response": begun})
	for i, item := range a.items() {
		with := func(o object) object {
			o["output_index"], o["item_id"] = i, item["id"]
			return o
		}
		empty := object{}
		for k, v := range item {
			empty[k] = v
		}
		switch item["type"] {
		case "reasoning":
			empty["summary"] = []any{}
			add("response.output_item.added", object{"output_index": i, "item": empty})
			part := item["summary"].([]object)[0]
			add("response.reasoning_summary_part.added", with(object{"summary_index": 0, "part": object{"type": "summary_text", "text": ""}}))
			for _, piece := range pieces(part["text"].(string)) {
				add("response.reasoning_summary_text.delta", with(object{"summary_index": 0, "delta": piece}))
			}
			add("response.reasoning_summary_text.done", with(object{"summary_index": 0, "text": part["text"]}))
			add("response.reasoning_summary_part.done", with(object{"summary_index": 0, "part": part}))
		case "function_call":
			empty["arguments"], empty["status"] = "", "in_progress"
			add("response.output_item.added", object{"output_index": i, "item": empty})
			for _, piece := range pieces(item["arguments"].(string)) {
				add("response.function_call_arguments.delta", with(object{"delta": piece}))
			}
			add("response.function_call_arguments.done", with(object{"arguments": item["arguments"], "name": item["name"]}))
		default:
			empty["content"], empty["status"] = []any{}, "in_progress"
			add("response.output_item.added", object{"output_index": i, "item": empty})
			part := item["content"].([]object)[0]
			add("response.content_part.added", with(object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
			for _, piece := range pieces(part["text"].(string)) {
				add("response.output_text.delta", with(object{"content_index": 0, "delta": piece, "logprobs": []any{}}))
			}
			add("response.output_text.done", with(object{"content_index": 0, "text": part["text"], "logprobs": []any{}}))
			add("response.content_part.done", with(object{"content_index": 0, "part": part}))
		}
		add("response.output_item.done", object{"output_index": i, "item": item})
	}
	last := api.whole(a).(object)
	add("response."+last["status"].(string), object{"response": last})
	return all
}

func (responsesAPI) fail(kind, message string) (any, event) {
	return object{"error": object{"message": message, "type": kind, "param": nil, "code": openAICode(kind)}},
		event{name: "error", data: object{"type": "error", "code": kind, "message": message, "param": nil, "sequence_number": 99}}
}
