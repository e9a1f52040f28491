package scripted

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

type object = map[string]any

// check returns the error of a request that the provider refuses, or nil.
func (d *dialect) check(s *Server, req *request) *refusal {
	no := func(format string, args ...any) *refusal { return ref(d.refuse(fmt.Sprintf(format, args...))) }
	if d.onlyMembers != "" {
		for name := range req.members {
			if !slices.Contains(strings.Fields(d.onlyMembers), name) {
				return &refusal{422, fmt.Sprintf(`{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body",%q],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","param":null,"code":null}`, name)}
			}
		}
	}
	if d.noMaxTokens && req.members["max_tokens"] != nil {
		return ref(openAIError(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "invalid_request_error", `"unsupported_parameter"`))
	}
	if effort := strings.Trim(string(req.members["reasoning_effort"]), `"`); effort != "" && d.efforts != "" && !slices.Contains(strings.Fields(d.efforts), effort) {
		list := strings.Fields(d.efforts)
		switch d.name {
		case "mistral":
			return &refusal{422, fmt.Sprintf(`{"object":"error","message":{"detail":[{"type":"enum","loc":["body","reasoning_effort"],"msg":"Input should be '%s'","input":%q}]},"type":"invalid_request_error","param":null,"code":null}`, strings.Join(list, "' or '"), effort)}
		case "xai":
			return no("Invalid reasoning effort: %s. reasoning_effort must be one of %s.", effort, strings.Join(list, ", "))
		case "groq":
			return no("`reasoning_effort` must be one of `%s`", strings.Join(list, "`, `"))
		}
		return ref(openAIError(400, fmt.Sprintf("Unsupported value: 'reasoning_effort' does not support '%s' with this model. Supported values are: '%s'.", effort, strings.Join(list, "', '")), "invalid_request_error", `"unsupported_value"`))
	}
	if d.answers == "messages" {
		return d.checkMessages(s, req)
	}
	open := map[string]bool{} // calls without a result
	for i, m := range req.Messages {
		if m.Role != "tool" && len(open) > 0 {
			return no("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
		}
		switch m.Role {
		case "assistant":
			if d.thoughtBack && len(m.Calls) > 0 && (m.Thought == nil || *m.Thought == "") {
				return no("thinking is enabled but reasoning_content is missing in assistant tool call message at index %d", i)
			}
			for n, c := range m.Calls {
				open[c.ID] = true
				if d.nineLetters && (len(c.ID) != 9 || strings.Trim(c.ID, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "") {
					return no("Tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9.", c.ID)
				}
				if d.signed && n == 0 && !s.sent(c.Extra.Google.Signature) {
					return no("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.")
				}
			}
		case "tool":
			if !open[m.ToolCallID] {
				return no("Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
			}
			delete(open, m.ToolCallID)
		case "user":
			if d.strictOrder && i > 0 && req.Messages[i-1].Role == "tool" {
				return &refusal{400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}`}
			}
		}
	}
	return nil
}

// sent reports whether a signature is one that the server has sent.
func (s *Server) sent(signature string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signed[signature]
}

// sign returns a new signature.
func (s *Server) sign() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	signature := fmt.Sprintf("signature+%d/==", len(s.signed))
	s.signed[signature] = true
	return signature
}

// results returns the texts of the results at the end of a request; nil: there are none.
func (d *dialect) results(req *request) (texts []string) {
	last := req.Messages[len(req.Messages)-1]
	for _, p := range partsOf(last.Content) {
		if p.Type == "tool_result" {
			texts = append(texts, textOf(p.Content))
		}
	}
	for i := len(req.Messages) - 1; i >= 0 && req.Messages[i].Role == "tool"; i-- {
		texts = slices.Insert(texts, 0, textOf(req.Messages[i].Content))
	}
	return texts
}

// toolCalls returns the calls of a whole message.
func (d *dialect) toolCalls(s *Server, calls []call) (list []object) {
	for i, c := range calls {
		o := object{"id": c.id, "type": "function", "function": object{"name": c.name, "arguments": c.arguments}}
		switch d.index {
		case "":
			o["index"] = i
		case "zero":
			o["index"] = 0
		}
		if d.signed && i == 0 {
			o["extra_content"] = object{"google": object{"thought_signature": s.sign()}}
		}
		list = append(list, o)
	}
	return list
}

func (d *dialect) count() object {
	u := object{"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
	if d.cached != "" {
		u[d.cached] = 8
	} else {
		u["prompt_tokens_details"] = object{"cached_tokens": 8}
	}
	return u
}

// pieces returns the pieces of a message.
func (d *dialect) pieces(s *Server, a answer) (deltas []object) {
	add := func(o object) { deltas = append(deltas, o) }
	add(object{"role": "assistant", "content": ""})
	if a.thought != "" {
		half := len(a.thought) / 2
		for i, text := range []string{a.thought[:half], a.thought[half:]} {
			switch d.thoughtIn {
			case "tags":
				add(object{"content": []string{"<reasoning>" + text, text + "</reasoning>"}[i]})
			case "parts":
				add(object{"content": []object{{"type": "thinking", "thinking": []object{{"type": "text", "text": text}}}}})
			case "reasoning_details":
				add(object{"content": "", "reasoning": text, "reasoning_details": []object{{"type": "reasoning.text", "text": text, "format": "f", "index": 0}}})
			default:
				add(object{"content": nil, d.thoughtIn: text})
			}
		}
	}
	if half := len(a.text) / 2; a.text != "" {
		add(object{"content": a.text[:half]})
		add(object{"content": a.text[half:]})
	}
	for i, c := range d.toolCalls(s, a.calls) {
		if d.wholeCalls {
			add(object{"tool_calls": []object{c}})
			continue
		}
		f := c["function"].(object)
		written := f["arguments"].(string)
		f["arguments"] = ""
		add(object{"tool_calls": []object{c}})
		for _, piece := range []string{written[:4], written[4:]} {
			add(object{"tool_calls": []object{{"index": i, "function": object{"arguments": piece}}}})
		}
	}
	return deltas
}

func (d *dialect) reason(a answer) string {
	if a.finish == "tool_calls" && d.callFinish != "" {
		return d.callFinish
	}
	return a.finish
}

// stream returns an answer as the pieces of an event stream.
func (d *dialect) stream(s *Server, req *request, a answer) (events []string) {
	if d.answers == "messages" {
		return d.streamMessages(req, a)
	}
	head := func(choices ...object) object {
		return object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": req.Model, "choices": choices}
	}
	add := func(o object) {
		data, _ := json.Marshal(o)
		events = append(events, "data: "+string(data)+"\n\n")
	}
	if d.comments != "" {
		events = append(events, d.comments)
	}
	for _, delta := range d.pieces(s, a) {
		add(head(object{"index": 0, "delta": delta, "finish_reason": nil}))
	}
	choice := object{"index": 0, "delta": object{}, "finish_reason": d.reason(a)}
	end := head(choice)
	switch d.usage {
	case "finish":
		end["usage"] = d.count()
	case "choice":
		choice["usage"] = d.count()
	case "x_groq":
		end["x_groq"] = object{"id": "req_1", "usage": d.count()}
	}
	add(end)
	if (d.usage == "" || d.usage == "x_groq") && req.StreamOptions != nil {
		last := head()
		last["choices"], last["usage"] = []object{}, d.count()
		add(last)
	}
	return append(events, "data: [DONE]\n\n")
}

// whole returns an answer that is not streamed.
func (d *dialect) whole(s *Server, req *request, a answer) object {
	if d.answers == "messages" {
		return d.wholeMessage(req, a)
	}
	message := object{"role": "assistant", "content": a.text}
	if len(a.calls) > 0 {
		message["tool_calls"] = d.toolCalls(s, a.calls)
	}
	if a.thought != "" {
		switch d.thoughtIn {
		case "tags":
			message["content"] = "<reasoning>" + a.thought + "</reasoning>" + a.text
		case "parts":
			message["content"] = []object{{"type": "thinking", "thinking": []object{{"type": "text", "text": a.thought}}}, {"type": "text", "text": a.text}}
		case "reasoning_details":
			message["reasoning"] = a.thought
			message["reasoning_details"] = []object{{"type": "reasoning.text", "text": a.thought, "format": "f", "index": 0}}
		default:
			message[d.thoughtIn] = a.thought
		}
	}
	return object{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": req.Model, "usage": d.count(),
		"choices": []object{{"index": 0, "message": message, "finish_reason": d.reason(a), "logprobs": nil}}}
}
