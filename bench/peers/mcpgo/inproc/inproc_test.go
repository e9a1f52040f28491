// Package inproc measures a call of github.com/mark3labs/mcp-go within one process.
package inproc

import (
	"context"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type in struct {
	Message string `json:"message"`
}

func connect(b *testing.B) *client.Client {
	s := server.NewMCPServer("s", "1", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("echo", mcp.WithString("message", mcp.Required())),
		mcp.NewTypedToolHandler(func(_ context.Context, _ mcp.CallToolRequest, in in) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(in.Message), nil
		}))
	c, err := client.NewInProcessClient(s)
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	var first mcp.InitializeRequest
	first.Params.ProtocolVersion = mcp.LATEST_LEGACY_PROTOCOL_VERSION
	first.Params.ClientInfo = mcp.Implementation{Name: "c", Version: "1"}
	if _, err := c.Initialize(b.Context(), first); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

func call(b *testing.B, c *client.Client) {
	var req mcp.CallToolRequest
	req.Params.Name = "echo"
	req.Params.Arguments = in{text}
	r, err := c.CallTool(context.Background(), req)
	if err != nil {
		b.Error(err)
		return
	}
	if t, ok := r.Content[0].(mcp.TextContent); !ok || t.Text != text {
		b.Error("the echo differs")
	}
}

var text = strings.Repeat("x", 100)

func BenchmarkEcho(b *testing.B) {
	c := connect(b)
	b.ReportAllocs()
	for b.Loop() {
		call(b, c)
	}
}

func BenchmarkEchoParallel(b *testing.B) {
	c := connect(b)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			call(b, c)
		}
	})
}
