// Package completion is the port of go-sdk's examples/server/completion. There, one function completes
// everything; here, each argument has its own, and the server can be called.
package completion

import (
	"context"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Argument struct {
	Value string `json:"value"`
}

func echo(_ context.Context, in Argument) (string, error) { return in.Value, nil }

func fixed(values ...string) map[string]mcp.CompleteFunc {
	return map[string]mcp.CompleteFunc{"value": func(context.Context, string, map[string]string) ([]string, error) { return values, nil }}
}

func Main() {
	srv := &mcp.Server{Name: "server"}
	mcp.AddPrompt(srv, mcp.Prompt{Name: "prompt", Complete: fixed("suggestion1", "suggestion2", "suggestion3")}, echo)
	mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{Name: "resource", URITemplate: "test://{value}", Complete: fixed("suggestion4", "suggestion5", "suggestion6")}, echo)
	if err := srv.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
