package provider

import (
	"encoding/json"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
)

// messagesEvent is an event of a stream, as far as it is used here.
type messagesEvent struct {
	Type    string `json:"type"`
	Index   int64  `json:"index"`
	Message struct {
		Model string        `json:"model"`
		Usage messagesUsage `json:"usage"`
	} `json:"message"`
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage messagesUsage `json:"usage"`
}

type messagesUsage struct {
	Input  int64 `json:"input_tokens"`
	Cached int64 `json:"cache_read_input_tokens"`
	Stored int64 `json:"cache_creation_input_tokens"`
	Output int64 `json:"output_tokens"`
}

// messageEvents makes the events of a stream from a whole answer.
func messageEvents(answer []byte) [][]byte {
	var whole struct {
		Content    []json.RawMessage `json:"content"`
		StopReason json.RawMessage   `json:"stop_reason"`
	}
	if decode(answer, &whole) != nil || whole.Content == nil {
		return nil
	}
	type object map[string]any
	var out [][]byte
	add := func(event object) {
		data, _ := encode(event) // it consists of JSON
		out = append(out, data)
	}
	add(object{"type": "message_start", "message": json.RawMessage(answer)})
	for i, b := range whole.Content {
		add(object{"type": "content_block_start", "index": i, "content_block": b})
		add(object{"type": "content_block_stop", "index": i})
	}
	add(object{"type": "message_delta", "delta": object{"stop_reason": whole.StopReason}})
	add(object{"type": "message_stop"})
	return out
}

// messagesAnswer collects the events of an answer.
type messagesAnswer struct {
	x      *exchange
	model  string
	blocks []*messagesBlock // in the order of the answer
	calls  int
	stop   string
	usage  model.Usage
	fresh  int64 // tokens of the request outside of the cache
	ended  bool
}

type messagesBlock struct {
	index           int64
	kind            string
	text, arguments strings.Builder // the text or thought, or the arguments
	id, name        string
	signature       string
	start           json.RawMessage
	call            int // number of the call
	closed          bool
}

// add takes an event. It returns true for the last one.
func (a *messagesAnswer) add(event []byte) (last bool) {
	var e messagesEvent
	_ = decode(event, &e) // it is valid JSON: the stream has checked it
	switch e.Type {
	case "message_start":
		if e.Message.Model != "" {
			a.model = e.Message.Model
		}
		a.count(e.Message.Usage)
	case "content_block_start":
		a.start(&e)
	case "content_block_delta":
		a.delta(&e)
	case "content_block_stop":
		if b := a.block(e.Index); b != nil {
			b.closed = true
		}
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.stop = e.Delta.StopReason
		}
		a.count(e.Usage)
	case "message_stop":
		a.ended = true
	}
	return a.ended
}

// count records the usage in an event; the numbers grow, and zero is ignored.
func (a *messagesAnswer) count(u messagesUsage) {
	a.fresh = max(a.fresh, u.Input)
	a.usage.Cached = max(a.usage.Cached, u.Cached)
	a.usage.Stored = max(a.usage.Stored, u.Stored)
	a.usage.Output = max(a.usage.Output, u.Output)
	a.usage.Input = a.fresh + a.usage.Cached + a.usage.Stored
}

func (a *messagesAnswer) block(index int64) *messagesBlock {
	for _, b := range a.blocks {
		if b.index == index {
			return b
		}
	}
	return nil
}

func (a *messagesAnswer) start(e *messagesEvent) {
	var c struct {
		Type, ID, Name, Text, Thinking, Signature string
		Input                                     json.RawMessage
	}
	_ = decode(e.ContentBlock, &c)
	b := &messagesBlock{index: e.Index, kind: c.Type, id: c.ID, name: c.Name, signature: c.Signature, start: e.ContentBlock}
	a.blocks = append(a.blocks, b)
	switch c.Type {
	case "text":
		b.text.WriteString(c.Text)
		a.x.tell(model.Delta{Text: c.Text})
	case "thinking":
		b.text.WriteString(c.Thinking)
		a.x.tell(model.Delta{Thinking: c.Thinking})
	case "tool_use":
		b.call = a.calls
		a.calls++
		first := model.CallDelta{Index: b.call, ID: b.id, Name: b.name}
		if raw := string(c.Input); raw != "" && raw != "{}" && raw != "null" {
			first.Arguments = raw // whole at once, as some servers do
			b.arguments.WriteString(raw)
		}
		a.x.tell(model.Delta{Call: &first})
	}
}

func (a *messagesAnswer) delta(e *messagesEvent) {
	b := a.block(e.Index)
	if b == nil {
		return
	}
	switch d := e.Delta; d.Type {
	case "text_delta":
		b.text.WriteString(d.Text)
		a.x.tell(model.Delta{Text: d.Text})
	case "thinking_delta":
		b.text.WriteString(d.Thinking)
		a.x.tell(model.Delta{Thinking: d.Thinking})
	case "signature_delta":
		b.signature += d.Signature
	case "input_json_delta":
		b.arguments.WriteString(d.PartialJSON)
		if d.PartialJSON != "" && b.kind == "tool_use" {
			a.x.tell(model.Delta{Call: &model.CallDelta{Index: b.call, Arguments: d.PartialJSON}})
		}
	}
}

// response returns the answer so far, without incomplete blocks other than text.
func (a *messagesAnswer) response() *model.Response {
	r := &model.Response{Message: model.Message{Role: model.Assistant}, Usage: a.usage, Model: a.model, Stop: model.StopEnd}
	add := func(p model.Part) { r.Message.Parts = append(r.Message.Parts, p) }
	for _, b := range a.blocks {
		text := b.text.String()
		switch {
		case b.kind == "text" && text != "":
			add(model.Part{Text: text})
		case !b.closed:
		case b.kind == "tool_use":
			more := unknown(b.start, "type", "id", "name", "input", "cache_control")
			add(model.Part{Call: &model.Call{ID: b.id, Name: b.name, Arguments: json.RawMessage(b.arguments.String()), Opaque: a.x.opaque(more, "")}})
		case b.kind != "" && b.kind != "text":
			add(model.Part{Opaque: &model.Opaque{Provider: a.x.provider, Text: text, Data: b.raw()}})
		}
	}
	switch a.stop {
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		r.Stop = model.StopLength
	case "stop_sequence":
		r.Stop = model.StopText
	case "refusal":
		r.Stop = model.StopRefused
	default:
		if len(r.Message.Calls()) > 0 {
			r.Stop = model.StopCalls
		}
	}
	settle(r)
	return r
}

// raw returns a block to send back, such as a thought or a call of a tool of the server: with all members
// of its start.
func (b *messagesBlock) raw() json.RawMessage {
	all := members{}
	_ = json.Unmarshal(b.start, &all) // it is an object: it has a type
	if b.kind == "thinking" {
		all["thinking"], _ = encode(b.text.String())
		all["signature"], _ = encode(b.signature)
	}
	if b.arguments.Len() > 0 {
		all["input"] = model.Arguments(b.arguments.String())
	}
	data, _ := encode(all)
	return data
}
