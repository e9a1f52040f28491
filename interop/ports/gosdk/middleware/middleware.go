// Package middleware is the port of go-sdk's examples/server/middleware: a log of requests, with the
// arguments and results of tools.
package middleware

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

var logger = slog.New(slog.NewTextHandler(os.Stdout, nil))

func logged(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		logger.Info("MCP method started", "method", req.Method, "has_params", req.Params != nil)
		if req.Method == "tools/call" {
			logger.Info("Calling tool", "name", string(req.Param("name")), "args", string(req.Param("arguments")))
		}
		start := time.Now()
		res, err := next.Handle(ctx, req)
		if err != nil {
			logger.Error("MCP method failed", "method", req.Method, "duration_ms", time.Since(start).Milliseconds(), "err", err)
			return nil, err
		}
		logger.Info("MCP method completed", "method", req.Method, "duration_ms", time.Since(start).Milliseconds())
		if r, ok := res.(*mcp.ToolResult); ok {
			logger.Info("tool result", "isError", r.IsError, "structuredContent", r.Structured)
		}
		return res, nil
	})
}

type Person struct {
	Name string `json:"name" doc:"Name to greet"`
}

func NewServer() *mcp.Server {
	srv := &mcp.Server{Name: "logging-example"}
	srv.Use(logged)
	mcp.AddTool(srv, mcp.Tool{Name: "greet", Description: "Greet someone with logging."},
		func(_ context.Context, in Person) (string, error) { return fmt.Sprintf("Hello, %s!", in.Name), nil })
	return srv
}

func Main() {
	ctx := context.Background()
	s, err := (&mcp.Client{Name: "test-client"}).Open(ctx, NewServer())
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	text, err := mcp.CallAs[string](ctx, s, "greet", Person{"World"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("Tool result:", text)
}
