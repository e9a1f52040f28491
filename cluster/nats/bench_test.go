package nats_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/mcp"
)

// BenchmarkForward compares calls in a session of 2025-11-25 at the node that has it with calls at another one.
func BenchmarkForward(b *testing.B) {
	list := servers(b, 3)
	var nodes []*cluster.Node
	for i, s := range list {
		server := &mcp.Server{Name: "bench", Version: "1"}
		mcp.AddTool(server, mcp.Tool{Name: "echo", Description: "echo"},
			func(_ context.Context, in struct{ Text string }) (string, error) { return in.Text, nil })
		shared := open(b, s, "bench")
		node := &cluster.Node{Name: fmt.Sprint("n", i), State: shared, Bus: shared, Handler: server}
		if err := node.Join(b.Context()); err != nil {
			b.Fatal(err)
		}
		defer node.Leave(context.Background())
		nodes = append(nodes, node)
	}
	send := func(h http.Handler, session, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "http://127.0.0.1/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
		return w
	}
	id := send(nodes[0], "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`).Header().Get("Mcp-Session-Id")
	for i, name := range []string{"local", "forwarded"} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				begin := time.Now()
				send(nodes[i], id, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"Text":"hello"}}}`)
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
