package provider

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider/internal/toolschema"
)

// response is a client of the Responses API of OpenAI. It asks the server to store nothing:
// thoughts travel in encrypted form. The API does not have [model.Request.Stop].
type response struct{ *client }

func (c *response) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	x := &exchange{client: c.client, ctx: ctx, emit: emit, req: req, events: responseEvents, path: "responses"}
	a := responseAnswer{x: x, model: c.id}
	err := x.stream(func(r refusals) any { return c.request(req, r) }, a.add)
	switch {
	case a.failure != nil:
		err = a.failure
	case err == nil && !a.ended:
		err = x.brokeOff()
	}
	a.usage = x.used(a.usage, err)
	return a.response(), err
}

// responseRequest is the request of the Responses API, as far as it is used here.
type responseRequest struct {
	Instructions    string          `json:"instructions,omitempty"`
	MaxOutputTokens int64           `json:"max_output_tokens,omitempty"`
	Store           bool            `json:"store"`
	Temperature     *float64        `json:"temperature,omitempty"`
	TopP            *float64        `json:"top_p,omitempty"`
	Reasoning       *responseEffort `json:"reasoning,omitempty"`
	Include         []string        `json:"include,omitempty"`
	Input           []any           `json:"input"` // of inputMessage, inputCall, inputResult and json.RawMessage
	Model           string          `json:"model"`
	Text            *responseText   `json:"text,omitempty"`
	ToolChoice      any             `json:"tool_choice,omitempty"` // a mode, or a responseChoice
	Tools           []responseTool  `json:"tools,omitempty"`
	Stream          bool            `json:"stream"`
}

type responseEffort struct {
	Effort model.Effort `json:"effort"`
}

type responseText struct {
	Format responseFormat `json:"format"`
}

type responseFormat struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Type   string          `json:"type"`
}

type responseChoice struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type responseTool struct {
	Strict      bool           `json:"strict"`
	Parameters  map[string]any `json:"parameters"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Type        string         `json:"type"`
}

type inputMessage struct {
	Content any    `json:"content"` // a string or []inputContent
	Role    string `json:"role"`
}

type inputContent struct {
	Text     string `json:"text,omitempty"`
	Detail   string `json:"detail,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	FileData string `json:"file_data,omitempty"`
	Filename string `json:"filename,omitempty"`
	Type     string `json:"type"`
}

type inputCall struct {
	Arguments string `json:"arguments"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Type      string `json:"type"`

	more members
}

func (c inputCall) MarshalJSON() ([]byte, error) {
	type plain inputCall
	object, err := encode(plain(c))
	return c.more.addTo(object), err
}

type inputResult struct {
	Output []inputContent `json:"output"`
	CallID string         `json:"call_id"`
	Type   string         `json:"type"`
}

func (c *response) request(req *model.Request, refused refusals) *responseRequest {
	system := req.System
	if req.Schema != nil && refused["text"] {
		system = inWords(system, req.Schema)
	}
	p := &responseRequest{Instructions: system, Input: c.items(req.Messages), Model: c.id, Stream: true}
	if c.official && c.reasons() {
		p.Include = []string{"reasoning.encrypted_content"}
	}
	if n := c.tokens(req); n > 0 {
		p.MaxOutputTokens = max(n, 16) // the API refuses fewer
	}
	if c.samples(req) {
		p.Temperature, p.TopP = req.Temperature, req.TopP
	}
	if e := c.effort(req); e != "" && !refused[noEffort(e)] {
		p.Reasoning = &responseEffort{e}
	}
	if isObject(req.Schema) {
		p.Text = &responseText{responseFormat{Name: "answer", Schema: req.Schema, Type: "json_schema"}}
	}
	for _, t := range req.Tools {
		schema, words := toolschema.Adapt(t.Schema, !c.official)
		p.Tools = append(p.Tools, responseTool{Parameters: schema, Name: t.Name, Description: describe(t.Description, words), Type: "function"})
	}
	if len(p.Tools) > 0 {
		switch req.Choice.Mode {
		case "none", "required":
			p.ToolChoice = req.Choice.Mode
		case "tool":
			p.ToolChoice = responseChoice{Name: req.Choice.Tool, Type: "function"}
		}
	}
	return p
}

func (c *response) items(messages []model.Message) []any {
	out := []any{}
	for _, m := range messages {
		if m.Role == model.Assistant {
			whole := len(out) // up to the last item that is not a thought: no thought may stand at the end
			for _, p := range m.Parts {
				item := c.said(p)
				if item == nil {
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
			output := c.content(r.Parts, "")
			if len(output) == 0 {
				output = []inputContent{{Text: "(empty)", Type: "input_text"}}
			}
			out = append(out, inputResult{Output: output, CallID: callID(r.ID), Type: "function_call_output"})
		}
		if content := c.content(others, "auto"); len(content) > 0 {
			out = append(out, inputMessage{Content: content, Role: "user"})
		}
	}
	return out
}

// said returns the item for a part of the model's message, or nil if it cannot be sent.
func (c *response) said(p model.Part) any {
	switch {
	case p.Text != "":
		return inputMessage{Content: p.Text, Role: "assistant"}
	case p.Call != nil:
		return inputCall{Arguments: string(object(p.Call.Arguments)), CallID: callID(p.Call.ID), Name: toolName(p.Call.Name), Type: "function_call", more: c.kept(p.Call.Opaque)}
	case p.Opaque != nil && p.Opaque.Provider == c.provider:
		var thought struct {
			Encrypted string `json:"encrypted_content"`
			Content   []any  `json:"content"`
		}
		if json.Unmarshal(p.Opaque.Data, &thought) != nil || thought.Encrypted == "" && len(thought.Content) == 0 {
			return nil // the server has not kept it
		}
		return p.Opaque.Data
	}
	return nil
}

// content returns the texts and media of a message or a result. The argument detail applies to
// pictures.
func (c *response) content(parts []model.Part, detail string) []inputContent {
	var out []inputContent
	for _, p := range parts {
		switch m := p.Media; {
		case m == nil && p.Text == "":
		case m == nil:
			out = append(out, inputContent{Text: p.Text, Type: "input_text"})
		case c.formOf(m) == asImage:
			out = append(out, inputContent{Detail: detail, ImageURL: dataURL(m), Type: "input_image"})
		case c.formOf(m) == asFile:
			out = append(out, inputContent{FileData: dataURL(m), Filename: fileName(m), Type: "input_file"})
		default:
			out = append(out, inputContent{Text: mediaText(m), Type: "input_text"})
		}
	}
	return out
}
