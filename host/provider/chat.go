package provider

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider/internal/toolschema"
	"github.com/patchbay-dev/patchbay/internal/providers"
)

// chat is a client of the Chat Completions API, of OpenAI and of many other servers.
type chat struct{ *client }

func (c *chat) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	x := &exchange{client: c.client, ctx: ctx, emit: emit, req: req, events: chatEvents, path: "chat/completions"}
	a := chatAnswer{x: x, model: c.id}
	err := x.stream(func(r refusals) any { return c.request(req, r) }, a.add)
	if err == nil {
		err = a.failed()
	}
	if err == nil && !c.ended(a.finish != "" || x.done, a.whole()) {
		err = x.brokeOff()
	}
	a.usage = x.used(a.usage, err)
	return a.response(err != nil), err
}

// ended reports whether an answer is complete. Nearly all servers mark its end. An answer without the
// mark has broken off, unless the server has never sent the mark, had an answer without it before,
// and the answer is whole.
func (c *client) ended(marked, whole bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.unmarked
	c.marks = c.marks || marked
	c.unmarked = c.unmarked || !marked
	return marked || whole && before && !c.marks
}

// chatRequest is the request of Chat Completions, as far as it is used here.
type chatRequest struct {
	Messages            []chatMessage `json:"messages"`
	Model               string        `json:"model"`
	MaxCompletionTokens int64         `json:"max_completion_tokens,omitempty"`
	MaxTokens           int64         `json:"max_tokens,omitempty"`
	Temperature         *float64      `json:"temperature,omitempty"`
	TopP                *float64      `json:"top_p,omitempty"`
	ReasoningEffort     model.Effort  `json:"reasoning_effort,omitempty"`
	Thinking            *thinking     `json:"thinking,omitempty"`
	Stop                []string      `json:"stop,omitempty"`
	StreamOptions       chatOptions   `json:"stream_options"`
	ResponseFormat      *chatFormat   `json:"response_format,omitempty"`
	ToolChoice          any           `json:"tool_choice,omitempty"` // a mode, or a chatTool with a name alone
	Tools               []chatTool    `json:"tools,omitempty"`
	Stream              bool          `json:"stream"`

	more members
}

func (r *chatRequest) MarshalJSON() ([]byte, error) {
	type plain chatRequest
	object, err := encode((*plain)(r))
	return r.more.addTo(object), err
}

type chatOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatFormat struct {
	Schema chatSchema `json:"json_schema"`
	Type   string     `json:"type"`
}

type chatSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

type chatTool struct {
	Function chatFunction `json:"function"`
	Type     string       `json:"type"`
}

type chatFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"`
}

type chatMessage struct {
	Content    any            `json:"content,omitempty"` // a string or []chatPart
	ToolCalls  []chatToolCall `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
	Role       string         `json:"role"`

	more members
}

func (m chatMessage) MarshalJSON() ([]byte, error) {
	type plain chatMessage
	object, err := encode(plain(m))
	return m.more.addTo(object), err
}

type chatToolCall struct {
	ID       string `json:"id"`
	Function struct {
		Arguments string `json:"arguments"`
		Name      string `json:"name"`
	} `json:"function"`
	Type string `json:"type"`

	more members
}

func (c chatToolCall) MarshalJSON() ([]byte, error) {
	type plain chatToolCall
	object, err := encode(plain(c))
	return c.more.addTo(object), err
}

type chatPart struct {
	Text       string     `json:"text,omitempty"`
	ImageURL   *chatImage `json:"image_url,omitempty"`
	InputAudio *chatAudio `json:"input_audio,omitempty"`
	File       *chatFile  `json:"file,omitempty"`
	Type       string     `json:"type"`
}

type chatImage struct {
	URL string `json:"url"`
}

type chatAudio struct {
	Data   string `json:"data"`
	Format string `json:"format"`
}

type chatFile struct {
	FileData string `json:"file_data"`
	Filename string `json:"filename"`
}

func (c *chat) request(req *model.Request, refused refusals) *chatRequest {
	p := &chatRequest{Messages: c.messages(req, refused), Model: c.id, StreamOptions: chatOptions{IncludeUsage: true}, Stream: true}
	if c.official || c.reasons() {
		p.MaxCompletionTokens = c.tokens(req)
	} else {
		p.MaxTokens = c.tokens(req) // the name that all other servers know
	}
	if !c.reasons() {
		p.Stop = req.Stop
	}
	if c.samples(req) {
		p.Temperature, p.TopP = req.Temperature, req.TopP
	}
	if e := c.effort(req); e != "" && !refused[noEffort(e)] {
		c.chatEffort(p, e)
	}
	if req.Schema != nil {
		p.ResponseFormat = &chatFormat{Schema: chatSchema{Name: "answer", Schema: req.Schema}, Type: "json_schema"}
	}
	for _, t := range req.Tools {
		schema, words := toolschema.Adapt(t.Schema, !c.official)
		p.Tools = append(p.Tools, chatTool{Function: chatFunction{Name: t.Name, Description: describe(t.Description, words), Parameters: schema}, Type: "function"})
	}
	if len(p.Tools) > 0 {
		switch req.Choice.Mode {
		case "none", "required":
			p.ToolChoice = req.Choice.Mode
		case "tool":
			p.ToolChoice = chatTool{Function: chatFunction{Name: req.Choice.Tool}, Type: "function"}
		}
	}
	return p
}

// describe adds the rules that a schema could not express to a description.
func describe(description, words string) string {
	return strings.TrimSpace(description + "\n\n" + words)
}

func (c *chat) messages(req *model.Request, refused refusals) []chatMessage {
	out := []chatMessage{}
	system := req.System
	if req.Schema != nil && refused["response_format"] {
		system = inWords(system, req.Schema)
	}
	if system != "" {
		out = append(out, chatMessage{Content: system, Role: "system"})
	}
	for _, m := range req.Messages {
		if m.Role == model.Assistant {
			if a := c.assistant(&m, refused); a.Content != nil || a.ToolCalls != nil {
				out = append(out, a)
			}
			continue
		}
		results, others := partition(m.Parts)
		var media []model.Part
		for _, r := range results {
			text, more := c.resultText(r)
			out = append(out, chatMessage{Content: text, ToolCallID: refused.callID(r.ID), Role: "tool"})
			media = append(media, more...)
		}
		if parts := append(media, others...); len(parts) > 0 {
			if len(results) > 0 && refused[providers.UserAfterResults] {
				out = append(out, chatMessage{Content: "I have the results.", Role: "assistant"})
			}
			out = append(out, chatMessage{Content: c.content(parts), Role: "user"})
		}
	}
	return out
}

// assistant returns a message from the model. Thoughts that led to calls go back with the calls, in
// every later request: DeepSeek and Kimi refuse a message that has calls and lacks its thoughts.
func (c *chat) assistant(m *model.Message, refused refusals) chatMessage {
	a := chatMessage{Role: "assistant", more: members{}}
	if text := m.Text(); text != "" {
		a.Content = text
	}
	calls := m.Calls()
	for _, call := range calls {
		sent := chatToolCall{ID: refused.callID(call.ID), Type: "function", more: c.kept(call.Opaque)}
		maps.DeleteFunc(sent.more, func(name string, _ json.RawMessage) bool { return refused[name] })
		sent.Function.Name, sent.Function.Arguments = toolName(call.Name), string(object(call.Arguments))
		a.ToolCalls = append(a.ToolCalls, sent)
	}
	for _, p := range m.Parts {
		for name, value := range c.kept(p.Opaque) {
			if !refused[name] && (len(calls) > 0 || !slices.Contains(thoughts, name)) {
				a.more[name] = value
			}
		}
	}
	if refused[noThoughts] && len(calls) > 0 && a.more[thoughts[0]] == nil {
		a.more[thoughts[0]] = json.RawMessage(`" "`) // Kimi does not take an empty one
	}
	return a
}

// content returns the content of a user message. If it is only text, it is a string, which every
// server accepts.
func (c *chat) content(parts []model.Part) any {
	content := []chatPart{}
	var texts []string
	for _, p := range parts {
		switch m := p.Media; {
		case m == nil && p.Text == "":
			continue
		case m == nil:
			content = append(content, chatPart{Text: p.Text, Type: "text"})
		case c.formOf(m) == asText:
			content = append(content, chatPart{Text: mediaText(m), Type: "text"})
		default:
			content = append(content, c.medium(m))
			continue
		}
		texts = append(texts, content[len(content)-1].Text)
	}
	if len(texts) == len(content) {
		return strings.Join(texts, "\n\n")
	}
	return content
}

func (c *chat) medium(m *model.Media) chatPart {
	switch c.formOf(m) {
	case asImage:
		return chatPart{ImageURL: &chatImage{dataURL(m)}, Type: "image_url"}
	case asAudio:
		_, data, _ := strings.Cut(dataURL(m), ",")
		return chatPart{InputAudio: &chatAudio{Data: data, Format: audioFormat(m.MIME)}, Type: "input_audio"}
	}
	return chatPart{File: &chatFile{FileData: dataURL(m), Filename: fileName(m)}, Type: "file"}
}
