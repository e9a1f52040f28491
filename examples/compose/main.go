// Command compose serves two servers as one. Their tools are named after them: morning_greet and
// evening_greet.
package main

import (
	"context"
	"errors"
	"log"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

func greeter(greeting string) *mcp.Server {
	srv := &mcp.Server{Name: "greeter", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "greet"}, func(context.Context, struct{}) (string, error) { return greeting, nil })
	return srv
}

func newServer() *mcp.Server {
	g := &gateway.Gateway{Name: "greeters", Version: "1.0.0"}
	if err := errors.Join(g.Set("morning", greeter("Good morning")), g.Set("evening", greeter("Good evening"))); err != nil {
		panic(err) // a name is empty
	}
	return &mcp.Server{Name: "greeters", Version: "1.0.0", Handler: g}
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
