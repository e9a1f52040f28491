package provider

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider/internal/toolschema"
)

// response speaks the Responses API of OpenAI. The server is asked to keep nothing: thoughts go
// there and back in encrypted form. The API knows no [model.Request.Stop].
type response struct {
	*client
	api responses.ResponseService
}

func (c *client) newResponses() *response {
	return &response{c, responses.NewResponseService(c.openAI()...)}
}

func (c *response) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	x := &exchange{client: c.client, ctx: ctx, emit: emit}
	stream := c.api.NewStreaming(ctx, c.request(req), option.WithMiddleware(x.roundTrip))
	defer stream.Close()

	a := responseAnswer{x: x, model: c.id}
	for !a.ended && stream.Next() {
		event := stream.Current()
		a.add(&event)
	}
	err := stream.Err()
	var event *ssestream.StreamError
	switch {
	case a.failure != nil:
		err = a.failure
	case errors.As(err, &event):
		err = x.event(event.Event.Data)
	case err != nil:
		err = x.failed(err)
	case !a.ended:
		err = x.brokeOff()
	}
	return a.response(), err
}

func (c *response) request(req *model.Request) responses.ResponseNewParams {
	p := responses.ResponseNewParams{
		Model: c.id,
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: c.items(req.Messages)},
		Store: openai.Bool(false),
	}
	if c.official && c.reasons() {
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	if req.System != "" {
		p.Instructions = openai.String(req.System)
	}
	if n := c.tokens(req); n > 0 {
		p.MaxOutputTokens = openai.Int(max(n, 16)) // fewer are refused
	}
	if req.Temperature != nil && !c.reasons() {
		p.Temperature = openai.Float(*req.Temperature)
	}
	if req.Schema != nil {
		var schema map[string]any
		if json.Unmarshal(req.Schema, &schema) == nil {
			p.Text.Format.OfJSONSchema = &responses.ResponseFormatTextJSONSchemaConfigParam{Name: "answer", Schema: schema}
		}
	}
	for _, t := range req.Tools {
		schema, words := toolschema.Adapt(t.Schema, !c.official)
		f := &responses.FunctionToolParam{Name: t.Name, Parameters: schema, Strict: openai.Bool(false)}
		if d := describe(t.Description, words); d != "" {
			f.Description = openai.String(d)
		}
		p.Tools = append(p.Tools, responses.ToolUnionParam{OfFunction: f})
	}
	if len(p.Tools) > 0 {
		switch req.Choice.Mode {
		case "none", "required":
			p.ToolChoice.OfToolChoiceMode = param.NewOpt(responses.ToolChoiceOptions(req.Choice.Mode))
		case "tool":
			p.ToolChoice.OfFunctionTool = &responses.ToolChoiceFunctionParam{Name: req.Choice.Tool}
		}
	}
	return p
}

func (c *response) items(messages []model.Message) responses.ResponseInputParam {
	var out responses.ResponseInputParam
	for _, m := range messages {
		if m.Role == model.Assistant {
			whole := len(out) // up to the last item that is no thought: no thought may stand at the end
			for _, p := range m.Parts {
				item, ok := c.said(p)
				if !ok {
					continue
				}
				out = append(out, item)
				if p.Opaque == nil {
					whole = len(out)
				}
			}
			out = out[:whole]
			continue
		}
		results, others := partition(m.Parts)
		for _, r := range results {
			item := responses.ResponseInputItemParamOfFunctionCallOutput(c.output(r))
			item.OfFunctionCallOutput.CallID = openai.String(callID(r.ID))
			out = append(out, item)
		}
		if content := c.content(others); len(content) > 0 {
			out = append(out, responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser))
		}
	}
	return out
}

// said returns the item of a part of the model's.
func (c *response) said(p model.Part) (item responses.ResponseInputItemUnionParam, ok bool) {
	switch {
	case p.Text != "":
		return responses.ResponseInputItemParamOfMessage(p.Text, responses.EasyInputMessageRoleAssistant), true
	case p.Call != nil:
		return responses.ResponseInputItemParamOfFunctionCall(string(object(p.Call.Arguments)), callID(p.Call.ID), toolName(p.Call.Name)), true
	case p.Opaque != nil && p.Opaque.Provider == c.provider:
		var thought struct {
			Encrypted string `json:"encrypted_content"`
			Content   []any  `json:"content"`
		}
		if json.Unmarshal(p.Opaque.Data, &thought) != nil || thought.Encrypted == "" && len(thought.Content) == 0 {
			return item, false // the server has not kept it
		}
		return param.Override[responses.ResponseInputItemUnionParam](p.Opaque.Data), true
	}
	return item, false
}

// output returns what a result holds.
func (c *response) output(r *model.Result) responses.ResponseFunctionCallOutputItemListParam {
	var out responses.ResponseFunctionCallOutputItemListParam
	text := func(text string) {
		out = append(out, responses.ResponseFunctionCallOutputItemParamOfInputText(text))
	}
	for _, p := range r.Parts {
		switch m := p.Media; {
		case m == nil && p.Text == "":
		case m == nil:
			text(p.Text)
		case c.formOf(m) == asImage:
			out = append(out, responses.ResponseFunctionCallOutputItemUnionParam{OfInputImage: &responses.ResponseInputImageContentParam{ImageURL: openai.String(dataURL(m))}})
		case c.formOf(m) == asFile:
			out = append(out, responses.ResponseFunctionCallOutputItemUnionParam{OfInputFile: &responses.ResponseInputFileContentParam{FileData: openai.String(dataURL(m)), Filename: openai.String(fileName(m))}})
		default:
			text(mediaText(m))
		}
	}
	if len(out) == 0 {
		text("(empty)")
	}
	return out
}

func (c *response) content(parts []model.Part) responses.ResponseInputMessageContentListParam {
	var out responses.ResponseInputMessageContentListParam
	for _, p := range parts {
		switch m := p.Media; {
		case m == nil && p.Text == "":
		case m == nil:
			out = append(out, responses.ResponseInputContentParamOfInputText(p.Text))
		case c.formOf(m) == asImage:
			out = append(out, responses.ResponseInputContentUnionParam{OfInputImage: &responses.ResponseInputImageParam{
				Detail: responses.ResponseInputImageDetailAuto, ImageURL: openai.String(dataURL(m)),
			}})
		case c.formOf(m) == asFile:
			out = append(out, responses.ResponseInputContentUnionParam{OfInputFile: &responses.ResponseInputFileParam{FileData: openai.String(dataURL(m)), Filename: openai.String(fileName(m))}})
		default:
			out = append(out, responses.ResponseInputContentParamOfInputText(mediaText(m)))
		}
	}
	return out
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
	raw   string
}

// outputItem is what matters of an item of an answer.
type outputItem struct {
	Type      string       `json:"type"`
	ID        string       `json:"id"`
	CallID    string       `json:"call_id"`
	Name      string       `json:"name"`
	Arguments string       `json:"arguments"`
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

func (a *responseAnswer) add(e *responses.ResponseStreamEventUnion) {
	switch e.Type {
	case "response.output_item.added":
		if e.Item.Type == "function_call" {
			a.begin(a.item(e.OutputIndex), e.Item.CallID, e.Item.Name)
		}
	case "response.output_item.done":
		a.done(a.item(e.OutputIndex), e.Item.RawJSON())
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
		a.end(e)
	case "error":
		a.ended, a.failure = true, a.x.event([]byte(e.RawJSON()))
	}
}

func (a *responseAnswer) begin(it *responseItem, id, name string) {
	it.call = a.calls
	a.calls++
	a.x.tell(model.Delta{Call: &model.CallDelta{Index: it.call, ID: id, Name: name}})
}

// done takes an item that is whole, and tells what was not told of it.
func (a *responseAnswer) done(it *responseItem, raw string) {
	var whole outputItem
	if it.done != nil || json.Unmarshal([]byte(raw), &whole) != nil {
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
		if rest := strings.TrimPrefix(whole.Arguments, it.text.String()); rest != "" {
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

func (a *responseAnswer) end(e *responses.ResponseStreamEventUnion) {
	r := e.Response
	a.ended = true
	if r.Model != "" {
		a.model = r.Model
	}
	a.usage = model.Usage{Input: r.Usage.InputTokens, Output: r.Usage.OutputTokens, Cached: r.Usage.InputTokensDetails.CachedTokens, Stored: r.Usage.InputTokensDetails.CacheWriteTokens}
	switch r.IncompleteDetails.Reason {
	case "max_output_tokens":
		a.length = true
	case "content_filter":
		a.refused = true
	}
	if e.Type == "response.failed" {
		a.failure = a.x.event([]byte(`{"error":` + r.Error.RawJSON() + `}`))
		return
	}
	for i, item := range r.Output { // which a server may not have told before
		a.done(a.item(int64(i)), item.RawJSON())
	}
}

// response returns what has come, without calls and thoughts that did not end.
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
			add(model.Part{Call: &model.Call{ID: it.done.CallID, Name: it.done.Name, Arguments: json.RawMessage(it.done.Arguments)}})
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
	_ = json.Unmarshal([]byte(it.raw), &members) // it is an object: done has seen that
	delete(members, "status")                    // is refused when it comes back
	for key, v := range members {
		if string(v) == "null" {
			delete(members, key)
		}
	}
	data, _ := json.Marshal(members)
	return &model.Opaque{Provider: a.x.provider, Text: strings.Join(text, "\n\n"), Data: data}
}
