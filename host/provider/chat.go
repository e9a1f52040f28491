package provider

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider/internal/toolschema"
)

// chat speaks the Chat Completions API, as OpenAI has it and as many others have it.
type chat struct {
	*client
	api openai.ChatCompletionService
}

func (c *client) newChat() *chat {
	return &chat{c, openai.NewChatCompletionService(c.openAI()...)}
}

// openAI are the options of the library of OpenAI. Its services read nothing from the
// environment, unlike its client.
func (c *client) openAI() []option.RequestOption {
	o := []option.RequestOption{option.WithBaseURL(c.base), option.WithHTTPClient(c.http), option.WithMaxRetries(0)}
	if c.key != "" {
		o = append(o, option.WithAPIKey(c.key))
	}
	return o
}

func (c *chat) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	x := &exchange{client: c.client, ctx: ctx, emit: emit, asStream: chatChunk}
	stream := c.api.NewStreaming(ctx, c.request(req), option.WithMiddleware(x.roundTrip))
	defer stream.Close()

	a := chatAnswer{x: x, model: c.id}
	for stream.Next() {
		chunk := stream.Current()
		a.add(&chunk)
	}
	err := stream.Err()
	var event *ssestream.StreamError
	switch {
	case errors.As(err, &event):
		err = x.event(event.Event.Data)
	case err != nil:
		err = x.failed(err)
	case a.finish == "" && !x.sawDone():
		err = x.brokeOff()
	}
	return a.response(err != nil), err
}

func (c *chat) request(req *model.Request) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model:         c.id,
		Messages:      c.messages(req),
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	if n := c.tokens(req); n > 0 && c.official {
		p.MaxCompletionTokens = openai.Int(n)
	} else if n > 0 {
		p.MaxTokens = openai.Int(n) // the name that all others know
	}
	if !c.reasons() {
		if req.Temperature != nil {
			p.Temperature = openai.Float(*req.Temperature)
		}
		p.Stop.OfStringArray = req.Stop
	}
	if req.Schema != nil {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Schema: req.Schema},
		}
	}
	for _, t := range req.Tools {
		schema, words := toolschema.Adapt(t.Schema, !c.official)
		f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: schema}
		if d := describe(t.Description, words); d != "" {
			f.Description = openai.String(d)
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(f))
	}
	if len(p.Tools) > 0 {
		switch req.Choice.Mode {
		case "none", "required":
			p.ToolChoice.OfAuto = openai.String(req.Choice.Mode)
		case "tool":
			p.ToolChoice.OfFunctionToolChoice = &openai.ChatCompletionNamedToolChoiceParam{
				Function: openai.ChatCompletionNamedToolChoiceFunctionParam{Name: req.Choice.Tool},
			}
		}
	}
	return p
}

// describe adds to a description what a schema could not say.
func describe(description, words string) string {
	return strings.TrimSpace(description + "\n\n" + words)
}

func (c *chat) messages(req *model.Request) []openai.ChatCompletionMessageParamUnion {
	var out []openai.ChatCompletionMessageParamUnion
	if req.System != "" {
		out = append(out, openai.SystemMessage(req.System))
	}
	last := 0 // the last message in which the user has said something
	for i, m := range req.Messages {
		if _, others := partition(m.Parts); m.Role == model.User && len(others) > 0 {
			last = i
		}
	}
	for i, m := range req.Messages {
		if m.Role == model.Assistant {
			if a := c.assistant(&m, i > last); a != nil {
				out = append(out, openai.ChatCompletionMessageParamUnion{OfAssistant: a})
			}
			continue
		}
		results, others := partition(m.Parts)
		var media []model.Part
		for _, r := range results {
			text, more := c.resultText(r)
			out = append(out, openai.ToolMessage(text, callID(r.ID)))
			media = append(media, more...)
		}
		if parts := append(media, others...); len(parts) > 0 {
			out = append(out, c.user(parts))
		}
	}
	return out
}

// assistant returns a message of the model; nil: there is nothing in it that can be sent. Some
// models want the thoughts back that led to their calls, while the user has said nothing new.
func (c *chat) assistant(m *model.Message, thoughts bool) *openai.ChatCompletionAssistantMessageParam {
	a := &openai.ChatCompletionAssistantMessageParam{}
	if text := m.Text(); text != "" {
		a.Content.OfString = openai.String(text)
	}
	for _, call := range m.Calls() {
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
			ID: callID(call.ID),
			Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
				Name:      toolName(call.Name),
				Arguments: string(object(call.Arguments)),
			},
		}})
	}
	if !thoughts || a.ToolCalls == nil {
		if param.IsOmitted(a.Content) && a.ToolCalls == nil {
			return nil
		}
		return a
	}
	for _, p := range m.Parts {
		var extra map[string]any
		if p.Opaque != nil && p.Opaque.Provider == c.provider && json.Unmarshal(p.Opaque.Data, &extra) == nil {
			a.SetExtraFields(extra)
		}
	}
	return a
}

func (c *chat) user(parts []model.Part) openai.ChatCompletionMessageParamUnion {
	var content []openai.ChatCompletionContentPartUnionParam
	texts := true
	for _, p := range parts {
		switch m := p.Media; {
		case m == nil && p.Text == "":
		case m == nil:
			content = append(content, openai.TextContentPart(p.Text))
		case c.formOf(m) == asText:
			content = append(content, openai.TextContentPart(mediaText(m)))
		default:
			texts = false
			content = append(content, c.medium(m))
		}
	}
	if texts { // as everybody knows it
		var all []string
		for _, p := range content {
			all = append(all, *p.GetText())
		}
		return openai.UserMessage(strings.Join(all, "\n\n"))
	}
	return openai.UserMessage(content)
}

func (c *chat) medium(m *model.Media) openai.ChatCompletionContentPartUnionParam {
	switch c.formOf(m) {
	case asImage:
		return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: dataURL(m)})
	case asAudio:
		_, data, _ := strings.Cut(dataURL(m), ",")
		return openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{Data: data, Format: audioFormat(m.MIME)})
	}
	return openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{FileData: openai.String(dataURL(m)), Filename: openai.String(fileName(m))})
}

// chatChunk makes a chunk of a stream from a whole answer.
func chatChunk(answer []byte) []byte {
	var whole map[string]json.RawMessage
	var choices []map[string]json.RawMessage
	if json.Unmarshal(answer, &whole) != nil || json.Unmarshal(whole["choices"], &choices) != nil {
		return answer // an error, perhaps
	}
	for _, choice := range choices {
		choice["delta"] = choice["message"]
		delete(choice, "message")
	}
	whole["choices"], _ = json.Marshal(choices)
	chunk, err := json.Marshal(whole)
	if err != nil {
		return answer
	}
	return chunk
}

// chatAnswer collects the chunks of an answer.
type chatAnswer struct {
	x        *exchange
	model    string
	text     strings.Builder
	thoughts map[string]*strings.Builder // by the member of the message that they came in
	calls    []*chatCall
	refused  bool
	finish   string
	usage    model.Usage
}

type chatCall struct {
	index     int64  // as the server counts
	given     string // its id as the server has it; empty: it gave none
	id, name  string
	arguments strings.Builder
}

func (a *chatAnswer) add(chunk *openai.ChatCompletionChunk) {
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if u := chunk.Usage; u.PromptTokens > 0 || u.CompletionTokens > 0 {
		a.usage = model.Usage{Input: u.PromptTokens, Output: u.CompletionTokens, Cached: u.PromptTokensDetails.CachedTokens, Stored: u.PromptTokensDetails.CacheWriteTokens}
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		d := choice.Delta
		for _, member := range []string{"reasoning_content", "reasoning"} {
			var thought string
			if json.Unmarshal([]byte(d.JSON.ExtraFields[member].Raw()), &thought) != nil || thought == "" {
				continue
			}
			if a.thoughts == nil {
				a.thoughts = map[string]*strings.Builder{}
			}
			if a.thoughts[member] == nil {
				a.thoughts[member] = &strings.Builder{}
			}
			a.thoughts[member].WriteString(thought)
			a.x.tell(model.Delta{Thinking: thought})
			break // some servers send both
		}
		for _, text := range []string{contentText(d.JSON.Content.Raw()), d.Refusal} {
			a.text.WriteString(text)
			a.x.tell(model.Delta{Text: text})
		}
		a.refused = a.refused || d.Refusal != ""
		for _, piece := range d.ToolCalls {
			a.call(&piece)
		}
	}
}

// contentText returns the text of a content, which a few servers send in parts.
func contentText(raw string) string {
	var text string
	if raw == "" || json.Unmarshal([]byte(raw), &text) == nil {
		return text
	}
	var parts []struct {
		Type, Text string
	}
	if json.Unmarshal([]byte(raw), &parts) == nil {
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
func (a *chatAnswer) call(piece *openai.ChatCompletionChunkChoiceDeltaToolCall) {
	name := piece.Function.Name
	indexed := piece.JSON.Index.Valid()
	at := len(a.calls) - 1
	for indexed && at >= 0 && a.calls[at].index != piece.Index {
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
		a.calls = append(a.calls, &chatCall{index: piece.Index, id: piece.ID, given: piece.ID})
		if piece.ID == "" {
			a.calls[at].id = "call_" + rand.Text()
		}
	}
	call := a.calls[at]
	delta := model.CallDelta{Index: at}
	if call.name == "" && name != "" {
		call.name = name
		delta.ID, delta.Name = call.id, name
	}
	raw := piece.Function.JSON.Arguments.Raw()
	if json.Unmarshal([]byte(raw), &delta.Arguments) != nil && raw != "" {
		delta.Arguments = raw // an object, though the API says string
	}
	call.arguments.WriteString(delta.Arguments)
	if delta != (model.CallDelta{Index: at}) {
		a.x.tell(model.Delta{Call: &delta})
	}
}

// response returns what has come. Of a broken answer the last call is left out.
func (a *chatAnswer) response(broken bool) *model.Response {
	r := &model.Response{Message: model.Message{Role: model.Assistant}, Usage: a.usage, Model: a.model, Stop: model.StopEnd}
	add := func(p model.Part) { r.Message.Parts = append(r.Message.Parts, p) }
	for member, b := range a.thoughts {
		data, _ := json.Marshal(map[string]string{member: b.String()})
		add(model.Part{Opaque: &model.Opaque{Provider: a.x.provider, Text: b.String(), Data: data}})
	}
	if a.text.Len() > 0 {
		add(model.Part{Text: a.text.String()})
	}
	calls := a.calls
	if broken && len(calls) > 0 {
		calls = calls[:len(calls)-1]
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
