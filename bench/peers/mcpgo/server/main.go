//go:build unix

// Server is the echo server on github.com/mark3labs/mcp-go, default settings: it does not
// check arguments against the schema.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/patchbay-dev/patchbay/bench/target/serverkit"
)

type in struct {
	Message string `json:"message"`
}

func main() {
	o := serverkit.Parse()
	s := server.NewMCPServer("mcpgo", "1", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("echo", mcp.WithDescription("Echoes its message."),
		mcp.WithString("message", mcp.Required(), mcp.Description("the text to echo"))),
		mcp.NewTypedToolHandler(func(_ context.Context, _ mcp.CallToolRequest, in in) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(in.Message), nil
		}))
	for i := 1; i < o.Tools; i++ {
		t := mcp.NewToolWithRawSchema(fmt.Sprintf("tool%04d", i), "Echoes its message.", json.RawMessage(serverkit.Form()))
		s.AddTool(t, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(""), nil
		})
	}
	if o.Transport == "stdio" {
		serverkit.Check(server.ServeStdio(s))
		return
	}
	if o.Resp == "sse" {
		os.Exit(serverkit.Unsupported) // only a message before the answer makes it a stream
	}
	serverkit.ListenAndServe(o, server.NewStreamableHTTPServer(s,
		server.WithStateful(o.Session == "stateful"), server.WithStateLess(o.Session != "stateful")))
}
