// Command summary has a tool that lets the model of its caller write: the server needs neither a
// model nor a key of its own.
package main

import (
	"context"
	"errors"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Article struct {
	Text string `json:"text"`
}

func summarise(ctx context.Context, in Article) (string, error) {
	res, err := mcp.Sample(ctx, &mcp.SampleRequest{
		SystemPrompt: "Answer with one sentence.",
		Messages:     []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("Summarise:\n" + in.Text)}}},
		MaxTokens:    200,
		Preferences:  &mcp.ModelPreferences{SpeedPriority: new(0.9)},
	})
	if errors.Is(err, mcp.ErrDeclined) {
		return "", errors.New("the user does not want a summary by a model; read the text itself")
	}
	if err != nil {
		return "", err
	}
	return res.Text(), nil
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "summary", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "summarise", Description: "Summarise a text in one sentence"}, summarise)
	return srv
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
