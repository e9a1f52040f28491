package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

type message struct {
	Text  string   `json:"text"`
	Count int      `json:"count"`
	Tags  []string `json:"tags"`
}

var hello = message{Text: "hello, world", Count: 3, Tags: []string{"a", "b"}}

func echoServer() *mcp.Server {
	s := &mcp.Server{Name: "echo", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "echo"}, func(_ context.Context, in message) (string, error) { return in.Text, nil })
	return s
}

// plain opens a session without the checks of mcptest, which would otherwise be measured.
func plain(b *testing.B, s *mcp.Server, rev mcp.Revision, near, far jsonrpc.Conn) *mcp.Session {
	b.Helper()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { defer close(done); s.Serve(ctx, far) }()
	session, err := (&mcp.Client{Name: "bench", Revisions: []mcp.Revision{rev}}).Connect(b.Context(), mcptest.Wire(near))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { session.Close(); cancel(); <-done })
	return session
}

// A typed call through the registry alone: the server's overhead over its function.
func BenchmarkHandle(b *testing.B) {
	s := echoServer()
	args, _ := json.Marshal(hello)
	req := &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"echo","arguments":` + string(args) + `}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Handle(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// Requests and responses on a pipe, without a client: what a server costs.
func BenchmarkServe(b *testing.B) {
	near, far := jsonrpc.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); echoServer().Serve(context.Background(), far) }()
	defer func() { near.Close(); <-done }()
	args, _ := json.Marshal(hello)
	frame := []byte(modern(1, "tools/call", `{}`, `"name":"echo","arguments":`+string(args)))
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		if err := near.Write(frame); err != nil {
			b.Fatal(err)
		}
		var err error
		if buf, err = near.Read(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		b.Run("wire=memory/rev="+string(rev), func(b *testing.B) {
			near, far := jsonrpc.Pipe()
			benchmarkEcho(b, plain(b, echoServer(), rev, near, far))
		})
		b.Run("wire=stdio/rev="+string(rev), func(b *testing.B) {
			near, far := mcptest.Pipes(b)
			benchmarkEcho(b, plain(b, echoServer(), rev, near, far))
		})
		b.Run("wire=http/rev="+string(rev), func(b *testing.B) {
			srv := httptest.NewServer(echoServer())
			defer srv.Close()
			s, err := (&mcp.Client{Name: "bench", Revisions: []mcp.Revision{rev}}).Dial(b.Context(), srv.URL)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			benchmarkEcho(b, s)
		})
	}
}

func benchmarkEcho(b *testing.B, s *mcp.Session) {
	b.ReportAllocs()
	for b.Loop() {
		if res, err := s.CallTool(b.Context(), "echo", hello); err != nil || res.IsError {
			b.Fatal(res, err)
		}
	}
}

// A call with a client that records it.
func BenchmarkCallRecorded(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("wire=http/recorded=%v", on), func(b *testing.B) {
			srv := httptest.NewServer(echoServer())
			defer srv.Close()
			c := &mcp.Client{Name: "bench", Revisions: []mcp.Revision{mcp.V2026_07_28}}
			if on {
				w := trace.NewWriter(io.Discard, &trace.WriterOptions{MaxWait: time.Minute})
				defer w.Close()
				c.OnFrame = w.Record
			}
			s, err := c.Dial(b.Context(), srv.URL)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			benchmarkEcho(b, s)
		})
	}
}

// Many callers on one wire.
func BenchmarkCallParallel(b *testing.B) {
	near, far := jsonrpc.Pipe()
	s := plain(b, echoServer(), mcp.V2026_07_28, near, far)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if res, err := s.CallTool(context.Background(), "echo", hello); err != nil || res.IsError {
				b.Error(res, err)
			}
		}
	})
}

// A list of 100 tools: as bytes on the wire, and as Tools that a client reads.
func BenchmarkList(b *testing.B) {
	s := &mcp.Server{Name: "many", Version: "1"}
	for i := range 100 {
		mcp.AddTool(s, mcp.Tool{Name: fmt.Sprint("tool", i), Description: "does something"}, func(context.Context, message) (string, error) { return "", nil })
	}
	near, far := jsonrpc.Pipe()
	session := plain(b, s, mcp.V2026_07_28, near, far)
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := session.Raw(b.Context(), "tools/list", nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("typed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for _, err := range session.Tools(b.Context()) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != 100 {
				b.Fatal(n)
			}
		}
	})
}

// The first call of a program: start the process, open the session, call.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		c := &mcp.Client{Name: "bench"}
		s, err := c.Start(b.Context(), program("modern"))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.CallTool(b.Context(), "print", nil); err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
