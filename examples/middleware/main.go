// Command middleware puts three things around every request: a log, a bound for results, and a time
// limit for calls of tools, which is a middleware of its own.
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
)

// within gives each call of a tool a time limit. Other requests pass unchanged: a subscription, for
// instance, is a request that lasts.
func within(limit time.Duration) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != "tools/call" {
				return next.Handle(ctx, req)
			}
			ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the tool took longer than %v", limit))
			defer cancel()
			return next.Handle(ctx, req)
		})
	}
}

type Pause struct {
	For time.Duration `json:"for" doc:"such as 500ms"`
}

func wait(ctx context.Context, in Pause) (string, error) {
	select {
	case <-time.After(in.For):
		return "waited", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// newServer returns a server. The first middleware is the outermost: it logs what the others do.
func newServer(logger *slog.Logger) *mcp.Server {
	srv := &mcp.Server{Name: "waiter", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "wait"}, wait)
	srv.Use(middleware.Log(logger), middleware.MaxResult(1<<20), within(2*time.Second))
	return srv
}

func main() {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil)) // standard output is for the protocol
	if err := newServer(logger).ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
