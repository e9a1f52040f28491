// Package inproc measures a call of github.com/modelcontextprotocol/go-sdk within one process.
package inproc

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type in struct {
	Message string `json:"message" jsonschema:"the text to echo"`
}

func connect(b *testing.B) *mcp.ClientSession {
	s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Message}}}, nil, nil
	})
	near, far := mcp.NewInMemoryTransports()
	if _, err := s.Connect(b.Context(), far, nil); err != nil {
		b.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(b.Context(), near, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { session.Close() })
	return session
}

func call(b *testing.B, s *mcp.ClientSession) {
	r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "echo", Arguments: in{text}})
	if err != nil {
		b.Error(err)
		return
	}
	if c, ok := r.Content[0].(*mcp.TextContent); !ok || c.Text != text {
		b.Error("the echo differs")
	}
}

var text = strings.Repeat("x", 100)

func BenchmarkEcho(b *testing.B) {
	s := connect(b)
	b.ReportAllocs()
	for b.Loop() {
		call(b, s)
	}
}

func BenchmarkEchoParallel(b *testing.B) {
	s := connect(b)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			call(b, s)
		}
	})
}
