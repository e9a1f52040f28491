// Command http serves MCP beside other pages of an HTTP server, and ends when it is interrupted:
// calls in progress have ten seconds to finish.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/endpoint"
)

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "kitchen", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "cook"}, func(ctx context.Context, in struct {
		For time.Duration `json:"for,omitempty" default:"1s" doc:"such as 500ms"`
	}) (string, error) {
		select {
		case <-time.After(in.For):
			return "done", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	return srv
}

// newEndpoint returns the server at /mcp, /healthz and /readyz, and beside it the other pages.
func newEndpoint(srv *mcp.Server) *endpoint.HTTP {
	pages := http.NewServeMux()
	pages.HandleFunc("GET /menu", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "soup") })
	return &endpoint.HTTP{Server: srv, Handler: pages}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log.Println("http://127.0.0.1:7420/mcp")
	if err := newEndpoint(newServer()).ListenAndServe(ctx, "127.0.0.1:7420"); err != nil {
		log.Fatal(err)
	}
}
