package everything

import (
	"context"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/mcp"
)

// named is the form that asks for a name.
type named struct {
	Name string `json:"name" doc:"Your name"`
}

// addRounds adds the tools with which the conformance suite tests multi-round calls
// (2026-07-28, basic/patterns, MRTR). Toward older revisions the same handlers wait
// for their answers.
func addRounds(srv *mcp.Server) {
	tool := func(name, description string, h func(context.Context) (string, error)) {
		mcp.AddTool(srv, mcp.Tool{Name: "test_input_required_result_" + name, Description: description, Annotations: harmless},
			func(ctx context.Context, _ none) (string, error) { return h(ctx) })
	}
	tool("elicitation", "Greets the user by name, after asking for it.", greet)
	tool("tampered_state", "Greets the user by name; a changed requestState is refused.", greet)
	tool("capabilities", "Asks the questions that the client declares it can answer.", askWhatWorks)
	tool("sampling", "Asks the client's model for a capital.", func(ctx context.Context) (string, error) {
		res, err := sample(ctx, "What is the capital of France?", mcp.QuestionKey("capital"))
		if err != nil {
			return "", err
		}
		return "Model response: " + res.Text(), nil
	})
	tool("list_roots", "Asks for the client's roots.", func(ctx context.Context) (string, error) {
		roots, err := mcp.Roots(ctx, mcp.QuestionKey("roots"))
		if err != nil {
			return "", err
		}
		return "Roots: " + rootNames(roots), nil
	})
	tool("request_state", "Remembers something while it asks.", func(ctx context.Context) (string, error) {
		const want = 42
		kept, err := mcp.Once(ctx, "kept", func(context.Context) (int, error) { return want, nil })
		if err != nil {
			return "", err
		}
		ok, err := mcp.Confirm(ctx, "Continue?", mcp.QuestionKey("confirm"))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("state-ok: %t, confirmed: %t", kept == want, ok), nil
	})
	tool("multiple_inputs", "Asks the user, the model and for roots, in one round.", askAll)
	tool("multi_round", "Asks for a name, then for a colour.", func(ctx context.Context) (string, error) {
		who, err := mcp.Elicit[named](ctx, "What is your name?", mcp.QuestionKey("step1"))
		if err != nil {
			return "", err
		}
		type colour struct {
			Color string `json:"color" doc:"Your favourite colour"`
		}
		likes, err := mcp.Elicit[colour](ctx, fmt.Sprintf("What is your favourite colour, %s?", who.Name), mcp.QuestionKey("step2"))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s likes %s.", who.Name, likes.Color), nil
	})
}

func greet(ctx context.Context) (string, error) {
	who, err := mcp.Elicit[named](ctx, "What is your name?", mcp.QuestionKey("user_name"))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Hello, %s!", who.Name), nil
}

// askAll asks all its questions before it looks at an error, so that they travel
// in one round.
func askAll(ctx context.Context) (string, error) {
	who, err1 := mcp.Elicit[named](ctx, "What is your name?", mcp.QuestionKey("user_name"))
	hello, err2 := sample(ctx, "Write a greeting.", mcp.QuestionKey("greeting"))
	roots, err3 := mcp.Roots(ctx, mcp.QuestionKey("client_roots"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %s (roots: %s)", who.Name, hello.Text(), rootNames(roots)), nil
}

// askWhatWorks tries the richest question first, and finally none.
func askWhatWorks(ctx context.Context) (string, error) {
	who, err := mcp.Elicit[named](ctx, "What is your name?", mcp.QuestionKey("user_name"))
	if err == nil {
		return fmt.Sprintf("Hello, %s!", who.Name), nil
	}
	if !errors.Is(err, mcp.ErrNotSupported) {
		return "", err
	}
	hello, err := sample(ctx, "Write a greeting.", mcp.QuestionKey("greeting"))
	if err == nil {
		return hello.Text(), nil
	}
	if !errors.Is(err, mcp.ErrNotSupported) {
		return "", err
	}
	return "Hello, whoever you are!", nil
}
