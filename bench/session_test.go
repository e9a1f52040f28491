package bench_test

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"testing"
)

// Memory of one idle session of 2025-11-25 over HTTP, alone and with an open GET stream. It
// does not include net/http's memory of a connection.
func BenchmarkIdleSession(b *testing.B) {
	b.Run("stream=none", func(b *testing.B) { benchmarkIdle(b, 2000, false) })
	b.Run("stream=open", func(b *testing.B) { benchmarkIdle(b, 500, true) })
}

func benchmarkIdle(b *testing.B, sessions int, streams bool) {
	var sum int64
	for b.Loop() {
		sum += idle(b, sessions, streams)
	}
	b.ReportMetric(float64(sum)/float64(b.N), "B/session")
}

// idle opens sessions, and returns the bytes that one takes.
func idle(tb testing.TB, sessions int, streams bool) int64 {
	tb.Helper()
	s := newServer(tb, 1)
	ctx, cancel := context.WithCancel(served)
	var open sync.WaitGroup
	begin := func(n int) {
		for range n {
			c := sessionCaller(tb, s, both)
			if !streams {
				continue
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/mcp", nil)
			if err != nil {
				tb.Fatal(err)
			}
			for _, name := range []string{"Mcp-Session-Id", "MCP-Protocol-Version"} {
				req.Header.Set(name, c.req.Header.Get(name))
			}
			req.Header.Set("Accept", "text/event-stream")
			w := &streamWriter{header: http.Header{}, begun: make(chan struct{})}
			open.Go(func() { s.ServeHTTP(w, req) })
			<-w.begun
			if w.status != http.StatusOK {
				tb.Fatalf("GET stream: status %d", w.status)
			}
		}
	}
	begin(10) // the first sessions also pay for one-time allocations
	before := atRest()
	begin(sessions)
	grown := atRest() - before
	cancel()
	open.Wait()
	if err := s.Shutdown(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return grown / int64(sessions)
}

// A streamWriter signals when the answer has begun.
type streamWriter struct {
	header http.Header
	begun  chan struct{}
	once   sync.Once
	status int
}

func (w *streamWriter) Header() http.Header { return w.header }

func (w *streamWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(p), nil
}

func (w *streamWriter) WriteHeader(status int) {
	w.once.Do(func() { w.status = status; close(w.begun) })
}

func (w *streamWriter) Flush() { w.WriteHeader(http.StatusOK) }

// atRest returns the bytes of heap and stacks in use after a collection.
func atRest() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the first one only empties pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
