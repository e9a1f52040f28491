//go:build unix

// Server is the echo server on github.com/modelcontextprotocol/go-sdk, default settings.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/patchbay-dev/patchbay/bench/target/serverkit"
)

type in struct {
	Message string `json:"message" jsonschema:"the text to echo"`
}

func main() {
	o := serverkit.Parse()
	s := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Echoes its message."},
		func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Message}}}, nil, nil
		})
	for i := 1; i < o.Tools; i++ {
		t := &mcp.Tool{Name: fmt.Sprintf("tool%04d", i), Description: "Echoes its message.", InputSchema: json.RawMessage(serverkit.Form())}
		s.AddTool(t, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	}
	if o.Transport == "stdio" {
		serverkit.Check(s.Run(context.Background(), &mcp.StdioTransport{}))
		return
	}
	serverkit.ListenAndServe(o, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: o.Session != "stateful", JSONResponse: o.Resp == "json"}))
}
