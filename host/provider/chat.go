package provider

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider/internal/toolschema"
)

// chat is a client of the Chat Completions API, of OpenAI and of many other servers.
type chat struct{ *client }

func (c *chat) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	x := &exchange{client: c.client, ctx: ctx, emit: emit, events: chatEvents}
	a := chatAnswer{x: x, model: c.id}
	err := x.stream("chat/completions", c.request(req), a.add)
	if err == nil && a.finish == "" && !x.done {
		err = x.brokeOff()
	}
	return a.response(err != nil), err
}

// chatRequest is the request of Chat Completions, as far as it is used here.
type chatRequest struct {
	Messages            []chatMessage `json:"messages"`
	Model               string        `json:"model"`
	MaxCompletionTokens int64         `json:"max_completion_tokens,omitempty"`
	MaxTokens           int64         `json:"max_tokens,omitempty"`
	Temperature         *float64      `json:"temperature,omitempty"`
	Stop                []string      `json:"stop,omitempty"`
	StreamOptions       chatOptions   `json:"stream_options"`
	ResponseFormat      *chatFormat   `json:"response_format,omitempty"`
	ToolChoice          any           `json:"tool_choice,omitempty"` // a mode, or a chatTool with a name alone
	Tools               []chatTool    `json:"tools,omitempty"`
	Stream              bool          `json:"stream"`
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
	chatThoughts
}

type chatToolCall struct {
	ID       string `json:"id"`
	Function struct {
		Arguments string `json:"arguments"`
		Name      string `json:"name"`
	} `json:"function"`
	Type string `json:"type"`
	chatSignature
}

// chatThoughts are the members of a message in which servers send thoughts, and want them back. The
// API of OpenAI has none of them.
type chatThoughts struct {
	ReasoningContent json.RawMessage `json:"reasoning_content,omitempty"` // DeepSeek, Kimi, Qwen, vLLM
	Reasoning        json.RawMessage `json:"reasoning,omitempty"`         // OpenRouter, Ollama
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"` // OpenRouter, with signatures
}

// chatSignature is the member of a call that Gemini signs it with, and wants back with each call.
type chatSignature struct {
	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
}

// chatKept is the content of a [model.Opaque]: the parts of a message that go back unchanged.
type chatKept struct {
	chatThoughts
	Calls []chatKeptCall `json:"tool_calls,omitempty"`
}

type chatKeptCall struct {
	ID string `json:"id"`
	chatSignature
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

func (c *chat) request(req *model.Request) *chatRequest {
	p := &chatRequest{Messages: c.messages(req), Model: c.id, StreamOptions: chatOptions{IncludeUsage: true}, Stream: true}
	if c.official {
		p.MaxCompletionTokens = c.tokens(req)
	} else {
		p.MaxTokens = c.tokens(req) // the name that all other servers know
	}
	if !c.reasons() {
		p.Temperature, p.Stop = req.Temperature, req.Stop
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

func (c *chat) messages(req *model.Request) []chatMessage {
	out := []chatMessage{}
	if req.System != "" {
		out = append(out, chatMessage{Content: req.System, Role: "system"})
	}
	last := 0 // the last message with text from the user
	for i, m := range req.Messages {
		if _, others := partition(m.Parts); m.Role == model.User && len(others) > 0 {
			last = i
		}
	}
	for i, m := range req.Messages {
		if m.Role == model.Assistant {
			if a := c.assistant(&m, i > last); a.Content != nil || a.ToolCalls != nil {
				out = append(out, a)
			}
			continue
		}
		results, others := partition(m.Parts)
		var media []model.Part
		for _, r := range results {
			text, more := c.resultText(r)
			out = append(out, chatMessage{Content: text, ToolCallID: callID(r.ID), Role: "tool"})
			media = append(media, more...)
		}
		if parts := append(media, others...); len(parts) > 0 {
			out = append(out, chatMessage{Content: c.content(parts), Role: "user"})
		}
	}
	return out
}

// assistant returns a message from the model. Some models need the thoughts that led to their calls
// until the next text from the user; signatures are always sent back.
func (c *chat) assistant(m *model.Message, thoughts bool) chatMessage {
	a := chatMessage{Role: "assistant"}
	if text := m.Text(); text != "" {
		a.Content = text
	}
	calls := m.Calls()
	for _, call := range calls {
		sent := chatToolCall{ID: callID(call.ID), Type: "function"}
		sent.Function.Name, sent.Function.Arguments = toolName(call.Name), string(object(call.Arguments))
		a.ToolCalls = append(a.ToolCalls, sent)
	}
	for _, p := range m.Parts {
		var kept chatKept
		if len(calls) == 0 || p.Opaque == nil || p.Opaque.Provider != c.provider || decode(p.Opaque.Data, &kept) != nil {
			continue
		}
		if thoughts {
			a.chatThoughts = kept.chatThoughts
		}
		for _, signed := range kept.Calls {
			for i, call := range calls {
				if call.ID == signed.ID {
					a.ToolCalls[i].chatSignature = signed.chatSignature
				}
			}
		}
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
