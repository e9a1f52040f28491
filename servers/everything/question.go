package everything

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

// addQuestions adds the tools that ask one question each.
func addQuestions(srv *mcp.Server) {
	type prompt struct {
		Prompt string `json:"prompt" doc:"what to ask the model"`
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "test_sampling", Description: "Has the client's language model answer a prompt.", Annotations: harmless,
	}, func(ctx context.Context, in prompt) (string, error) {
		res, err := sample(ctx, in.Prompt)
		if err != nil {
			return "", err
		}
		return "LLM response: " + res.Text(), nil
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "test_missing_capability", Description: "Needs a client with sampling; any other gets the error that says so.", Annotations: harmless,
	}, func(ctx context.Context, _ none) (string, error) {
		res, err := sample(ctx, "Say hello.")
		if err != nil {
			return "", err
		}
		return res.Text(), nil
	})

	type message struct {
		Message string `json:"message" doc:"what to show to the user"`
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "test_elicitation", Description: "Asks the user for a name and an address.", Annotations: harmless,
	}, func(ctx context.Context, in message) (string, error) { return elicit(ctx, in.Message, userForm) })

	for _, t := range []struct{ name, description, message, form string }{
		{"test_elicitation_sep1034_defaults", "Asks with a form whose fields have defaults.", "Check the values, then accept.", defaultsForm},
		{"test_elicitation_sep1330_enums", "Asks with a form of every kind of choice.", "Choose.", enumsForm},
		{"test_streaming_elicitation", "Asks the user for a name and an address, with progress before.", "Who are you?", userForm},
	} {
		mcp.AddTool(srv, mcp.Tool{Name: t.name, Description: t.description, Annotations: harmless},
			func(ctx context.Context, _ none) (string, error) {
				mcp.Progress(ctx, 0, 1, "asking")
				return elicit(ctx, t.message, t.form)
			})
	}

	type page struct {
		URL string `json:"url,omitempty" doc:"the page to visit" default:"https://modelcontextprotocol.io/" format:"uri"`
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "visit_page", Title: "Visit a page", Description: "Asks the user to open a page in a browser (since 2025-11-25).", Annotations: harmless,
	}, func(ctx context.Context, in page) (string, error) {
		err := mcp.ElicitURL(ctx, "Please open this page.", in.URL)
		switch {
		case errors.Is(err, mcp.ErrDeclined), errors.Is(err, mcp.ErrDismissed):
			return "The user did not want to.", nil
		case err != nil:
			return "", err
		}
		return "The user agreed to open the page.", nil
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "list_roots", Title: "List roots", Description: "Lists the roots of the client.", Annotations: harmless,
	}, func(ctx context.Context, _ none) (string, error) {
		roots, err := mcp.Roots(ctx)
		if err != nil {
			return "", err
		}
		return "Roots: " + rootNames(roots), nil
	})

	mcp.AddTool(srv, mcp.Tool{
		Name: "lucky_number", Title: "Lucky number",
		Description: "Draws a number and asks whether to keep it. The number is drawn once, however often the call is sent.",
		Annotations: harmless,
	}, luckyNumber)
}

func luckyNumber(ctx context.Context, _ none) (string, error) {
	n, err := mcp.Once(ctx, "number", func(context.Context) (int, error) { return 1 + rand.IntN(99), nil })
	if err != nil {
		return "", err
	}
	keep, err := mcp.Confirm(ctx, fmt.Sprintf("Keep the number %d?", n))
	switch {
	case errors.Is(err, mcp.ErrDeclined), errors.Is(err, mcp.ErrDismissed):
		keep = false
	case err != nil:
		return "", err
	}
	if !keep {
		return fmt.Sprintf("%d was thrown away.", n), nil
	}
	return fmt.Sprintf("%d is yours.", n), nil
}

// sample asks the client's model a question of one sentence.
func sample(ctx context.Context, text string, opts ...mcp.AskOption) (*mcp.SampleResult, error) {
	return mcp.Sample(ctx, &mcp.SampleRequest{
		Messages:  []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text(text)}}},
		MaxTokens: 100,
	}, opts...)
}

// elicit asks with a form and describes the answer.
func elicit(ctx context.Context, message, form string) (string, error) {
	res, err := mcp.ElicitForm(ctx, message, json.RawMessage(form))
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(res.Content)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Elicitation completed: action=%s, content=%s", res.Action, content), nil
}

func rootNames(roots []mcp.Root) string {
	if len(roots) == 0 {
		return "none"
	}
	uris := make([]string, len(roots))
	for i, r := range roots {
		uris[i] = r.URI
	}
	return strings.Join(uris, ", ")
}

const userForm = `{
	"type": "object",
	"properties": {
		"username": {"type": "string", "description": "Your name"},
		"email": {"type": "string", "description": "Your address"}
	},
	"required": ["username", "email"]
}`

// defaultsForm has a default in each kind of field (SEP-1034).
const defaultsForm = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "description": "Name", "default": "John Doe"},
		"age": {"type": "integer", "description": "Age in years", "default": 30},
		"score": {"type": "number", "description": "Score", "default": 95.5},
		"status": {"type": "string", "description": "Status", "enum": ["active", "inactive", "pending"], "default": "active"},
		"verified": {"type": "boolean", "description": "Verified", "default": true}
	}
}`

// enumsForm has a choice in each notation (SEP-1330), the legacy one included,
// which Go types do not produce.
const enumsForm = `{
	"type": "object",
	"properties": {
		"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
		"titledSingle": {"type": "string", "oneOf": [
			{"const": "value1", "title": "First option"},
			{"const": "value2", "title": "Second option"}
		]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option one", "Option two"]},
		"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
		"titledMulti": {"type": "array", "items": {"anyOf": [
			{"const": "value1", "title": "First choice"},
			{"const": "value2", "title": "Second choice"}
		]}}
	}
}`
