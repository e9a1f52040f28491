package everything

import (
	"context"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

func addPrompts(srv *mcp.Server) {
	mcp.AddPrompt(srv, mcp.Prompt{Name: "test_simple_prompt", Description: "A prompt without arguments."},
		func(context.Context, none) (string, error) { return "This is a simple prompt for testing.", nil })

	type args struct {
		Arg1 string `json:"arg1" doc:"first argument, with completion"`
		Arg2 string `json:"arg2" doc:"second argument"`
	}
	mcp.AddPrompt(srv, mcp.Prompt{
		Name: "test_prompt_with_arguments", Description: "A prompt with two arguments.",
		Complete: map[string]mcp.CompleteFunc{"arg1": completeWord},
	}, func(_ context.Context, in args) (string, error) {
		return fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", in.Arg1, in.Arg2), nil
	})

	type uri struct {
		URI string `json:"resourceUri" doc:"the URI to show the resource under"`
	}
	mcp.AddPrompt(srv, mcp.Prompt{Name: "test_prompt_with_embedded_resource", Description: "A prompt that carries a resource."},
		func(_ context.Context, in uri) ([]mcp.PromptMessage, error) {
			return []mcp.PromptMessage{
				{Role: "user", Content: mcp.EmbeddedResource{Resource: mcp.ResourceContents{
					URI: in.URI, MIMEType: "text/plain", Text: "Embedded resource content for testing.",
				}}},
				mcp.User("Please process the embedded resource above."),
			}, nil
		})

	mcp.AddPrompt(srv, mcp.Prompt{Name: "test_prompt_with_image", Description: "A prompt that carries a picture."},
		func(context.Context, none) ([]mcp.PromptMessage, error) {
			return []mcp.PromptMessage{
				{Role: "user", Content: mcp.ImageContent{Data: picture(), MIMEType: "image/png"}},
				mcp.User("Please describe the picture above."),
			}, nil
		})

	type subject struct {
		Context string `json:"context" doc:"What the prompt should be about"`
	}
	mcp.AddPrompt(srv, mcp.Prompt{Name: "test_input_required_result_prompt", Description: "A prompt that asks the user what it should be about."},
		func(ctx context.Context, _ none) (string, error) {
			about, err := mcp.Elicit[subject](ctx, "What should the prompt be about?", mcp.QuestionKey("user_context"))
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("Tell me about %s.", about.Context), nil
		})
}

// completeWord suggests words for arg1.
func completeWord(_ context.Context, prefix string, _ map[string]string) ([]string, error) {
	words := []string{}
	for _, w := range []string{"paris", "park", "party", "patch", "pattern"} {
		if strings.HasPrefix(w, prefix) {
			words = append(words, w)
		}
	}
	return words, nil
}
