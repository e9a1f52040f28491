// Package dynamicpath is the port of mcp-go's examples/dynamic_path: HTTP+SSE below a path for each
// tenant. Clients get the address of messages relative to their stream, so it needs no base URL.
package dynamicpath

import (
	"context"
	"flag"
	"log"
	"net/http"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Message struct {
	Message string `json:"message"`
}

func Main() {
	addr := flag.String("addr", ":8080", "address to listen on")
	flag.Parse()
	srv := &mcp.Server{Name: "dynamic-path-example", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "echo"},
		func(_ context.Context, in Message) (string, error) { return "Echo: " + in.Message, nil })
	h := srv.SSE("message")
	http.Handle("/api/{tenant}/sse", h)
	http.Handle("/api/{tenant}/message", h)
	log.Fatal(http.ListenAndServe(*addr, nil))
}
