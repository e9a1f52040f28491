package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Progress on its way from a handler to the caller's function.
func BenchmarkProgress(b *testing.B) {
	const steps = 100
	for _, w := range wires {
		for _, rev := range revisions {
			b.Run("wire="+w.name+"/rev="+string(rev), func(b *testing.B) {
				s, seen := w.open(b, progressServer(), speaking(rev)), 0
				count := mcp.OnProgress(func(float64, float64, string) { seen++ })
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.CallTool(b.Context(), "steps", stepsIn{steps}, count); err != nil {
						b.Fatal(err)
					}
				}
				if seen == 0 {
					b.Fatal("no progress")
				}
				b.ReportMetric(float64(seen)/b.Elapsed().Seconds(), "notifications/s")
				b.ReportMetric(float64(seen)/float64(b.N), "notifications/op")
			})
		}
	}
}

// A tool is added or removed, and every session is notified. The server first waits 10
// ms for further changes, which is most of the time with few listeners.
func BenchmarkListChanged(b *testing.B) {
	for _, listeners := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("listeners=%d", listeners), func(b *testing.B) {
			s := newServer(b, 1)
			pipes := make([]*pipe, listeners)
			for i := range pipes {
				pipes[i] = newPipe(b, s)
				pipes[i].initialize()
				pipes[i].exchange(legacyFrame("ping", "{}"))
			}
			extra := func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return &mcp.ToolResult{}, nil }
			there := false
			b.ReportAllocs()
			for b.Loop() {
				if there = !there; there {
					if err := s.HandleTool(mcp.Tool{Name: "extra"}, extra); err != nil {
						b.Fatal(err)
					}
				} else {
					s.Remove(mcp.Feature{Kind: mcp.KindTool, Name: "extra"})
				}
				for _, p := range pipes {
					if frame := p.read(); !bytes.Contains(frame, []byte("notifications/tools/list_changed")) {
						b.Fatalf("told %s", frame)
					}
				}
			}
		})
	}
}
