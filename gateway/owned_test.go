package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A call that has waited for the start of its server is not sent if another gateway may have the session by then. Reads of the session
// go on, and so do calls without a session.
func TestOwnedRightBeforeTheServer(t *testing.T) {
	for _, share := range []gateway.Share{gateway.Shared, gateway.PerSession, gateway.Exclusive} {
		synctest.Test(t, func(t *testing.T) {
			var runs atomic.Int32
			f := &farm{rev: mcp.V2025_11_25, open: func(context.Context) error { time.Sleep(20 * time.Second); return nil }, more: func(_ int, s *mcp.Server) {
				mcp.AddTool(s, mcp.Tool{Name: "run"}, func(context.Context, struct{}) (string, error) { runs.Add(1); return "done", nil })
			}}
			var away atomic.Bool
			var waits atomic.Int32 // how often it was asked so that it may wait
			g := &gateway.Gateway{Name: "gw", Owned: func(ctx context.Context) error {
				if away.Load() {
					if ctx.Err() == nil {
						waits.Add(1)
					}
					return errors.New("the owner has changed")
				}
				return nil
			}}
			run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: share})
			time.Sleep(50 * time.Second) // its lists are there
			s := connect(t, g, mcp.V2025_11_25)
			if share == gateway.Shared {
				f.kill(1)
				synctest.Wait()
			}
			time.AfterFunc(10*time.Second, func() { away.Store(true) })
			const words = "the owner has changed. Nothing was sent to the server; try again"
			if got := called(t, s, "db_run", nil); !strings.Contains(got, words) && (share != gateway.Exclusive || got != "done") || runs.Load() > 1 {
				t.Errorf("%v: %s, %d runs", share, got, runs.Load())
			}
			before := runs.Load()
			time.Sleep(time.Minute)
			if got := called(t, s, "db_run", nil); !strings.Contains(got, words) || runs.Load() != before {
				t.Errorf("%v: later: %s, %d runs", share, got, runs.Load()-before)
			}
			for _, err := range s.Tools(t.Context()) {
				if err != nil {
					t.Errorf("%v: a list: %v", share, err)
				}
			}
			if share == gateway.Exclusive {
				s.Close()
			}
			waited := waits.Load()
			if got := called(t, connect(t, g, mcp.V2026_07_28), "db_run", nil); got != "done" || waited == 0 || waits.Load() != waited {
				t.Errorf("%v: without a session: %s; it was asked %d times so that it may wait before, and %d times for that", share, got, waited, waits.Load()-waited)
			}
		})
	}
}
