package provider

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
)

// responseEvent is an event of a stream, as far as it is used here.
type responseEvent struct {
	Type         string          `json:"type"`
	OutputIndex  int64           `json:"output_index"`
	SummaryIndex int64           `json:"summary_index"`
	Delta        string          `json:"delta"`
	Item         json.RawMessage `json:"item"`
	Response     struct {
		Model             string            `json:"model"`
		Output            []json.RawMessage `json:"output"`
		Error             json.RawMessage   `json:"error"`
		IncompleteDetails struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage struct {
			Input        int64 `json:"input_tokens"`
			Output       int64 `json:"output_tokens"`
			InputDetails struct {
				Cached int64 `json:"cached_tokens"`
				Stored int64 `json:"cache_write_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	} `json:"response"`
}

// responseEvents makes the last event of a stream from a whole answer, which has all of it.
func responseEvents(answer []byte) [][]byte {
	var whole struct {
		Object string `json:"object"`
		Status string `json:"status"`
	}
	if decode(answer, &whole) != nil || whole.Object != "response" && whole.Status == "" {
		return nil
	}
	event, _ := json.Marshal(map[string]any{"type": "response." + cmp.Or(whole.Status, "completed"), "response": json.RawMessage(answer)})
	return [][]byte{event}
}

// responseAnswer collects the events of an answer.
type responseAnswer struct {
	x       *exchange
	model   string
	items   []*responseItem // in the order of the answer
	calls   int
	refused bool
	length  bool
	usage   model.Usage
	ended   bool
	failure error
}

type responseItem struct {
	index int64
	call  int // number of the call
	text  strings.Builder
	done  *outputItem
	raw   json.RawMessage
}

// outputItem holds the used members of an item of an answer.
type outputItem struct {
	Type      string       `json:"type"`
	CallID    string       `json:"call_id"`
	Name      string       `json:"name"`
	Arguments written      `json:"arguments"`
	Content   []outputText `json:"content"`
	Summary   []outputText `json:"summary"`
}

type outputText struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// item returns the item of an index, which may be a new one.
func (a *responseAnswer) item(index int64) *responseItem {
	i := slices.IndexFunc(a.items, func(it *responseItem) bool { return it.index >= index })
	if i >= 0 && a.items[i].index == index {
		return a.items[i]
	}
	if i < 0 {
		i = len(a.items)
	}
	it := &responseItem{index: index, call: -1}
	a.items = slices.Insert(a.items, i, it)
	return it
}

// add takes an event. It returns true for the last one.
func (a *responseAnswer) add(event []byte) (last bool) {
	var e responseEvent
	_ = decode(event, &e) // it is valid JSON: the stream has checked it
	switch e.Type {
	case "response.output_item.added":
		var item outputItem
		if decode(e.Item, &item) == nil && item.Type == "function_call" {
			a.begin(a.item(e.OutputIndex), item.CallID, item.Name)
		}
	case "response.output_item.done":
		a.done(a.item(e.OutputIndex), e.Item)
	case "response.output_text.delta", "response.refusal.delta":
		a.refused = a.refused || e.Type == "response.refusal.delta"
		a.item(e.OutputIndex).text.WriteString(e.Delta)
		a.x.tell(model.Delta{Text: e.Delta})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.x.tell(model.Delta{Thinking: e.Delta})
	case "response.reasoning_summary_part.added":
		if e.SummaryIndex > 0 {
			a.x.tell(model.Delta{Thinking: "\n\n"})
		}
	case "response.function_call_arguments.delta":
		if it := a.item(e.OutputIndex); it.call >= 0 && e.Delta != "" {
			a.x.tell(model.Delta{Call: &model.CallDelta{Index: it.call, Arguments: e.Delta}})
			it.text.WriteString(e.Delta)
		}
	case "response.completed", "response.incomplete", "response.failed":
		a.end(&e)
	case "error":
		a.ended, a.failure = true, a.x.event(event)
	}
	return a.ended
}

func (a *responseAnswer) begin(it *responseItem, id, name string) {
	it.call = a.calls
	a.calls++
	a.x.tell(model.Delta{Call: &model.CallDelta{Index: it.call, ID: id, Name: name}})
}

// done handles a complete item and emits the parts that were not emitted yet.
func (a *responseAnswer) done(it *responseItem, raw json.RawMessage) {
	var whole outputItem
	if it.done != nil || decode(raw, &whole) != nil {
		return
	}
	it.done, it.raw = &whole, raw
	switch whole.Type {
	case "message":
		text := whole.text()
		a.x.tell(model.Delta{Text: strings.TrimPrefix(text, it.text.String())})
	case "function_call":
		if it.call < 0 {
			a.begin(it, whole.CallID, whole.Name)
		}
		if rest := strings.TrimPrefix(string(whole.Arguments), it.text.String()); rest != "" {
			a.x.tell(model.Delta{Call: &model.CallDelta{Index: it.call, Arguments: rest}})
		}
	}
	a.refused = a.refused || slices.ContainsFunc(whole.Content, func(c outputText) bool { return c.Type == "refusal" })
}

func (o *outputItem) text() string {
	var b strings.Builder
	for _, c := range o.Content {
		b.WriteString(c.Text + c.Refusal)
	}
	return b.String()
}

func (a *responseAnswer) end(e *responseEvent) {
	r := &e.Response
	a.ended = true
	if r.Model != "" {
		a.model = r.Model
	}
	a.usage = model.Usage{Input: r.Usage.Input, Output: r.Usage.Output, Cached: r.Usage.InputDetails.Cached, Stored: r.Usage.InputDetails.Stored}
	switch r.IncompleteDetails.Reason {
	case "max_output_tokens":
		a.length = true
	case "content_filter":
		a.refused = true
	}
	if e.Type == "response.failed" {
		if !isObject(r.Error) {
			r.Error = json.RawMessage(`{"message":"the server does not say why the answer failed"}`)
		}
		a.failure = a.x.event(r.Error)
		return
	}
	for i, item := range r.Output { // which a server may not have told before
		a.done(a.item(int64(i)), item)
	}
}

// response returns the answer so far, without incomplete calls and thoughts.
func (a *responseAnswer) response() *model.Response {
	r := &model.Response{Message: model.Message{Role: model.Assistant}, Usage: a.usage, Model: a.model, Stop: model.StopEnd}
	add := func(p model.Part) { r.Message.Parts = append(r.Message.Parts, p) }
	for _, it := range a.items {
		switch {
		case it.done == nil:
			if it.call < 0 && it.text.Len() > 0 {
				add(model.Part{Text: it.text.String()})
			}
		case it.done.Type == "message":
			if text := it.done.text(); text != "" {
				add(model.Part{Text: text})
			}
		case it.done.Type == "function_call":
			more := unknown(it.raw, "type", "id", "call_id", "name", "arguments", "status")
			add(model.Part{Call: &model.Call{ID: it.done.CallID, Name: it.done.Name, Arguments: json.RawMessage(it.done.Arguments), Opaque: a.x.opaque(more, "")}})
		case it.done.Type == "reasoning":
			add(model.Part{Opaque: a.thought(it)})
		}
	}
	switch {
	case a.length:
		r.Stop = model.StopLength
	case a.refused:
		r.Stop = model.StopRefused
	case len(r.Message.Calls()) > 0:
		r.Stop = model.StopCalls
	}
	settle(r)
	return r
}

func (a *responseAnswer) thought(it *responseItem) *model.Opaque {
	var text []string
	for _, s := range it.done.Summary {
		text = append(text, s.Text)
	}
	if len(text) == 0 {
		text = append(text, it.done.text())
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(it.raw, &members) // it is an object: done has seen that
	delete(members, "status")            // is refused when it comes back
	for key, v := range members {
		if string(v) == "null" {
			delete(members, key)
		}
	}
	data, _ := json.Marshal(members)
	return &model.Opaque{Provider: a.x.provider, Text: strings.Join(text, "\n\n"), Data: data}
}
