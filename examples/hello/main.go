// Command hello is the smallest server. It serves the program that starts it:
//
//	patchbay call greet name=Ada -- go run ./examples/hello
package main

import (
	"context"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Person struct {
	Name string `json:"name" doc:"name to greet"`
}

func greet(ctx context.Context, in Person) (string, error) { return "Hello, " + in.Name, nil }

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "hello", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "greet", Description: "Greet a person"}, greet)
	return srv
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
