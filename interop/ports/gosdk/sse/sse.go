// Package sse is the port of go-sdk's examples/server/sse: two servers over HTTP+SSE at one address.
package sse

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Person struct {
	Name string `json:"name"`
}

func greeter(name, tool, description string) *mcp.Server {
	srv := &mcp.Server{Name: name}
	mcp.AddTool(srv, mcp.Tool{Name: tool, Description: description},
		func(_ context.Context, in Person) (string, error) { return "Hi " + in.Name, nil })
	return srv
}

func Main() {
	host := flag.String("host", "localhost", "host to listen on")
	port := flag.String("port", "8080", "port to listen on")
	flag.Parse()
	http.Handle("/greeter1", greeter("greeter1", "greet1", "say hi").SSE("/greeter1"))
	http.Handle("/greeter2", greeter("greeter2", "greet2", "say hello").SSE("/greeter2"))
	log.Printf("MCP servers at %s: /greeter1 and /greeter2", *host)
	log.Fatal(http.ListenAndServe(net.JoinHostPort(*host, *port), nil))
}
