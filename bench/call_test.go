package bench_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

var revisions = []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28}

// wires are the transports of a session.
var wires = []struct {
	name string
	open func(*testing.B, *mcp.Server, *mcp.Client) *mcp.Session
}{
	{"memory", func(b *testing.B, s *mcp.Server, c *mcp.Client) *mcp.Session { return connect(b, s, c) }},
	{"stdio", func(b *testing.B, s *mcp.Server, c *mcp.Client) *mcp.Session {
		near, far := mcptest.Pipes(b)
		return connectOver(b, s, c, near, far)
	}},
	{"http", func(b *testing.B, s *mcp.Server, c *mcp.Client) *mcp.Session { return dial(b, s, c) }},
}

// speaking returns a client of one revision.
func speaking(rev mcp.Revision) *mcp.Client {
	return &mcp.Client{Name: "bench", Version: "1", Revisions: []mcp.Revision{rev}}
}

// dial opens a session with a handler on a loopback socket.
func dial(b *testing.B, h http.Handler, c *mcp.Client) *mcp.Session {
	b.Helper()
	srv := httptest.NewServer(h)
	b.Cleanup(srv.Close)
	// The default transport keeps two idle connections per host.
	wire := http.DefaultTransport.(*http.Transport).Clone()
	wire.MaxIdleConnsPerHost = 256
	c.HTTPClient = &http.Client{Transport: wire}
	session, err := c.Dial(b.Context(), srv.URL)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { session.Close(); wire.CloseIdleConnections() })
	return session
}

// A typed call, client and server in one process: one after the other, and 64 at once.
func BenchmarkCall(b *testing.B) {
	text := prose(100)
	for _, w := range wires {
		for _, rev := range revisions {
			b.Run("wire="+w.name+"/rev="+string(rev)+"/calls=1", func(b *testing.B) {
				s := w.open(b, newServer(b, 1), speaking(rev))
				b.ReportAllocs()
				for b.Loop() {
					echo(b, s, text)
				}
			})
			b.Run("wire="+w.name+"/rev="+string(rev)+"/calls=64", func(b *testing.B) {
				s := w.open(b, newServer(b, 1), speaking(rev))
				benchmarkAtOnce(b, s, 64)
			})
		}
	}
}

// benchmarkAtOnce makes n concurrent calls, or somewhat more if n is not a multiple of
// GOMAXPROCS.
func benchmarkAtOnce(b *testing.B, s *mcp.Session, n int) {
	procs := runtime.GOMAXPROCS(0)
	text := prose(100)
	b.ReportAllocs()
	b.SetParallelism((n + procs - 1) / procs)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := s.CallTool(b.Context(), "echo", echoIn{text})
			if err != nil || r.Text() != text {
				b.Error(r, err)
				return
			}
		}
	})
}

func BenchmarkCallSize(b *testing.B) {
	for _, w := range wires {
		for _, size := range sizes {
			b.Run("wire="+w.name+"/size="+size.name, func(b *testing.B) {
				s := w.open(b, newServer(b, 1), speaking(mcp.V2026_07_28))
				b.ReportAllocs()
				b.SetBytes(int64(len(size.text)))
				for b.Loop() {
					echo(b, s, size.text)
				}
			})
		}
	}
}
