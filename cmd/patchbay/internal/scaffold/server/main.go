// Command projectname is an MCP server with a tool and a resource. It serves its standard streams, as
// hosts start it, or with --http an address:
//
//	go run . --http 127.0.0.1:7420
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"syscall"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/endpoint"
)

// person holds the arguments of the tool greet. The tags make its schema, and check each call.
type person struct {
	Name   string `json:"name" doc:"name of the person to greet" min:"1" max:"100"`
	Formal bool   `json:"formal,omitempty" doc:"greet formally"`
}

func greet(ctx context.Context, in person) (string, error) {
	if in.Formal {
		return "Good day, " + in.Name + ".", nil
	}
	return "Hello, " + in.Name + "!", nil
}

func about(ctx context.Context) (string, error) {
	return "projectname greets people, formally or not.", nil
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "projectname", Version: "0.1.0"}
	mcp.AddTool(srv, mcp.Tool{
		Name:        "greet",
		Description: "Greet a person",
		Annotations: &mcp.ToolAnnotations{ReadOnly: new(true)},
	}, greet)
	mcp.AddResource(srv, mcp.Resource{URI: "projectname://about", Name: "about", Description: "The purpose of this server"}, about)
	return srv
}

// newEndpoint makes the server over HTTP, at /mcp, with /healthz and /readyz beside it.
func newEndpoint() *endpoint.HTTP { return &endpoint.HTTP{Server: newServer()} }

// run serves until ctx ends, or the client closes the standard streams.
func run(ctx context.Context, address string) error {
	if address != "" {
		log.Printf("serving http://%s/mcp", address)
		return newEndpoint().ListenAndServe(ctx, address)
	}
	err := newServer().ServeStdio(ctx)
	if ctx.Err() != nil {
		return nil // interrupted
	}
	return err
}

func main() {
	address := flag.String("http", "", "serve Streamable HTTP on this `address`, such as 127.0.0.1:7420")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unknown argument %q; see --help", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address); err != nil {
		log.Fatal(err)
	}
}
