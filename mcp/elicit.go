package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/schema"
)

// elicit asks the user with OnElicit and checks the answer against the form.
func (c *Client) elicit(ctx context.Context, user *usercode.Runner, params json.RawMessage) (json.RawMessage, error) {
	var w struct {
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requestedSchema"`
		URL     string          `json:"url"`
		Mode    string          `json:"mode"`
	}
	if err := jsonx.Unmarshal(jsonx.OrObject(params), &w); err != nil {
		return nil, Errorf(jsonrpc.CodeInvalidParams, "elicitation: %v", err)
	}
	if w.Mode != "" && w.Mode != "form" && w.Mode != "url" {
		return nil, Errorf(jsonrpc.CodeInvalidParams, "elicitation: unknown mode %q", text.Short(w.Mode))
	}
	var res *ElicitResult
	err := user.Run(ctx, "Client.OnElicit", func() (err error) {
		res, err = c.OnElicit(ctx, &ElicitRequest{w.Message, w.Schema, w.URL})
		return err
	})
	switch {
	case errors.Is(err, ErrDeclined):
		res = &ElicitResult{Action: "decline"}
	case errors.Is(err, ErrDismissed):
		res = &ElicitResult{Action: "cancel"}
	case err != nil:
		return nil, err
	}
	if res == nil {
		return nil, errors.New("elicitation: OnElicit returned neither an answer nor an error")
	}
	answer := struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content,omitzero"`
	}{Action: res.Action}
	switch res.Action {
	case "accept":
		if w.Mode == "url" {
			break
		}
		if answer.Content, err = fillIn(w.Schema, res.Content); err != nil {
			return nil, fmt.Errorf("elicitation: the answer of OnElicit: %w", err)
		}
	case "decline", "cancel":
	default:
		return nil, fmt.Errorf("elicitation: OnElicit returned the action %q; use accept, decline or cancel", res.Action)
	}
	return jsonx.Marshal(answer)
}

// fillIn adds the form's defaults for values that an answer leaves out (ELIC-25: clients
// pre-populate forms with the defaults), and checks that the whole fits the form.
func fillIn(raw json.RawMessage, content map[string]any) (map[string]any, error) {
	out := map[string]any{}
	values := map[string]json.RawMessage{}
	for k, v := range content {
		b, err := jsonx.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", k, err)
		}
		out[k], values[k] = v, b
	}
	form, err := schema.FormOf(raw)
	if err != nil {
		return out, nil // a form that cannot be read has no defaults; the server checks
	}
	for k, v := range form.Defaults() {
		if _, ok := out[k]; !ok {
			out[k], values[k] = v, v
		}
	}
	return out, form.Check(values)
}
