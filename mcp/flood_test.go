package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

// Trap 46: of a flood of progress some may be lost, the last is not, and what arrives is in
// order and before the answer; to clients of each era, directly and through a session.
func TestFloodOfProgress(t *testing.T) {
	flood := long.OrRaced(8000.0, 1000)
	flooding := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "flood"}, func(ctx context.Context, _ struct{}) (string, error) {
			for i := range int(flood) {
				mcp.Progress(ctx, float64(i+1), flood, fmt.Sprint(i+1))
			}
			return "done", nil
		})
		return s
	}
	for _, back := range []mcp.Revision{mcp.V2025_06_18, mcp.V2026_07_28} {
		for _, front := range []mcp.Revision{"", mcp.V2025_06_18, mcp.V2026_07_28} {
			t.Run(fmt.Sprintf("%s behind %q", back, front), func(t *testing.T) {
				answered := make(chan struct{})
				answer := sync.OnceFunc(func() { close(answered) })
				c := &mcp.Client{Name: "c", OnFrame: func(f trace.Frame) {
					if bytes.Contains(f.Msg, []byte(`"done"`)) {
						answer()
					}
				}}
				session := mcptest.Connect(t, flooding(), c, back)
				if front != "" {
					gw := &mcp.Server{Name: "gw", Version: "1", Handler: mcptest.Connect(t, flooding(), &mcp.Client{Name: "c"}, back)}
					session = mcptest.Connect(t, gw, c, front)
				}
				var mu sync.Mutex
				last, told := 0.0, 0
				res, err := session.CallTool(t.Context(), "flood", nil, mcp.OnProgress(func(done, _ float64, _ string) {
					mu.Lock()
					defer mu.Unlock()
					if told++; told == 1 {
						<-answered // slower than the server
					}
					if done <= last {
						t.Errorf("%v comes after %v", done, last)
					}
					last = done
				}))
				mu.Lock()
				defer mu.Unlock()
				if err != nil || res.Text() != "done" || last != flood {
					t.Errorf("the answer %v, %v came after progress %v of %v; %d were told", res, err, last, flood, told)
				}
			})
		}
	}
}
