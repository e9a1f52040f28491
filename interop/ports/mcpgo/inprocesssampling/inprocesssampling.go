// Package inprocesssampling is the port of mcp-go's examples/inprocess_sampling: sampling within one
// process.
package inprocesssampling

import (
	"context"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Question struct {
	Question string `json:"question" doc:"The question to ask the LLM"`
	System   string `json:"system_prompt,omitempty" doc:"Optional system prompt" default:"You are a helpful assistant."`
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

func NewServer() *mcp.Server {
	srv := &mcp.Server{Name: "inprocess-sampling-example", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "ask_llm", Description: "Ask the LLM a question using sampling"}, ask)
	return srv
}

func mock(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
	text := fmt.Sprintf("Mock LLM response to: '%s'", r.Messages[0].Content[0].(mcp.TextContent).Text)
	return &mcp.SampleResult{Role: "assistant", Content: []mcp.Content{mcp.Text(text)}, Model: "mock-llm-v1", StopReason: "endTurn"}, nil
}

func Main() {
	ctx := context.Background()
	s, err := (&mcp.Client{Name: "inprocess-sampling-client", Version: "1.0.0", OnSample: mock}).Open(ctx, NewServer())
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	text, err := mcp.CallAs[string](ctx, s, "ask_llm", Question{"What is the capital of France?", "You are a helpful geography assistant."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("Tool result:", text)
}
