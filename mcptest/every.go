package mcptest

import (
	"context"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Every runs body on all five revisions and every wire: "memory"; "stdio", which is
// newline-delimited JSON over pipes of the operating system; "http", which is
// Streamable HTTP over loopback; "sse", which is HTTP+SSE and carries no 2026-07-28;
// "websocket"; and "tcp". A second time it runs over "memory" and "http" behind a middleware of the
// client that changes nothing. Each is a subtest of its own, such as "2025-11-25/http" and
// "2025-11-25/http, middleware", with a server, client and session of its own.
//
// Streamable HTTP is newer than 2024-11-05, but a server serves that revision on the same
// endpoint.
func Every(t *testing.T, newServer func() *mcp.Server, newClient func() *mcp.Client, body func(t *testing.T, s *mcp.Session)) {
	t.Helper()
	for _, rev := range mcp.Revisions() {
		for _, w := range wires {
			if w.legacy && !rev.Sessions() {
				continue
			}
			t.Run(string(rev)+"/"+w.name, func(t *testing.T) {
				body(t, w.open(t, newServer(), newClient(), rev))
			})
			if !w.twice {
				continue
			}
			t.Run(string(rev)+"/"+w.name+", middleware", func(t *testing.T) {
				c := newClient()
				c.Use(func(next mcp.Handler) mcp.Handler {
					return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) { return next.Handle(ctx, req) })
				})
				body(t, w.open(t, newServer(), c, rev))
			})
		}
	}
}

var wires = []struct {
	name   string
	open   func(testing.TB, *mcp.Server, *mcp.Client, mcp.Revision) *mcp.Session
	legacy bool // it cannot carry 2026-07-28
	twice  bool // also with middleware of the client
}{
	{"memory", Connect, false, true},
	{"stdio", connectPipes, false, false},
	{"http", connectHTTP, false, true},
	{"sse", connectSSE, true, false},
	{"websocket", connectWebSocket, false, false},
	{"tcp", connectTCP, false, false},
}

// connectPipes opens a session over two pipes of the operating system.
func connectPipes(t testing.TB, s *mcp.Server, c *mcp.Client, rev mcp.Revision) *mcp.Session {
	t.Helper()
	near, far := Pipes(t)
	return connect(t, s, c, rev, near, far)
}

// Pipes returns the two ends of a connection of newline-delimited JSON over pipes of the
// operating system, as between a program and its child.
func Pipes(t testing.TB) (near, far jsonrpc.Conn) {
	t.Helper()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	fromServer, toClient := pipe()
	fromClient, toServer := pipe()
	end := func(r, w *os.File) jsonrpc.Conn {
		return jsonrpc.NewLineConn(r, w, func() error { w.Close(); return r.Close() }, 0)
	}
	return end(fromServer, toServer), end(fromClient, toClient)
}

// connectHTTP opens a session over Streamable HTTP.
func connectHTTP(t testing.TB, s *mcp.Server, c *mcp.Client, rev mcp.Revision) *mcp.Session {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Shutdown(ended())
		srv.Close()
	})
	return open(t, c, rev, dialer(c, srv.URL))
}

// ended returns an ended context, for a Shutdown that does not wait.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func dialer(c *mcp.Client, url string) func(context.Context) (*mcp.Session, error) {
	return func(ctx context.Context) (*mcp.Session, error) { return c.Dial(ctx, url) }
}

// connectSSE opens a session over HTTP+SSE, with a server that has no other transport.
func connectSSE(t testing.TB, s *mcp.Server, c *mcp.Client, rev mcp.Revision) *mcp.Session {
	t.Helper()
	srv := httptest.NewServer(s.SSE(""))
	t.Cleanup(func() {
		s.Shutdown(ended())
		srv.Close()
	})
	return open(t, c, rev, dialer(c, srv.URL))
}

// connectWebSocket opens a session over WebSocket.
func connectWebSocket(t testing.TB, s *mcp.Server, c *mcp.Client, rev mcp.Revision) *mcp.Session {
	t.Helper()
	srv := httptest.NewServer(s.WebSocket())
	t.Cleanup(func() {
		s.Shutdown(ended())
		srv.Close()
	})
	return open(t, c, rev, dialer(c, "ws"+strings.TrimPrefix(srv.URL, "http")))
}

// connectTCP opens a session over a TCP connection.
func connectTCP(t testing.TB, s *mcp.Server, c *mcp.Client, rev mcp.Revision) *mcp.Session {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ServeListener(ctx, l)
	}()
	t.Cleanup(func() {
		cancel()
		<-done // it is bounded in time
	})
	return open(t, c, rev, dialer(c, "tcp://"+l.Addr().String()))
}
