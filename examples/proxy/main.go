// Command proxy serves another server with changed tools: one has another name, one is hidden, one has
// a fixed argument. Everything else passes unchanged: questions, progress, resources, and any revision
// on either side.
//
//	go run ./examples/proxy patchbay serve shop
package main

import (
	"context"
	"log"
	"os"
	"os/exec"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
)

func newProxy(upstream mcp.Handler) *mcp.Server {
	srv := &mcp.Server{Name: "proxy", Version: "1.0.0", Handler: upstream}
	srv.Use(middleware.Tools(map[string]middleware.ToolChange{
		"place-order":    {Name: "buy", Description: "Buy one item"},
		"create-product": {Hidden: true},
		"products":       {Name: "tents", Description: "List the tents", Arguments: map[string]any{"category": "tents"}},
	}))
	return srv
}

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: proxy COMMAND [ARGUMENTS]")
	}
	ctx := context.Background()
	ask := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, mcp.ErrNotSupported }
	// OnElicit declares the capability; questions go to the caller of the proxy.
	client := &mcp.Client{Name: "proxy", Version: "1.0.0", OnElicit: ask}
	upstream, err := client.Start(ctx, exec.Command(os.Args[1], os.Args[2:]...))
	if err != nil {
		log.Fatal(err)
	}
	defer upstream.Close()
	if err := newProxy(upstream).ServeStdio(ctx); err != nil {
		log.Print(err)
	}
}
