// Command http serves MCP beside other pages of an HTTP server, and ends when it is interrupted:
// calls in progress have ten seconds to finish.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
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

// serve serves until ctx ends, and then lets calls in progress finish.
func serve(ctx context.Context, srv *mcp.Server, ln net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("/mcp", srv)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}

	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := srv.Shutdown(ctx) // first: it ends the open event streams, which web.Shutdown waits for
		ended <- errors.Join(err, web.Shutdown(ctx))
	}()
	if err := web.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ln, err := net.Listen("tcp", "127.0.0.1:7420")
	if err != nil {
		log.Fatal(err)
	}
	log.Println("http://127.0.0.1:7420/mcp")
	if err := serve(ctx, newServer(), ln); err != nil {
		log.Fatal(err)
	}
}
