package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
)

// listNow lists the tools. It returns their names, the servers reported as starting, and the
// duration.
func listNow(t *testing.T, g *gateway.Gateway) (names, starting string, partial bool, took time.Duration) {
	t.Helper()
	began := time.Now()
	res, err := g.Handle(t.Context(), &mcp.Request{Method: "tools/list"})
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Tools []struct{ Name string }
		TTL   *int                `json:"ttlMs"`
		Meta  map[string][]string `json:"_meta"`
	}
	if err := json.Unmarshal(res.JSON(), &list); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, tool := range list.Tools {
		all = append(all, tool.Name)
	}
	missing, partial := list.Meta["dev.patchbay/starting"]
	if partial && (list.TTL == nil || *list.TTL != 0) {
		t.Errorf("a partial list may be kept: ttlMs %v", list.TTL)
	}
	return strings.Join(all, " "), strings.Join(missing, " "), partial, time.Since(began)
}

const ofB = "b_whoami b_ask b_which"

// Traps 13 and F6: a list waits at most a second for a server that does not answer, and says that
// it is partial; when the server is ready, the list is announced as changed. A server that last
// started within 3 seconds is given that long.
func TestListsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opening := make(chan time.Duration, 10) // how long each start takes
		a := &farm{rev: mcp.V2026_07_28, open: func(ctx context.Context) error {
			select {
			case <-time.After(<-opening):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		b := &farm{rev: mcp.V2026_07_28}
		g := &gateway.Gateway{Name: "gw", Version: "1"}
		opening <- 20 * time.Second
		run(t, g, gateway.Source{Name: "a", Open: a.Open, Idle: -1})
		run(t, g, gateway.Source{Name: "b", Open: b.Open})
		s := connect(t, g, mcp.V2025_11_25)
		changed := make(chan struct{}, 10)
		go func() {
			for e, err := range s.Watch(t.Context()) {
				if err == nil && e.Method == "notifications/tools/list_changed" {
					changed <- struct{}{}
				}
			}
		}()
		synctest.Wait()
		if names, starting, partial, took := listNow(t, g); names != ofB || starting != "a" || !partial || took != time.Second {
			t.Errorf("the first list has %q without %q after %v", names, starting, took)
		}
		for len(changed) > 0 {
			<-changed
		}
		if names, starting, _, took := listNow(t, g); names != ofB || starting != "a" || took != 0 {
			t.Errorf("the second list has %q without %q after %v", names, starting, took)
		}
		time.Sleep(20 * time.Second)
		if len(changed) == 0 {
			t.Error("nobody was told that the list has changed")
		}
		if names, _, partial, took := listNow(t, g); names != "a_whoami a_ask a_which "+ofB || partial || took != 0 {
			t.Errorf("the list has %q after %v when the server has come", names, took)
		}
	})
}

// A server that is ready but does not list does not delay a list either. Its part is announced
// later, once; until then its previous list is used.
func TestSlowListsComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delay := make(chan time.Duration, 10)
		var changes atomic.Int64
		slow := func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == "tools/list" {
					select {
					case d := <-delay:
						time.Sleep(d)
					default:
					}
				}
				return next.Handle(ctx, req)
			})
		}
		a := &farm{rev: mcp.V2026_07_28, more: func(_ int, s *mcp.Server) { s.Use(slow) }}
		b := &farm{rev: mcp.V2026_07_28}
		g := &gateway.Gateway{Name: "gw", Version: "1"}
		s := connect(t, g, mcp.V2025_11_25)
		go func() {
			for e, err := range s.Watch(t.Context()) {
				if err == nil && e.Method == "notifications/tools/list_changed" {
					changes.Add(1)
				}
			}
		}()
		for range 2 { // for the gateway itself, and for the caller
			delay <- 5 * time.Second
		}
		run(t, g, gateway.Source{Name: "a", Open: a.Open})
		run(t, g, gateway.Source{Name: "b", Open: b.Open})
		if names, starting, _, took := listNow(t, g); names != ofB || starting != "a" || took != time.Second {
			t.Errorf("the first list has %q without %q after %v", names, starting, took)
		}
		synctest.Wait()
		before := changes.Load()
		time.Sleep(10 * time.Second)
		if changes.Load() == before {
			t.Error("nobody was told that the list has changed")
		}
		before = changes.Load()
		delay <- 5 * time.Second
		if names, _, partial, took := listNow(t, g); names != "a_whoami a_ask a_which "+ofB || partial || took != time.Second {
			t.Errorf("a slow list has %q after %v, want what was kept", names, took)
		}
		time.Sleep(10 * time.Second)
		if changes.Load() != before {
			t.Error("a list that has not changed was told to have")
		}
	})
}

// Behind middleware a partial list does not name servers, because the caller may not know them.
func TestAPartialListKeepsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &farm{open: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		g := &gateway.Gateway{Name: "gw", Middleware: func(string) mcp.Middleware { return func(next mcp.Handler) mcp.Handler { return next } }}
		run(t, g, gateway.Source{Name: "a", Open: a.Open})
		if names, starting, partial, took := listNow(t, g); names != "" || starting != "" || !partial || took != time.Second {
			t.Errorf("%q without %q, partial %v, after %v", names, starting, partial, took)
		}
	})
}

// Middleware that passes on everything unchanged leaves a partial list as it is without.
func TestAPartialListBehindAnOnlooker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &farm{open: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		var c metrics.Counters
		g := &gateway.Gateway{Name: "gw", Middleware: c.Around(nil)}
		run(t, g, gateway.Source{Name: "a", Open: a.Open})
		if names, starting, partial, took := listNow(t, g); names != "" || starting != "a" || !partial || took != time.Second {
			t.Errorf("%q without %q, partial %v, after %v", names, starting, partial, took)
		}
	})
}

// A list waits for a server that starts fast if its lists are not kept.
func TestFastServersAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{rev: mcp.V2026_07_28, open: func(ctx context.Context) error { time.Sleep(2 * time.Second); return nil }}
		f.more = func(_ int, s *mcp.Server) { // a list that is too long to be kept
			for i := range 5 {
				mcp.AddTool(s, mcp.Tool{Name: "long" + string(rune('a'+i)), Description: strings.Repeat("x", 1<<20)}, func(context.Context, struct{}) (string, error) { return "", nil })
			}
		}
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "a", Open: f.Open})
		if _, starting, _, took := listNow(t, g); starting != "a" || took != time.Second {
			t.Errorf("the first list is without %q after %v", starting, took)
		}
		time.Sleep(time.Hour)
		f.kill(1)
		synctest.Wait()
		if names, _, partial, took := listNow(t, g); !strings.Contains(names, "a_which") || partial || took > 3*time.Second {
			t.Errorf("the list while it starts again has %q, partial %v, after %v", names, partial, took)
		}
	})
}
