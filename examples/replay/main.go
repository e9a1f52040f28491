// Command replay is a server whose test plays a recording: everything that a client sent once, with the
// answers that it got. The test is the point; see main_test.go.
//
//	patchbay call translate word=cat --trace session.jsonl -- go run ./examples/replay
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

var dictionary = map[string]string{"cat": "chat", "dog": "chien"}

type Word struct {
	Word string `json:"word"`
}

func translate(_ context.Context, in Word) (string, error) {
	french, ok := dictionary[in.Word]
	if !ok {
		return "", fmt.Errorf("no word %q; the dictionary has cat and dog", in.Word)
	}
	return french, nil
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "dictionary", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "translate", Description: "Translate into French"}, translate)
	return srv
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
