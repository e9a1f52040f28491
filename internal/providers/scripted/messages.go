package scripted

import (
	"encoding/json"
	"fmt"
	"slices"
)

const signature = "signature-of-a-thought=="

// checkMessages returns the error of a request that the Messages API refuses, or nil.
func (d *dialect) checkMessages(_ *Server, req *request) *refusal {
	if req.members["max_tokens"] == nil {
		return ref(d.refuse("max_tokens: Field required"))
	}
	if no := thinks(req.members); no != "" {
		return ref(d.refuse(no))
	}
	open := map[string]bool{}
	for i, m := range req.Messages {
		if i > 0 && m.Role == req.Messages[i-1].Role {
			return ref(d.refuse("messages: roles must alternate between \"user\" and \"assistant\""))
		}
		for n, p := range partsOf(m.Content) {
			switch p.Type {
			case "tool_use":
				open[p.ID] = true
				if first := partsOf(m.Content)[0]; n > 0 && first.Type == "thinking" && first.Signature != signature {
					return ref(d.refuse(fmt.Sprintf("messages.%d.content.0: Invalid signature in thinking block", i)))
				}
				if partsOf(m.Content)[0].Type != "thinking" {
					return ref(d.refuse(fmt.Sprintf("messages.%d.content.0.type: Expected thinking, but found tool_use", i)))
				}
			case "tool_result":
				if !open[p.ToolUseID] {
					return ref(d.refuse("messages: unexpected tool_use_id found in tool_result blocks"))
				}
				delete(open, p.ToolUseID)
			}
		}
		if m.Role == "user" && len(open) > 0 {
			return ref(d.refuse("messages: tool_use ids were found without tool_result blocks immediately after"))
		}
	}
	return nil
}

// thinks returns the fault of the members about thinking, of a model that thinks as it sees fit, or "".
func thinks(members map[string]json.RawMessage) string {
	var thinking, choice struct{ Type string }
	var output struct{ Effort string }
	for name, into := range map[string]any{"thinking": &thinking, "tool_choice": &choice, "output_config": &output} {
		if raw := members[name]; raw != nil && json.Unmarshal(raw, into) != nil {
			return name + ": Input should be an object"
		}
	}
	switch on := thinking.Type == "adaptive"; {
	case thinking.Type == "enabled":
		return `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`
	case thinking.Type != "" && !on && thinking.Type != "disabled":
		return "thinking.type: Input should be 'adaptive', 'disabled' or 'enabled'"
	case on && (members["temperature"] != nil || members["top_p"] != nil):
		return "`temperature` may only be set to 1 when thinking is enabled."
	case on && (choice.Type == "any" || choice.Type == "tool"):
		return "Thinking may not be enabled when tool_choice forces tool use."
	case output.Effort != "" && !slices.Contains([]string{"low", "medium", "high", "max"}, output.Effort):
		return "output_config.effort: Input should be 'low', 'medium', 'high' or 'max'"
	}
	return ""
}

// blocks returns an answer as blocks.
func blocks(a answer) (list []object) {
	if a.thought != "" {
		list = append(list, object{"type": "thinking", "thinking": a.thought, "signature": signature})
	}
	if a.text != "" {
		list = append(list, object{"type": "text", "text": a.text})
	}
	for _, c := range a.calls {
		list = append(list, object{"type": "tool_use", "id": c.id, "name": c.name, "input": json.RawMessage(c.arguments)})
	}
	return list
}

func stopOf(a answer) string {
	return map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}[a.finish]
}

func messageUsage() object {
	return object{"input_tokens": 12, "output_tokens": 5, "cache_read_input_tokens": 8, "cache_creation_input_tokens": 0}
}

func (d *dialect) wholeMessage(req *request, a answer) object {
	return object{"id": "msg_1", "type": "message", "role": "assistant", "model": req.Model, "content": blocks(a), "stop_reason": stopOf(a), "stop_sequence": nil, "usage": messageUsage()}
}

func (d *dialect) streamMessages(req *request, a answer) (events []string) {
	add := func(o object) {
		data, _ := json.Marshal(o)
		events = append(events, fmt.Sprintf("event: %s\ndata: %s\n\n", o["type"], data))
	}
	start := d.wholeMessage(req, a)
	start["content"], start["stop_reason"] = []object{}, nil
	add(object{"type": "message_start", "message": start})
	add(object{"type": "ping"})
	for i, b := range blocks(a) {
		piece := func(o object) { add(object{"type": "content_block_delta", "index": i, "delta": o}) }
		begin := object{"type": "content_block_start", "index": i}
		switch b["type"] {
		case "thinking":
			begin["content_block"] = object{"type": "thinking", "thinking": "", "signature": ""}
			add(begin)
			piece(object{"type": "thinking_delta", "thinking": b["thinking"]})
			piece(object{"type": "signature_delta", "signature": signature})
		case "text":
			begin["content_block"] = object{"type": "text", "text": ""}
			add(begin)
			text := b["text"].(string)
			piece(object{"type": "text_delta", "text": text[:len(text)/2]})
			piece(object{"type": "text_delta", "text": text[len(text)/2:]})
		case "tool_use":
			begin["content_block"] = object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}}
			add(begin)
			written := string(b["input"].(json.RawMessage))
			piece(object{"type": "input_json_delta", "partial_json": written[:4]})
			piece(object{"type": "input_json_delta", "partial_json": written[4:]})
		}
		add(object{"type": "content_block_stop", "index": i})
	}
	add(object{"type": "message_delta", "delta": object{"stop_reason": stopOf(a), "stop_sequence": nil}, "usage": object{"output_tokens": 5}})
	add(object{"type": "message_stop"})
	return events
}
