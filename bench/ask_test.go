package bench_test

import (
	"context"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A call that asks its user one question: a request on the wire before 2026-07-28, and a
// second round of the call with the sealed state of the first since then.
func BenchmarkAsk(b *testing.B) {
	for _, w := range wires {
		for _, rev := range revisions {
			b.Run("wire="+w.name+"/rev="+string(rev), func(b *testing.B) {
				s := w.open(b, askServer(), agreeing(rev))
				b.ReportAllocs()
				for b.Loop() {
					if r, err := s.CallTool(b.Context(), "ask", nil); err != nil || r.Text() != "yes" {
						b.Fatal(r, err)
					}
				}
			})
		}
	}
}

// askServer returns a server whose tool "ask" asks the user to agree.
func askServer() *mcp.Server {
	s := &mcp.Server{Name: "bench", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		if ok, err := mcp.Confirm(ctx, "Go on?"); err != nil || !ok {
			return "no", err
		}
		return "yes", nil
	})
	return s
}

// agreeing returns a client of one revision whose user agrees.
func agreeing(rev mcp.Revision) *mcp.Client {
	c := speaking(rev)
	c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
	}
	return c
}
