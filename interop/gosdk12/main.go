// Command gosdk12 is a server on version 1.2.0 of the Go SDK of the protocol, the last
// version that reads messages by encoding/json, which ignores the case of names. It is a
// module of its own because a module can use only one version of another.
package main

import (
	"context"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type input struct {
	Message string `json:"message"`
}

func main() {
	s := mcp.NewServer(&mcp.Implementation{Name: "gosdk12", Version: "1"}, nil)
	for _, name := range []string{"mild", "wild"} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: name}, func(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ran " + name}}}, nil, nil
		})
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
