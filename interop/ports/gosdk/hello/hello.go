// Package hello is the port of go-sdk's examples/server/hello: a server with one tool, on the standard
// streams.
package hello

import (
	"context"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Person struct {
	Name string `json:"name" doc:"the person to greet"`
}

func greet(_ context.Context, in Person) (string, error) { return "Hi " + in.Name, nil }

func Main() {
	srv := &mcp.Server{Name: "greeter"}
	mcp.AddTool(srv, mcp.Tool{Name: "greet", Description: "say hi"}, greet)
	if err := srv.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
