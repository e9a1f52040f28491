package provider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider/internal/toolschema"
)

// messages speaks the Messages API of Anthropic.
type messages struct {
	*client
	api anthropic.MessageService
}

// newMessages makes the service alone: unlike the client of the library it reads nothing from
// the environment. Its spans are switched off here, as a variable could switch them on.
func (c *client) newMessages() *messages {
	o := []option.RequestOption{option.WithBaseURL(c.base), option.WithHTTPClient(c.http), option.WithMaxRetries(0), option.WithoutOpenTelemetry()}
	if c.key != "" {
		o = append(o, option.WithAPIKey(c.key))
	}
	return &messages{c, anthropic.NewMessageService(o...)}
}

func (c *messages) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	x := &exchange{client: c.client, ctx: ctx, emit: emit}
	stream := c.api.NewStreaming(ctx, c.request(req), option.WithMiddleware(x.roundTrip))
	defer stream.Close()

	a := messagesAnswer{x: x, model: c.id}
	for !a.ended && stream.Next() {
		event := stream.Current()
		a.add(&event)
	}
	err := stream.Err()
	var event *anthropic.Error
	switch {
	case errors.As(err, &event):
		err = x.event([]byte(event.RawJSON()))
	case err != nil:
		err = x.failed(err)
	case !a.ended:
		err = x.brokeOff()
	}
	return a.response(), err
}

func (c *messages) request(req *model.Request) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{
		Model:         anthropic.Model(c.id),
		MaxTokens:     c.tokens(req),
		Messages:      c.messages(req.Messages),
		StopSequences: req.Stop,
	}
	if p.MaxTokens == 0 {
		p.MaxTokens = longest(c.id)
	}
	if req.Temperature != nil {
		p.Temperature = anthropic.Float(min(*req.Temperature, 1))
	}
	system := req.System
	if req.Schema != nil {
		if schema := outputSchema(c.id, req.Schema); schema != nil {
			p.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: schema}
		} else {
			system = strings.TrimSpace(system + "\n\nWhen you answer without calling a tool, your answer is JSON and nothing else, with no fence around it, and fits this JSON Schema: " + string(req.Schema))
		}
	}
	if system != "" {
		p.System = []anthropic.TextBlockParam{{Text: system, CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, tool(t.Name, t.Description, t.Schema))
	}
	if len(req.Tools) == 0 {
		// A conversation with calls needs the tools of them.
		for _, name := range called(req.Messages) {
			p.Tools = append(p.Tools, tool(name, "", nil))
		}
	}
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].OfTool.CacheControl = anthropic.NewCacheControlEphemeralParam()
		mode := req.Choice.Mode
		if len(req.Tools) == 0 {
			mode = "none"
		}
		switch mode {
		case "none":
			p.ToolChoice.OfNone = &anthropic.ToolChoiceNoneParam{}
		case "required":
			p.ToolChoice.OfAny = &anthropic.ToolChoiceAnyParam{}
		case "tool":
			p.ToolChoice.OfTool = &anthropic.ToolChoiceToolParam{Name: req.Choice.Tool}
		}
	}
	return p
}

// longest is the most tokens of an answer, which the API wants to be told.
func longest(id string) int64 {
	switch {
	case strings.HasPrefix(id, "claude-3-5"), strings.HasPrefix(id, "claude-3-7"):
		return 8192
	case strings.HasPrefix(id, "claude-3"):
		return 4096
	}
	return 32_000
}

// outputSchema returns a schema that the API can see to; nil: it cannot. It takes closed objects
// and few keywords, on models of 2025-09 and later.
func outputSchema(id string, raw json.RawMessage) map[string]any {
	for _, old := range []string{"claude-2", "claude-3", "claude-opus-4-0", "claude-opus-4-2025", "claude-sonnet-4-0", "claude-sonnet-4-2025"} {
		if strings.HasPrefix(id, old) {
			return nil
		}
	}
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil || !closed(schema) {
		return nil
	}
	return schema
}

func closed(schema map[string]any) bool {
	if schema["type"] == "object" && schema["additionalProperties"] != false {
		return false
	}
	for key, v := range schema {
		switch key {
		case "type", "title", "description", "enum", "const", "required", "additionalProperties", "default", "$schema":
		case "items":
			if s, ok := v.(map[string]any); !ok || !closed(s) {
				return false
			}
		case "properties":
			all, ok := v.(map[string]any)
			for _, v := range all {
				s, isObject := v.(map[string]any)
				ok = ok && isObject && closed(s)
			}
			if !ok {
				return false
			}
		case "anyOf":
			all, ok := v.([]any)
			for _, v := range all {
				s, isObject := v.(map[string]any)
				ok = ok && isObject && closed(s)
			}
			if !ok {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func tool(name, description string, raw json.RawMessage) anthropic.ToolUnionParam {
	schema, words := toolschema.Adapt(raw, false)
	delete(schema, "type") // the library adds it
	t := &anthropic.ToolParam{Name: name, InputSchema: anthropic.ToolInputSchemaParam{ExtraFields: schema}}
	if d := describe(description, words); d != "" {
		t.Description = anthropic.String(d)
	}
	return anthropic.ToolUnionParam{OfTool: t}
}

// called returns the names of the tools that a conversation has called, each once.
func called(messages []model.Message) []string {
	var found []string
	for _, m := range messages {
		for _, c := range m.Calls() {
			if name := toolName(c.Name); !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return found
}

func (c *messages) messages(in []model.Message) []anthropic.MessageParam {
	var out []anthropic.MessageParam
	for _, m := range in {
		role := anthropic.MessageParamRoleUser
		if m.Role == model.Assistant {
			role = anthropic.MessageParamRoleAssistant
		}
		results, others := partition(m.Parts)
		var blocks []anthropic.ContentBlockParamUnion
		for _, r := range results { // they come first, as the API wants it
			blocks = append(blocks, c.result(r))
		}
		for _, p := range others {
			blocks = append(blocks, c.block(p)...)
		}
		for n := len(blocks); n > 0 && (blocks[n-1].OfThinking != nil || blocks[n-1].OfRedactedThinking != nil); n-- {
			blocks = blocks[:n-1] // no thought may stand at the end
		}
		if len(blocks) == 0 {
			if role == anthropic.MessageParamRoleAssistant {
				continue
			}
			blocks = append(blocks, anthropic.NewTextBlock("(empty)"))
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue
		}
		out = append(out, anthropic.MessageParam{Role: role, Content: blocks})
	}
	if n := len(out); n > 0 {
		last := out[n-1].Content
		if mark := last[len(last)-1].GetCacheControl(); mark != nil {
			*mark = anthropic.NewCacheControlEphemeralParam()
		}
	}
	return out
}

// block returns the block of a part; none: there is nothing in it that can be sent.
func (c *messages) block(p model.Part) []anthropic.ContentBlockParamUnion {
	switch {
	case p.Media != nil:
		switch m := p.Media; c.formOf(m) {
		case asImage:
			return []anthropic.ContentBlockParamUnion{{OfImage: image(m)}}
		case asFile:
			return []anthropic.ContentBlockParamUnion{{OfDocument: document(m)}}
		default:
			return []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(mediaText(m))}
		}
	case p.Call != nil:
		return []anthropic.ContentBlockParamUnion{anthropic.NewToolUseBlock(callID(p.Call.ID), object(p.Call.Arguments), toolName(p.Call.Name))}
	case p.Opaque != nil:
		var thought struct{ Type, Thinking, Signature, Data string }
		if p.Opaque.Provider != c.provider || json.Unmarshal(p.Opaque.Data, &thought) != nil {
			return nil
		}
		switch thought.Type {
		case "thinking":
			return []anthropic.ContentBlockParamUnion{anthropic.NewThinkingBlock(thought.Signature, thought.Thinking)}
		case "redacted_thinking":
			return []anthropic.ContentBlockParamUnion{anthropic.NewRedactedThinkingBlock(thought.Data)}
		}
	case strings.TrimSpace(p.Text) != "": // the API takes no empty text
		return []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(p.Text)}
	}
	return nil
}

func (c *messages) result(r *model.Result) anthropic.ContentBlockParamUnion {
	b := &anthropic.ToolResultBlockParam{ToolUseID: callID(r.ID)}
	if r.Error {
		b.IsError = anthropic.Bool(true)
	}
	text := func(text string) {
		b.Content = append(b.Content, anthropic.ToolResultBlockParamContentUnion{OfText: &anthropic.TextBlockParam{Text: text}})
	}
	for _, p := range r.Parts {
		switch {
		case p.Media == nil && strings.TrimSpace(p.Text) == "":
		case p.Media == nil:
			text(p.Text)
		default:
			switch c.formOf(p.Media) {
			case asImage:
				b.Content = append(b.Content, anthropic.ToolResultBlockParamContentUnion{OfImage: image(p.Media)})
			case asFile:
				b.Content = append(b.Content, anthropic.ToolResultBlockParamContentUnion{OfDocument: document(p.Media)})
			default:
				text(mediaText(p.Media))
			}
		}
	}
	if len(b.Content) == 0 {
		text("(empty)")
	}
	return anthropic.ContentBlockParamUnion{OfToolResult: b}
}

func image(m *model.Media) *anthropic.ImageBlockParam {
	return &anthropic.ImageBlockParam{Source: anthropic.ImageBlockParamSourceUnion{OfBase64: &anthropic.Base64ImageSourceParam{
		Data: base64.StdEncoding.EncodeToString(m.Data), MediaType: anthropic.Base64ImageSourceMediaType(m.MIME),
	}}}
}

func document(m *model.Media) *anthropic.DocumentBlockParam {
	d := &anthropic.DocumentBlockParam{Source: anthropic.DocumentBlockParamSourceUnion{OfBase64: &anthropic.Base64PDFSourceParam{
		Data: base64.StdEncoding.EncodeToString(m.Data),
	}}}
	if m.Name != "" {
		d.Title = anthropic.String(m.Name)
	}
	return d
}

// messagesAnswer collects the events of an answer.
type messagesAnswer struct {
	x      *exchange
	model  string
	blocks []*messagesBlock // in the order of the answer
	calls  int
	stop   anthropic.StopReason
	usage  model.Usage
	fresh  int64 // tokens of the request that no cache has to do with
	ended  bool
}

type messagesBlock struct {
	index           int64
	kind            string
	text, arguments strings.Builder // the text or thought, or the arguments
	id, name        string
	signature       string
	data            string
	call            int // number of the call
	closed          bool
}

func (a *messagesAnswer) add(e *anthropic.MessageStreamEventUnion) {
	switch e.Type {
	case "message_start":
		if e.Message.Model != "" {
			a.model = string(e.Message.Model)
		}
		u := e.Message.Usage
		a.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens)
	case "content_block_start":
		a.start(e)
	case "content_block_delta":
		a.delta(e)
	case "content_block_stop":
		if b := a.block(e.Index); b != nil {
			b.closed = true
		}
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.stop = e.Delta.StopReason
		}
		a.count(e.Usage.InputTokens, e.Usage.CacheReadInputTokens, e.Usage.CacheCreationInputTokens, e.Usage.OutputTokens)
	case "message_stop":
		a.ended = true
	}
}

// count takes what an event tells of the usage; the numbers grow, and zero says nothing.
func (a *messagesAnswer) count(fresh, cached, stored, output int64) {
	a.fresh = max(a.fresh, fresh)
	a.usage.Cached = max(a.usage.Cached, cached)
	a.usage.Stored = max(a.usage.Stored, stored)
	a.usage.Output = max(a.usage.Output, output)
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

func (a *messagesAnswer) start(e *anthropic.MessageStreamEventUnion) {
	c := e.ContentBlock
	b := &messagesBlock{index: e.Index, kind: c.Type, id: c.ID, name: c.Name, signature: c.Signature, data: c.Data}
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
		if raw := c.JSON.Input.Raw(); raw != "" && raw != "{}" && raw != "null" {
			first.Arguments = raw // whole at once, as some servers do
			b.arguments.WriteString(raw)
		}
		a.x.tell(model.Delta{Call: &first})
	}
}

func (a *messagesAnswer) delta(e *anthropic.MessageStreamEventUnion) {
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
		if d.PartialJSON != "" {
			a.x.tell(model.Delta{Call: &model.CallDelta{Index: b.call, Arguments: d.PartialJSON}})
		}
	}
}

// response returns what has come, without calls and thoughts that did not end.
func (a *messagesAnswer) response() *model.Response {
	r := &model.Response{Message: model.Message{Role: model.Assistant}, Usage: a.usage, Model: a.model, Stop: model.StopEnd}
	add := func(p model.Part) { r.Message.Parts = append(r.Message.Parts, p) }
	opaque := func(text string, members map[string]string) {
		data, _ := json.Marshal(members)
		add(model.Part{Opaque: &model.Opaque{Provider: a.x.provider, Text: text, Data: data}})
	}
	for _, b := range a.blocks {
		text := b.text.String()
		switch {
		case b.kind == "text" && text != "":
			add(model.Part{Text: text})
		case !b.closed:
		case b.kind == "thinking":
			opaque(text, map[string]string{"type": b.kind, "thinking": text, "signature": b.signature})
		case b.kind == "redacted_thinking":
			opaque("", map[string]string{"type": b.kind, "data": b.data})
		case b.kind == "tool_use":
			add(model.Part{Call: &model.Call{ID: b.id, Name: b.name, Arguments: json.RawMessage(b.arguments.String())}})
		}
	}
	switch a.stop {
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		r.Stop = model.StopLength
	case anthropic.StopReasonStopSequence:
		r.Stop = model.StopText
	case anthropic.StopReasonRefusal:
		r.Stop = model.StopRefused
	default:
		if len(r.Message.Calls()) > 0 {
			r.Stop = model.StopCalls
		}
	}
	settle(r)
	return r
}
