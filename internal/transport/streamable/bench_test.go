package streamable_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
)

// sink is a ResponseWriter that costs nothing.
type sink struct {
	header http.Header
	code   int
	n      int
}

func (w *sink) Header() http.Header            { return w.header }
func (w *sink) WriteHeader(code int)           { w.code = code }
func (w *sink) Write(p []byte) (int, error)    { w.n += len(p); return len(p), nil }
func (*sink) Flush()                           {}
func (*sink) SetWriteDeadline(time.Time) error { return nil }

// body is a request body that can be read again.
type body struct{ *strings.Reader }

func (body) Close() error { return nil }

func modernBench(b testing.TB) (serve func()) {
	s := newServer(b, func(_ context.Context, c *engine.Call) (engine.Result, error) {
		args, _ := c.Msg.Param("arguments")
		return engine.Result{JSON: args}, nil
	})
	in := strings.Replace(modernCall, `"arguments":{}`, `"arguments":{"content":[],"text":"`+strings.Repeat("x", 1<<10)+`"}`, 1)
	r := request(in, modern()...)
	ctx, cancel := context.WithCancel(context.Background()) // as in net/http
	b.Cleanup(cancel)
	r = r.WithContext(ctx)
	w := &sink{header: http.Header{}}
	again := body{strings.NewReader(in)}
	return func() {
		again.Reset(in)
		r.Body = again
		clear(w.header)
		s.ServeHTTP(w, r)
		if w.code != 200 {
			b.Fatalf("status %d", w.code)
		}
	}
}

// BenchmarkModernEcho is one modern call with 1 KiB of arguments, without net/http.
func BenchmarkModernEcho(b *testing.B) {
	serve := modernBench(b)
	b.ReportAllocs()
	for b.Loop() {
		serve()
	}
}

// TestModernAllocs bounds the allocations of the hot path: 18 without the race detector, which
// empties pools now and then.
func TestModernAllocs(t *testing.T) {
	const most = 24
	if got := testing.AllocsPerRun(200, modernBench(t)); got > most {
		t.Errorf("a modern call allocates %v times, want at most %d", got, most)
	}
}

// BenchmarkRoundTrip is the same with our client and sockets.
func BenchmarkRoundTrip(b *testing.B) {
	s := newServer(b, nil)
	hs := httptest.NewServer(s)
	defer hs.Close()
	c := streamable.NewClient(streamable.ClientOptions{URL: hs.URL})
	defer c.Close()
	out := &engine.Outgoing{Method: "tools/call", Params: modernParams(`"name":"echo",`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Call(b.Context(), out); err != nil {
			b.Fatal(err)
		}
	}
}

var _ io.ReadCloser = body{}
