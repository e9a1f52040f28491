package provider

import (
	"crypto/rand"
	"encoding/json"
	"slices"
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
	} `json:"choices"`
	Usage struct {
		Input        int64 `json:"prompt_tokens"`
		Output       int64 `json:"completion_tokens"`
		InputDetails struct {
			Cached int64 `json:"cached_tokens"`
			Stored int64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

type chatDelta struct {
	Content   json.RawMessage `json:"content"`
	Refusal   string          `json:"refusal"`
	ToolCalls []chatPiece     `json:"tool_calls"`
	chatThoughts
}

// chatPiece is a piece of a call.
type chatPiece struct {
	Index    *int64 `json:"index"` // nil: the server does not count
	ID       string `json:"id"`
	Function struct {
		Name      string  `json:"name"`
		Arguments written `json:"arguments"`
	} `json:"function"`
	chatSignature
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
	thought chatThought
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
	chatSignature
}

// add takes a chunk. The last one is followed by the end of the stream.
func (a *chatAnswer) add(event []byte) (last bool) {
	var chunk chatChunk
	_ = decode(event, &chunk) // it is valid JSON: the stream has checked it
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if u := &chunk.Usage; u.Input > 0 || u.Output > 0 {
		a.usage = model.Usage{Input: u.Input, Output: u.Output, Cached: u.InputDetails.Cached, Stored: u.InputDetails.Stored}
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		for _, d := range []*chatDelta{&choice.Delta, &choice.Message} {
			a.x.tell(model.Delta{Thinking: a.thought.add(&d.chatThoughts)})
			for _, text := range []string{contentText(d.Content), d.Refusal} {
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

// contentText returns the text of a content, which a few servers send in parts.
func contentText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Type, Text string
	}
	if json.Unmarshal(raw, &parts) == nil {
		for _, p := range parts {
			if p.Type == "text" {
				text += p.Text
			}
		}
	}
	return text
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
	if len(piece.ExtraContent) > 0 {
		call.chatSignature = piece.chatSignature
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

// response returns the answer so far. The last call of a broken answer is left out.
func (a *chatAnswer) response(broken bool) *model.Response {
	r := &model.Response{Message: model.Message{Role: model.Assistant}, Usage: a.usage, Model: a.model, Stop: model.StopEnd}
	add := func(p model.Part) { r.Message.Parts = append(r.Message.Parts, p) }
	calls := a.calls
	if broken && len(calls) > 0 {
		calls = calls[:len(calls)-1]
	}
	if kept, text := a.kept(calls); kept != nil {
		add(model.Part{Opaque: &model.Opaque{Provider: a.x.provider, Text: text, Data: kept}})
	}
	if a.text.Len() > 0 {
		add(model.Part{Text: a.text.String()})
	}
	for _, c := range calls {
		add(model.Part{Call: &model.Call{ID: c.id, Name: c.name, Arguments: json.RawMessage(c.arguments.String())}})
	}
	switch {
	case a.finish == "length":
		r.Stop = model.StopLength
	case a.finish == "content_filter", a.refused:
		r.Stop = model.StopRefused
	case len(calls) > 0:
		r.Stop = model.StopCalls
	}
	settle(r)
	return r
}

// kept returns the data to send back unchanged, or nil if there is none, and the thoughts as text.
func (a *chatAnswer) kept(calls []*chatCall) (data json.RawMessage, text string) {
	var kept chatKept
	kept.chatThoughts, text = a.thought.whole()
	for _, c := range calls {
		if len(c.ExtraContent) > 0 {
			kept.Calls = append(kept.Calls, chatKeptCall{c.id, c.chatSignature})
		}
	}
	if data, _ = encode(kept); string(data) == "{}" {
		return nil, ""
	}
	return data, text
}

// chatThought collects the thoughts of an answer.
type chatThought struct {
	content, reasoning strings.Builder
	details            []*chatDetail
}

// chatDetail is an item of reasoning_details. Its pieces have the same type and index.
type chatDetail struct {
	members map[string]json.RawMessage
	text    map[string]*strings.Builder // of the members that come in pieces
}

// add adds a piece and returns the text to show. Some servers send the same thought in two
// members; the first one is kept.
func (t *chatThought) add(d *chatThoughts) (text string) {
	for _, member := range []struct {
		raw  json.RawMessage
		into *strings.Builder
	}{{d.ReasoningContent, &t.content}, {d.Reasoning, &t.reasoning}} {
		if text == "" && json.Unmarshal(member.raw, &text) == nil {
			member.into.WriteString(text)
		}
	}
	var details []map[string]json.RawMessage
	_ = decode(d.ReasoningDetails, &details)
	for _, piece := range details {
		t.detail(piece)
	}
	return text
}

func (t *chatThought) detail(piece map[string]json.RawMessage) {
	same := func(d *chatDetail, member string) bool { return string(d.members[member]) == string(piece[member]) }
	var d *chatDetail
	if n := len(t.details); n > 0 && piece["index"] != nil && same(t.details[n-1], "index") && same(t.details[n-1], "type") {
		d = t.details[n-1]
	} else {
		d = &chatDetail{members: map[string]json.RawMessage{}, text: map[string]*strings.Builder{}}
		t.details = append(t.details, d)
	}
	for name, v := range piece {
		var text string
		switch {
		case string(v) == "null" && d.members[name] != nil:
		case slices.Contains([]string{"text", "summary", "data"}, name) && json.Unmarshal(v, &text) == nil && string(v) != "null":
			if d.text[name] == nil {
				d.text[name] = &strings.Builder{}
			}
			d.text[name].WriteString(text)
		default:
			d.members[name] = v
		}
	}
}

// whole returns the members of the message, and the thoughts as text.
func (t *chatThought) whole() (members chatThoughts, text string) {
	if t.content.Len() > 0 {
		text = t.content.String()
		members.ReasoningContent, _ = encode(text)
	}
	if t.reasoning.Len() > 0 {
		text += t.reasoning.String()
		members.Reasoning, _ = encode(t.reasoning.String())
	}
	var details []map[string]json.RawMessage
	for _, d := range t.details {
		for name, b := range d.text {
			d.members[name], _ = encode(b.String())
		}
		details = append(details, d.members)
	}
	if details != nil {
		members.ReasoningDetails, _ = encode(details)
	}
	return members, text
}
