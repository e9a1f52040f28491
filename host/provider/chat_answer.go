package provider

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"maps"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
)

// chatChunk is an event of a stream, or a whole answer, as far as it is used here.
type chatChunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Index        int64     `json:"index"`
		FinishReason string    `json:"finish_reason"`
		Delta        chatDelta `json:"delta"`
		Message      chatDelta `json:"message"` // of a whole answer
		Usage        chatUsage `json:"usage"`   // Moonshot
	} `json:"choices"`
	Usage chatUsage `json:"usage"`
}

type chatUsage struct {
	Input        int64 `json:"prompt_tokens"`
	Output       int64 `json:"completion_tokens"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
		Stored int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Cached int64 `json:"cached_tokens"`           // Moonshot
	Hit    int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
}

type chatDelta struct {
	Content   json.RawMessage `json:"content"`
	Refusal   string          `json:"refusal"`
	ToolCalls []chatPiece     `json:"tool_calls"`

	more members
}

func (d *chatDelta) UnmarshalJSON(data []byte) error {
	type plain chatDelta
	d.more = unknown(data, "role", "content", "refusal", "tool_calls", "function_call", "annotations", "audio", "name",
		"token_id", "token_ids", "logprobs", "provider_specific_fields") // these are of the piece
	return decode(data, (*plain)(d))
}

// chatPiece is a piece of a call.
type chatPiece struct {
	Index    *int64 `json:"index"` // nil: the server does not count
	ID       string `json:"id"`
	Function struct {
		Name      string  `json:"name"`
		Arguments written `json:"arguments"`
	} `json:"function"`

	more members
}

func (p *chatPiece) UnmarshalJSON(data []byte) error {
	type plain chatPiece
	p.more = unknown(data, "index", "id", "type", "function")
	return decode(data, (*plain)(p))
}

// chatEvents returns a whole answer as the only event of a stream.
func chatEvents(answer []byte) [][]byte {
	var whole chatChunk
	if decode(answer, &whole) != nil || whole.Choices == nil {
		return nil
	}
	return [][]byte{answer}
}

// chatAnswer collects the chunks of an answer.
type chatAnswer struct {
	x       *exchange
	model   string
	text    strings.Builder
	thought strings.Builder // in parts of the content
	more    pieces
	calls   []*chatCall
	refused bool
	finish  string
	usage   model.Usage
}

type chatCall struct {
	index     int64  // as the server counts
	given     string // the server's id for it; empty: none
	id, name  string
	arguments strings.Builder
	more      members
}

// add takes a chunk. The last one is followed by the end of the stream.
func (a *chatAnswer) add(event []byte) (last bool) {
	var chunk chatChunk
	_ = decode(event, &chunk) // it is valid JSON: the stream has checked it
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	a.count(&chunk.Usage)
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		a.count(&choice.Usage)
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		for _, d := range []*chatDelta{&choice.Delta, &choice.Message} {
			a.x.tell(model.Delta{Thinking: a.more.add(d.more)})
			said, thought := contentText(d.Content)
			a.thought.WriteString(thought)
			a.x.tell(model.Delta{Thinking: thought})
			for _, text := range []string{said, d.Refusal} {
				a.text.WriteString(text)
				a.x.tell(model.Delta{Text: text})
			}
			a.refused = a.refused || d.Refusal != ""
			for i := range d.ToolCalls {
				a.call(&d.ToolCalls[i])
			}
		}
	}
	return false
}

func (a *chatAnswer) count(u *chatUsage) {
	if u.Input > 0 || u.Output > 0 {
		a.usage = model.Usage{Input: u.Input, Output: u.Output, Cached: cmp.Or(u.InputDetails.Cached, u.Cached, u.Hit), Stored: u.InputDetails.Stored}
	}
}

// failed returns the error of an answer whose reason to end is one.
func (a *chatAnswer) failed() error {
	switch a.finish {
	case "insufficient_system_resource": // DeepSeek
		return a.x.error(model.Overloaded, 0, "the answer broke off: "+a.finish, nil)
	case "error": // Mistral, OpenRouter
		return a.x.error(model.Unavailable, 0, "the answer ended with an error", nil)
	}
	return nil
}

// contentPart is a part of a content, which a few servers send in parts.
type contentPart struct {
	Type, Text string
	Thinking   json.RawMessage // Mistral: a content
}

// contentText returns the text of a content, and the thought in it.
func contentText(raw json.RawMessage) (text, thought string) {
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, ""
	}
	var parts []contentPart
	if json.Unmarshal(raw, &parts) == nil {
		for _, p := range parts {
			switch p.Type {
			case "text":
				text += p.Text
			case "thinking":
				said, _ := contentText(p.Thinking)
				thought += said
			}
		}
	}
	return text, thought
}

// call adds a piece of a call. Servers may leave out the index, or give every call the same; then
// a new call is one with a new id or, where there are none, with a name after arguments that are
// whole.
func (a *chatAnswer) call(piece *chatPiece) {
	name := piece.Function.Name
	indexed, index := piece.Index != nil, int64(0)
	if indexed {
		index = *piece.Index
	}
	at := len(a.calls) - 1
	for indexed && at >= 0 && a.calls[at].index != index {
		at--
	}
	fresh := at < 0
	if !fresh {
		last := a.calls[at]
		whole := json.Valid([]byte(last.arguments.String())) || last.arguments.Len() == 0 && !indexed
		fresh = piece.ID != "" && last.given != "" && piece.ID != last.given ||
			piece.ID == "" && name != "" && last.name != "" && whole
	}
	if fresh {
		at = len(a.calls)
		a.calls = append(a.calls, &chatCall{index: index, id: piece.ID, given: piece.ID})
		if piece.ID == "" {
			a.calls[at].id = "call_" + rand.Text()
		}
	}
	call := a.calls[at]
	if call.more == nil {
		call.more = piece.more
	} else {
		maps.Copy(call.more, piece.more)
	}
	delta := model.CallDelta{Index: at, Arguments: string(piece.Function.Arguments)}
	if call.name == "" && name != "" {
		call.name = name
		delta.ID, delta.Name = call.id, name
	}
	call.arguments.WriteString(delta.Arguments)
	if delta != (model.CallDelta{Index: at}) {
		a.x.tell(model.Delta{Call: &delta})
	}
}

// whole reports whether there is an answer and its last call is complete.
func (a *chatAnswer) whole() bool {
	if n := len(a.calls); n > 0 {
		return isObject(model.Arguments(a.calls[n-1].arguments.String()))
	}
	return a.text.Len() > 0
}

// response returns the answer so far. The last call of a broken answer is left out.
func (a *chatAnswer) response(broken bool) *model.Response {
	r := &model.Response{Message: model.Message{Role: model.Assistant}, Usage: a.usage, Model: a.model, Stop: model.StopEnd}
	add := func(p model.Part) { r.Message.Parts = append(r.Message.Parts, p) }
	calls := a.calls
	if broken && len(calls) > 0 {
		calls = calls[:len(calls)-1]
	}
	if a.thought.Len() > 0 {
		add(model.Part{Opaque: &model.Opaque{Provider: "think", Text: a.thought.String()}})
	}
	if kept := a.x.opaque(a.more.whole()); kept != nil {
		add(model.Part{Opaque: kept})
	}
	if a.text.Len() > 0 {
		add(model.Part{Text: a.text.String()})
	}
	for _, c := range calls {
		add(model.Part{Call: &model.Call{ID: c.id, Name: c.name, Arguments: json.RawMessage(c.arguments.String()), Opaque: a.x.opaque(c.more, "")}})
	}
	switch {
	case a.finish == "length", a.finish == "model_length": // the latter: Mistral
		r.Stop = model.StopLength
	case a.finish == "content_filter", a.refused:
		r.Stop = model.StopRefused
	case len(calls) > 0:
		r.Stop = model.StopCalls
	}
	settle(r)
	return r
}
