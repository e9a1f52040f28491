// Package inproc measures a typed call within one process.
package inproc

import (
	"context"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

type in struct {
	Message string `json:"message" doc:"the text to echo"`
}

// pipe is a transport to a server in the same process.
type pipe struct{ s *mcp.Server }

func (p pipe) Connect(context.Context) (jsonrpc.Conn, error) {
	near, far := jsonrpc.Pipe()
	go p.s.Serve(context.Background(), far) // it ends with the session
	return near, nil
}

func connect(b *testing.B) *mcp.Session {
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "echo"}, func(_ context.Context, in in) (string, error) { return in.Message, nil })
	near, err := (&mcp.Client{Name: "c"}).Connect(b.Context(), pipe{s})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { near.Close() })
	return near
}

func call(b *testing.B, s *mcp.Session, text string) {
	r, err := s.CallTool(context.Background(), "echo", in{text})
	if err != nil {
		b.Fatal(err)
	}
	if r.Text() != text {
		b.Fatal("the echo differs")
	}
}

var text = strings.Repeat("x", 100)

func BenchmarkEcho(b *testing.B) {
	s := connect(b)
	b.ReportAllocs()
	for b.Loop() {
		call(b, s, text)
	}
}

func BenchmarkEchoParallel(b *testing.B) {
	s := connect(b)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			call(b, s, text)
		}
	})
}
