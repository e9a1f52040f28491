package mcp

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/schema"
)

// elicit has the user asked by OnElicit and checks the answer against the form.
func (c *Client) elicit(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var w struct {
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requestedSchema"`
		URL     string          `json:"url"`
		Mode    string          `json:"mode"`
	}
	if err := jsonx.Unmarshal(orObject(params), &w); err != nil {
		return nil, Errorf(CodeInvalidParams, "elicitation: %v", err)
	}
	if w.Mode != "" && w.Mode != "form" && w.Mode != "url" {
		return nil, Errorf(CodeInvalidParams, "elicitation: unknown mode %q", clip(w.Mode))
	}
	res, err := c.OnElicit(ctx, &ElicitRequest{w.Message, w.Schema, w.URL})
	if err != nil {
		return nil, err
	}
	answer := struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content,omitzero"`
	}{Action: res.Action}
	if res.Action == "accept" && w.Mode != "url" {
		answer.Content = withDefaults(w.Schema, res.Content)
	}
	return jsonx.Marshal(answer)
}

// withDefaults fills in what an answer leaves out and the form has a default for
// (ELIC-25: clients pre-populate forms with the defaults).
func withDefaults(form json.RawMessage, content map[string]any) map[string]any {
	f, err := schema.FormOf(form)
	if err != nil {
		return content // a form that nobody can read has no defaults
	}
	out := map[string]any{}
	for k, v := range content {
		out[k] = v
	}
	for _, field := range f.Fields {
		if _, ok := out[field.Name]; !ok && field.Default != nil {
			out[field.Name] = field.Default
		}
	}
	return out
}
