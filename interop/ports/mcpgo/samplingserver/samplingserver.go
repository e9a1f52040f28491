// Package samplingserver is the port of mcp-go's examples/sampling_server: a tool that asks the model of
// the client.
package samplingserver

import (
	"context"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Question struct {
	Question string `json:"question" doc:"The question to ask the LLM"`
	System   string `json:"system_prompt,omitempty" doc:"Optional system prompt to provide context" default:"You are a helpful assistant."`
}

func ask(ctx context.Context, in Question) (string, error) {
	res, err := mcp.Sample(ctx, &mcp.SampleRequest{
		Messages:     []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text(in.Question)}}},
		SystemPrompt: in.System,
		MaxTokens:    1000,
		Temperature:  new(0.7),
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("LLM Response (model: %s): %s", res.Model, res.Text()), nil
}

type Person struct {
	Name string `json:"name" doc:"Name of the person to greet"`
}

func greet(_ context.Context, in Person) (string, error) {
	return fmt.Sprintf("Hello, %s! This server supports sampling - try using the ask_llm tool!", in.Name), nil
}

func Main() {
	srv := &mcp.Server{Name: "sampling-example-server", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "ask_llm", Description: "Ask the LLM a question using sampling"}, ask)
	mcp.AddTool(srv, mcp.Tool{Name: "greet", Description: "Greet the user"}, greet)
	if err := srv.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
