package middleware_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
)

// open opens a session with a server that has a tool "echo", for the examples.
func open(use mcp.Middleware) *mcp.Session {
	srv := &mcp.Server{Name: "echo"}
	mcp.AddTool(srv, mcp.Tool{Name: "echo"}, func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	})
	srv.Use(use)
	s, err := (&mcp.Client{Name: "example"}).Open(context.Background(), srv)
	if err != nil {
		panic(err)
	}
	return s
}

func ExampleLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "ms" { // they differ each time
			return slog.Attr{}
		}
		return a
	}}))
	s := open(middleware.Log(logger))
	defer s.Close()
	s.CallTool(context.Background(), "echo", map[string]any{"text": "hello"})
	s.CallTool(context.Background(), "echo", map[string]any{"txt": "hello"})
	// Output:
	// level=INFO msg=request method=tools/call tool=echo outcome=ok
	// level=INFO msg=request method=tools/call tool=echo outcome="tool error"
}

// Observe counts calls by tool and outcome.
func ExampleObserve() {
	counts := map[string]int{}
	s := open(middleware.Observe(func(_ context.Context, r middleware.Record) {
		counts[fmt.Sprintf("%s %s: %s", r.Method, r.Name, r.Outcome)]++
	}))
	defer s.Close()
	s.CallTool(context.Background(), "echo", map[string]any{"text": "hello"})
	s.CallTool(context.Background(), "echo", map[string]any{"text": "world"})
	fmt.Println(counts)
	// Output: map[tools/call echo: ok:2]
}

// The client sends a read again when a proxy in front of the server fails.
func ExampleRetry() {
	srv := &mcp.Server{Name: "clock"}
	mcp.AddResource(srv, mcp.Resource{URI: "clock://now", Name: "now"}, func(context.Context) (string, error) { return "noon", nil })
	failed := false
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "resources/read" && !failed {
			failed = true
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		srv.ServeHTTP(w, r)
	}))
	defer web.Close()

	client := &mcp.Client{Name: "example"}
	client.Use(middleware.Retry(nil))
	s, err := client.Dial(context.Background(), web.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	res, err := s.ReadResource(context.Background(), "clock://now")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(failed, res.Contents[0].Text)
	// Output: true noon
}

func ExampleMaxResult() {
	s := open(middleware.MaxResult(1000))
	defer s.Close()
	res, err := s.CallTool(context.Background(), "echo", map[string]any{"text": strings.Repeat("x", 2000)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.IsError, res.Text())
	// Output: true the result of "echo" has 2039 bytes, more than the limit of 1000; ask for less, for instance with a filter or in parts
}

// The tool has another name, and callers cannot set one of its arguments.
func ExampleTools() {
	s := open(middleware.Tools(map[string]middleware.ToolChange{
		"echo": {Name: "greet", Description: "Say hello", Arguments: map[string]any{"text": "hello"}},
	}))
	defer s.Close()
	for tool, err := range s.Tools(context.Background()) {
		fmt.Println(tool.Name, string(tool.InputSchema), err)
	}
	greeting, err := mcp.CallAs[string](context.Background(), s, "greet", nil)
	fmt.Println(greeting, err)
	// Output:
	// greet {"type":"object","properties":{},"additionalProperties":false} <nil>
	// hello <nil>
}
