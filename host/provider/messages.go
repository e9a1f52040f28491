package provider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider/internal/toolschema"
)

// messages is a client of the Messages API of Anthropic.
type messages struct{ *client }

func (c *messages) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	asked := *req
	whole := &model.Response{Message: model.Message{Role: model.Assistant}}
	for pauses := 0; ; pauses++ {
		x := &exchange{client: c.client, ctx: ctx, emit: emit, req: &asked, events: messageEvents, path: "messages"}
		a := messagesAnswer{x: x, model: c.id}
		err := x.stream(func(r refusals) any { return c.request(&asked, r) }, a.add)
		if err == nil && !a.ended {
			err = x.brokeOff()
		}
		a.usage = x.used(a.usage, err)
		part := a.response()
		whole.Message.Parts = append(whole.Message.Parts, part.Message.Parts...)
		whole.Usage.Add(part.Usage)
		whole.Stop, whole.Model = part.Stop, part.Model
		if err != nil || a.stop != "pause_turn" || a.calls > 0 || len(part.Message.Parts) == 0 || pauses == maxPauses {
			return whole, err
		}
		asked.Messages = append(slices.Clip(asked.Messages), part.Message)
	}
}

// maxPauses is how many times the server may pause in an answer, while its own tools run. An answer with
// a pause goes back as it is, to be continued.
const maxPauses = 10

// messagesRequest is the request of the Messages API, as far as it is used here.
type messagesRequest struct {
	MaxTokens     int64           `json:"max_tokens"`
	Messages      []message       `json:"messages"`
	Model         string          `json:"model"`
	Temperature   *float64        `json:"temperature,omitempty"`
	TopP          *float64        `json:"top_p,omitempty"`
	Thinking      *thinking       `json:"thinking,omitempty"`
	OutputConfig  *messagesOutput `json:"output_config,omitempty"`
	StopSequences []string        `json:"stop_sequences,omitempty"`
	System        []block         `json:"system,omitempty"`
	ToolChoice    *messagesChoice `json:"tool_choice,omitempty"`
	Tools         []messagesTool  `json:"tools,omitempty"`
	Stream        bool            `json:"stream"`
}

type messagesOutput struct {
	Format *messagesFormat `json:"format,omitempty"`
	Effort model.Effort    `json:"effort,omitempty"`
}

type messagesFormat struct {
	Schema json.RawMessage `json:"schema"`
	Type   string          `json:"type"`
}

type messagesChoice struct {
	Name string `json:"name,omitempty"`
	Type string `json:"type"`
}

type messagesTool struct {
	InputSchema  map[string]any `json:"input_schema"`
	Name         string         `json:"name"`
	CacheControl *cacheControl  `json:"cache_control,omitempty"`
	Description  string         `json:"description,omitempty"`
}

type message struct {
	Content []block `json:"content"`
	Role    string  `json:"role"`
}

// block is a block of content of any type that is sent. A block of another type goes back as it came.
type block struct {
	ID           string          `json:"id,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	Name         string          `json:"name,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	Text         string          `json:"text,omitempty"`
	Source       *source         `json:"source,omitempty"`
	Title        string          `json:"title,omitempty"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
	Content      []block         `json:"content,omitempty"`
	Type         string          `json:"type"`

	raw  json.RawMessage // of a block of the model, such as a thought: sent in place of the rest
	kind string          // the type of raw
	more members
}

func (b block) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type plain block
	object, err := encode(plain(b))
	return b.more.addTo(object), err
}

// source is a picture or a file.
type source struct {
	Data      string `json:"data"`
	MediaType string `json:"media_type"`
	Type      string `json:"type"`
}

// cacheControl marks the end of what the provider keeps for the next request.
type cacheControl struct {
	Type string `json:"type"`
}

var ephemeral = &cacheControl{"ephemeral"}

func textBlock(text string) block { return block{Text: text, Type: "text"} }

func (c *messages) request(req *model.Request, refused refusals) *messagesRequest {
	p := &messagesRequest{
		MaxTokens:     c.tokens(req),
		Messages:      c.messages(req.Messages),
		Model:         c.id,
		TopP:          req.TopP,
		StopSequences: req.Stop,
		Stream:        true,
	}
	if p.MaxTokens == 0 {
		p.MaxTokens = longest(c.id)
	}
	if req.Temperature != nil {
		t := min(*req.Temperature, 1)
		p.Temperature = &t
	}
	system := req.System
	switch {
	case req.Schema == nil:
	case takesSchema(c.id, req.Schema) && !refused["output_config"]:
		p.OutputConfig = &messagesOutput{Format: &messagesFormat{Schema: req.Schema, Type: "json_schema"}}
	default:
		system = inWords(system, req.Schema)
	}
	if system != "" {
		p.System = []block{{Text: system, CacheControl: ephemeral, Type: "text"}}
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
		p.Tools[n-1].CacheControl = ephemeral
		mode := req.Choice.Mode
		if len(req.Tools) == 0 {
			mode = "none"
		}
		switch mode {
		case "none":
			p.ToolChoice = &messagesChoice{Type: "none"}
		case "required":
			p.ToolChoice = &messagesChoice{Type: "any"}
		case "tool":
			p.ToolChoice = &messagesChoice{Name: req.Choice.Tool, Type: "tool"}
		}
	}
	if e := c.effort(req); e != "" && !refused[noEffort(e)] {
		c.think(p, e, refused)
	}
	return p
}

// longest returns the maximum number of tokens of an answer, which the API requires.
func longest(id string) int64 {
	switch {
	case strings.HasPrefix(id, "claude-3-5"), strings.HasPrefix(id, "claude-3-7"):
		return 8192
	case strings.HasPrefix(id, "claude-3"):
		return 4096
	}
	return 32_000
}

// takesSchema reports whether the API can enforce a schema of the answer. It supports closed
// objects and few keywords, on models of 2025-09 and later.
func takesSchema(id string, raw json.RawMessage) bool {
	for _, old := range []string{"claude-2", "claude-3", "claude-opus-4-0", "claude-opus-4-2025", "claude-sonnet-4-0", "claude-sonnet-4-2025"} {
		if strings.HasPrefix(id, old) {
			return false
		}
	}
	var schema map[string]any
	return json.Unmarshal(raw, &schema) == nil && schema != nil && closed(schema)
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

func tool(name, description string, raw json.RawMessage) messagesTool {
	schema, words := toolschema.Adapt(raw, false)
	return messagesTool{InputSchema: schema, Name: name, Description: describe(description, words)}
}

// called returns the names of the tools called in a conversation, each once.
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

func (c *messages) messages(in []model.Message) []message {
	out := []message{}
	for _, m := range in {
		role := "user"
		if m.Role == model.Assistant {
			role = "assistant"
		}
		results, others := partition(m.Parts)
		var blocks []block
		for _, r := range results { // the API requires them first
			blocks = append(blocks, c.result(r))
		}
		for _, p := range others {
			blocks = append(blocks, c.blocks(p)...)
		}
		for n := len(blocks); n > 0 && isThought(blocks[n-1].kind); n-- {
			blocks = blocks[:n-1] // a thought must not be the last block
		}
		if len(blocks) == 0 {
			if m.Role == model.Assistant {
				continue
			}
			blocks = append(blocks, textBlock("(empty)"))
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue
		}
		out = append(out, message{Role: role, Content: blocks})
	}
	if n := len(out); n > 0 {
		last := out[n-1].Content
		last[len(last)-1].CacheControl = ephemeral
	}
	return out
}

// blocks returns the block of a part, none if it cannot be sent.
func (c *messages) blocks(p model.Part) []block {
	switch {
	case p.Media != nil:
		return []block{c.medium(p.Media)}
	case p.Call != nil:
		return []block{{ID: callID(p.Call.ID), Input: object(p.Call.Arguments), Name: toolName(p.Call.Name), Type: "tool_use", more: c.kept(p.Call.Opaque)}}
	case p.Opaque != nil:
		var of struct{ Type string }
		if p.Opaque.Provider == c.provider && json.Unmarshal(p.Opaque.Data, &of) == nil && of.Type != "" {
			return []block{{raw: p.Opaque.Data, kind: of.Type}}
		}
	case strings.TrimSpace(p.Text) != "": // the API refuses empty text
		return []block{textBlock(p.Text)}
	}
	return nil
}

func isThought(kind string) bool { return kind == "thinking" || kind == "redacted_thinking" }

func (c *messages) result(r *model.Result) block {
	b := block{ToolUseID: callID(r.ID), IsError: r.Error, Type: "tool_result"}
	for _, p := range r.Parts {
		switch {
		case p.Media != nil:
			b.Content = append(b.Content, c.medium(p.Media))
		case strings.TrimSpace(p.Text) != "":
			b.Content = append(b.Content, textBlock(p.Text))
		}
	}
	if len(b.Content) == 0 {
		b.Content = []block{textBlock("(empty)")}
	}
	return b
}

func (c *messages) medium(m *model.Media) block {
	switch c.formOf(m) {
	case asImage:
		return block{Source: &source{base64.StdEncoding.EncodeToString(m.Data), m.MIME, "base64"}, Type: "image"}
	case asFile:
		return block{Source: &source{base64.StdEncoding.EncodeToString(m.Data), "application/pdf", "base64"}, Title: m.Name, Type: "document"}
	}
	return textBlock(mediaText(m))
}
