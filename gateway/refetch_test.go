package gateway_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// opening is a session whose stream of notifications opens during its first list of tools.
type opening struct {
	gateway.Upstream
	lists, opened atomic.Uint64
}

func (o *opening) ListVersion(string) (uint64, bool) { return o.opened.Load(), o.opened.Load() > 0 }

func (o *opening) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Method == "tools/list" && o.lists.Add(1) == 1 {
		o.opened.Add(1)
	}
	return o.Upstream.Handle(ctx, req)
}

// A list that changes during its first request, or whose stream of notifications opens then, is
// requested again, so that the status counts its tools.
func TestListIsRequestedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &mcp.Server{Name: "db", Version: "1"}
		mcp.AddTool(srv, mcp.Tool{Name: "query"}, func(context.Context, struct{}) (string, error) { return "", nil })
		var tools atomic.Int64
		g := &gateway.Gateway{Name: "gw", Version: "1", OnStatus: func(s gateway.Status) { tools.Store(int64(s.Tools)) }}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		open := opener(srv, mcp.V2025_11_25, false, mcp.Limits{})
		go func() {
			defer close(done)
			g.Run(ctx, gateway.Source{Name: "db", Open: func(ctx context.Context) (gateway.Upstream, error) {
				up, err := open(ctx)
				return &opening{Upstream: up}, err
			}})
		}()
		time.Sleep(time.Second)
		if got := tools.Load(); got != 1 {
			t.Errorf("status counts %d tools, want 1", got)
		}
		cancel()
		<-done
	})
}
