package metrics_test

import (
	"context"
	"fmt"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
)

// A server counts the calls of its tools. Served over HTTP, c is what Prometheus reads.
func ExampleCounters() {
	srv := &mcp.Server{Name: "shop"}
	c := &metrics.Counters{Listed: func(_, tool string) bool { return srv.HasTool(tool) }}
	mcp.AddTool(srv, mcp.Tool{Name: "search"}, func(context.Context, struct{}) (string, error) { return "a lamp", nil })
	srv.Use(c.Server("shop"))

	ctx := context.Background()
	s, err := (&mcp.Client{Name: "example"}).Open(ctx, srv)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	s.CallTool(ctx, "search", nil)
	s.CallTool(ctx, "search", nil)
	s.CallTool(ctx, "buy", nil) // the server has no such tool

	for _, server := range c.Read(metrics.Minute).Servers {
		fmt.Println(server.Name, server.Calls, "calls,", server.Errors.Sum(), "failed")
		for _, tool := range server.Tools {
			fmt.Println(tool.Name, tool.Calls)
		}
	}
	// Output:
	// shop 3 calls, 1 failed
	// search 2
	// other 1
}
