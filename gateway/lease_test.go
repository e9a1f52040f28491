package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// usage records who is inside of a server.
type usage struct {
	mu     sync.Mutex
	inside map[int]int
	order  []int // callers, one for each time that another one came
	both   []string
}

func (u *usage) add(_ int, s *mcp.Server) {
	mcp.AddTool(s, mcp.Tool{Name: "use"}, func(ctx context.Context, in struct {
		Caller int `json:"caller"`
	}) (string, error) {
		u.mu.Lock()
		if u.inside[in.Caller]++; len(u.inside) > 1 {
			u.both = append(u.both, fmt.Sprint(u.inside))
		}
		if n := len(u.order); n == 0 || u.order[n-1] != in.Caller {
			u.order = append(u.order, in.Caller)
		}
		u.mu.Unlock()
		time.Sleep(time.Second)
		u.mu.Lock()
		if u.inside[in.Caller]--; u.inside[in.Caller] == 0 {
			delete(u.inside, in.Caller)
		}
		u.mu.Unlock()
		return "used", nil
	})
}

func use(t *testing.T, s *mcp.Session, caller int) string {
	res, err := s.CallTool(t.Context(), "db_use", map[string]any{"caller": caller})
	if err != nil {
		return err.Error()
	}
	return res.Text()
}

// Of 16 sessions, each with parallel calls, one at a time has an exclusive server, until it ends.
func TestExclusiveNeverTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &usage{inside: map[int]int{}}
		f := &farm{rev: mcp.V2025_11_25, more: u.add}
		g := &gateway.Gateway{Name: "g", Version: "1"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.Exclusive, Queue: time.Hour})
		const callers = 16
		var wg sync.WaitGroup
		for i := range callers {
			s := connect(t, g, mcp.V2025_11_25)
			wg.Go(func() {
				var calls sync.WaitGroup
				for range 3 {
					calls.Go(func() {
						if got := use(t, s, i); got != "used" {
							t.Errorf("caller %d: %s", i, got)
						}
					})
				}
				calls.Wait()
				if got := use(t, s, i); got != "used" {
					t.Errorf("caller %d again: %s", i, got)
				}
				s.Close()
			})
		}
		wg.Wait()
		if len(u.both) > 0 || len(u.order) != callers {
			t.Errorf("at once: %s; order %v, want each of %d callers once", u.both, u.order, callers)
		}
		if got := f.alive(); got != "1" {
			t.Errorf("running: %s", got)
		}
	})
}

// If an exclusive server ends, the caller that has it is told that its state is gone, once.
func TestExclusiveLosesState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := keeper(mcp.V2025_11_25)
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.Exclusive})
		first, second := connect(t, g, mcp.V2025_11_25), connect(t, g, mcp.V2025_06_18)
		set(t, first, "a")
		first.Close()
		set(t, second, "b")
		f.kill(1)
		synctest.Wait()
		for _, told := range []bool{true, false} {
			if got := get(t, second); strings.Contains(got, "kept for you is gone: its connection was lost") != told || !told && got != "kept " {
				t.Errorf("%s; want it told: %t", got, told)
			}
		}
		if got := get(t, connect(t, g, mcp.V2026_07_28)); !strings.Contains(got, "in use by another session") {
			t.Errorf("another caller: %s", got)
		}
		second.Close()
		if got := get(t, connect(t, g, mcp.V2026_07_28)); got != "kept " {
			t.Errorf("the next caller: %s", got)
		}
	})
}

// A caller that does not get an exclusive server learns why. A holder that leaves without a word loses the
// server after the idle time, but not during a call. Lists are open to all.
func TestExclusiveWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &usage{inside: map[int]int{}}
		f := &farm{rev: mcp.V2025_11_25, more: u.add}
		g := &gateway.Gateway{Name: "g", Version: "1"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.Exclusive})
		one, two := connect(t, g, mcp.V2025_11_25), connect(t, g, mcp.V2025_11_25)
		modern := connect(t, g, mcp.V2026_07_28)
		if got := use(t, one, 1); got != "used" {
			t.Fatal(got)
		}
		began := time.Now()
		got := use(t, two, 2)
		want := `is in use by another session; it is free again when that session ends or has not used it for 1m0s. This request waited 2s and did not reach it`
		if !strings.Contains(got, want) || time.Since(began) != 2*time.Second {
			t.Errorf("after %v: %s", time.Since(began), got)
		}
		if n := tools(t, two); n == 0 {
			t.Error("a caller without the server has no lists")
		}
		if s := g.Status()[0]; s.Refused != 1 || s.Share != gateway.Exclusive || s.Conns != 1 {
			t.Errorf("status %+v", s)
		}
		time.Sleep(57 * time.Second) // the lease ends while two waits
		if got := use(t, two, 2); got != "used" {
			t.Errorf("after the idle time: %s", got)
		}
		if got := use(t, modern, 3); !strings.Contains(got, "in use by another session") {
			t.Errorf("a caller without a session: %s", got)
		}
		two.Close()
		if got := use(t, modern, 3); got != "used" {
			t.Errorf("after the end of the session: %s", got)
		}
		if got := use(t, one, 1); !strings.Contains(got, "in use by another caller") {
			t.Errorf("while a principal has it: %s", got)
		}
	})
}
