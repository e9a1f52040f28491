package web

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/trace"
)

// discard is a writer of answers that nobody reads.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkRecord measures what it costs to make the frames of an exchange.
func BenchmarkRecord(b *testing.B) {
	rec := &Recorder{Tap: &engine.Tap{Tell: func(trace.Frame) {}}}
	body := bytes.Repeat([]byte("x"), 300)
	answer := bytes.Repeat([]byte("x"), 200)
	r, _ := http.NewRequest("POST", "http://127.0.0.1:7420/mcp", nil)
	r.RequestURI = "/mcp"
	for _, name := range []string{"Accept", "Content-Length", "Content-Type", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "User-Agent"} {
		r.Header.Set(name, "application/json, text/event-stream")
	}
	w := &discard{header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(answer))}, "X-Content-Type-Options": {"nosniff"}}}
	buf := make([]byte, 512)
	b.ReportAllocs()
	for b.Loop() {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		rw, r, end := rec.Record(w, r)
		for {
			if _, err := r.Body.Read(buf); err != nil {
				break
			}
		}
		rw.WriteHeader(200)
		rw.Write(answer)
		end()
	}
}
