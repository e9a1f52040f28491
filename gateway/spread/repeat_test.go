package spread_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A call that was lost with its replica is repeated on another one only if the server is trusted and
// declares the tool idempotent, with or without an idempotency key. Otherwise its outcome is unknown, and the error says so.
func TestLostCall(t *testing.T) {
	t.Parallel()
	yes := true
	keyed := []mcp.CallOption{mcp.WithMeta(mcp.Meta{"dev.patchbay/idempotencyKey": json.RawMessage(`"order 7"`)})}
	for _, tt := range []struct {
		name    string
		trusted bool
		hints   *mcp.ToolAnnotations
		repeats bool
		opts    []mcp.CallOption
	}{
		{"trusted and idempotent", true, &mcp.ToolAnnotations{Idempotent: &yes}, true, nil},
		{"trusted and idempotent, with a key", true, &mcp.ToolAnnotations{Idempotent: &yes}, true, keyed},
		{"trusted", true, nil, false, nil},
		{"trusted, with a key", true, nil, false, keyed},
		{"idempotent, says somebody", false, &mcp.ToolAnnotations{Idempotent: &yes}, false, keyed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := newBox(t, "a"), newBox(t, "b")
			var runs atomic.Int64
			first := make(chan *box, 1)
			for _, box := range []*box{a, b} {
				mcp.AddTool(box.srv, mcp.Tool{Name: "book", Annotations: tt.hints}, func(ctx context.Context, _ struct{}) (string, error) {
					if runs.Add(1) == 1 {
						first <- box
						<-ctx.Done()
						return "", ctx.Err()
					}
					return "booked", nil
				})
			}
			group := &spread.Group{Name: "work", Logger: quiet(), Trusted: tt.trusted,
				Replicas: []spread.Replica{a.replica(mcp.V2026_07_28, nil), b.replica(mcp.V2026_07_28, nil)}}
			_, session := through(t, group, gateway.Shared)
			s := session()
			connected(t, group)
			eventually(t, "both replicas are compared", func() bool {
				_, err := call(t, s, "work_which")
				return err == nil && a.calls.Load() > 0 && b.calls.Load() > 0
			})
			go func() {
				select {
				case box := <-first:
					box.kill()
				case <-t.Context().Done():
				}
			}()
			text := ""
			res, err := s.CallTool(t.Context(), "work_book", nil, tt.opts...)
			if err == nil {
				text = res.Text()
			}
			switch {
			case tt.repeats && (err != nil || text != "booked" || runs.Load() != 2):
				t.Errorf("%q, %v, after %d runs; want one more run", text, err, runs.Load())
			case !tt.repeats && (err == nil || !strings.Contains(err.Error(), "the tool may or may not have run") || runs.Load() != 1):
				t.Errorf("%q, %v, after %d runs; want an unknown outcome", text, err, runs.Load())
			}
		})
	}
}
