package nats_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/nats"
	"github.com/patchbay-dev/patchbay/mcp"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`

// send sends a message of a session, and returns the session that the answer opens.
func send(b *testing.B, h http.Handler, session, body string) (opened string) {
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
	return w.Header().Get("Mcp-Session-Id")
}

// BenchmarkForward compares calls in a session of 2025-11-25 at the node that has it with calls at another one, over NATS and over
// direct connections.
func BenchmarkForward(b *testing.B) {
	list := servers(b, 3)
	for name, join := range map[string]func(t testing.TB, s *nats.Server, name string) *nats.Cluster{"NATS": open, "link": linked} {
		b.Run(name, func(b *testing.B) { forward(b, list, name, join) })
	}
}

func forward(b *testing.B, list []*nats.Server, name string, join func(t testing.TB, s *nats.Server, name string) *nats.Cluster) {
	var nodes []*cluster.Node
	for i, s := range list {
		server := &mcp.Server{Name: "bench", Version: "1"}
		mcp.AddTool(server, mcp.Tool{Name: "echo", Description: "echo"},
			func(_ context.Context, in struct{ Text string }) (string, error) { return in.Text, nil })
		shared := join(b, s, "bench-"+name)
		node := &cluster.Node{Name: fmt.Sprint("n", i), State: shared, Bus: shared, Handler: server}
		if err := node.Join(b.Context()); err != nil {
			b.Fatal(err)
		}
		defer node.Leave(context.Background())
		nodes = append(nodes, node)
	}
	id := send(b, nodes[0], "", initialize)
	for i, name := range []string{"local", "forwarded"} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			b.ReportAllocs()
			cpu := cpuTime(b)
			for b.Loop() {
				begin := time.Now()
				send(b, nodes[i], id, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"Text":"hello"}}}`)
				took = append(took, time.Since(begin))
			}
			b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(len(took)), "CPU-µs")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkScale times what docs/scale.md counts: the operations of three nodes on what they share. The servers of NATS have the three
// replicas on one disk; all run in this process. Take -benchtime 500x: the sessions that are continued are opened before.
func BenchmarkScale(b *testing.B) {
	timed := func(b *testing.B, f func(i int)) {
		took := make([]time.Duration, 0, b.N)
		cpu := cpuTime(b)
		b.ResetTimer()
		for i := range b.N {
			begin := time.Now()
			f(i)
			took = append(took, time.Since(begin))
		}
		b.StopTimer()
		slices.Sort(took)
		b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(b.N), "CPU-µs")
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	}
	list := servers(b, 3)
	state := open(b, list[0], "scale")
	b.Run("Put", func(b *testing.B) {
		value := make([]byte, 500)
		timed(b, func(i int) {
			if _, err := state.Put(b.Context(), fmt.Sprintf("put.%d.%d", b.N, i), value, 0, time.Minute); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("Get", func(b *testing.B) {
		version, err := state.Put(b.Context(), fmt.Sprint("get.", b.N), make([]byte, 500), 0, time.Minute)
		if err != nil {
			b.Fatal(version, err)
		}
		timed(b, func(int) {
			if _, err := state.Get(b.Context(), fmt.Sprint("get.", b.N)); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("Events", func(b *testing.B) {
		shared := open(b, list[0], fmt.Sprint("events", b.N))
		node := &cluster.Node{Name: "n", State: shared, Bus: shared, Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler)}
		if err := node.Join(b.Context()); err != nil {
			b.Fatal(err)
		}
		event := []byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"some words"}}`)
		stream := "" // of two events each
		timed(b, func(i int) {
			if i%2 == 0 {
				time.Sleep(time.Millisecond) // 1,000 calls in a second at most
				stream = node.Events().Name(fmt.Sprint("stream", i))
			}
			if err := node.Events().Append(b.Context(), stream, int64(i%2+1), event); err != nil {
				b.Fatal(err)
			}
			if i == b.N-1 {
				node.Leave(context.Background()) // which writes the last ones
			}
		})
	})
	for _, what := range []string{"open", "continue"} {
		b.Run(what, func(b *testing.B) {
			var nodes []*cluster.Node
			for i, s := range list {
				server := &mcp.Server{Name: "bench", Version: "1"}
				server.HTTP.MaxSessions = 1 << 20
				mcp.AddTool(server, mcp.Tool{Name: "echo", Description: "echo"},
					func(_ context.Context, in struct{ Text string }) (string, error) { return in.Text, nil })
				shared := open(b, s, fmt.Sprint(what, b.N))
				node := &cluster.Node{Name: fmt.Sprint("n", i), State: shared, Bus: shared, Handler: server, Logger: slog.New(slog.DiscardHandler)}
				server.HTTP.Sessions = node.Sessions("/mcp")
				if err := node.Join(b.Context()); err != nil {
					b.Fatal(err)
				}
				defer node.Leave(context.Background())
				nodes = append(nodes, node)
			}
			if what == "open" {
				timed(b, func(int) { send(b, nodes[0], "", initialize) })
				return
			}
			ids := make([]string, b.N)
			for i := range ids {
				ids[i] = send(b, nodes[0], "", initialize)
			}
			if err := nodes[0].Leave(b.Context()); err != nil {
				b.Fatal(err)
			}
			timed(b, func(i int) {
				send(b, nodes[1], ids[i], `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"Text":"hello"}}}`)
			})
		})
	}
}
