package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// lockedBy makes the locks of a gateway leases in a State.
func lockedBy(s cluster.State, node string) func(ctx context.Context, server string) (gateway.Lock, error) {
	return func(ctx context.Context, server string) (gateway.Lock, error) {
		return cluster.Acquire(ctx, s, "server."+server, node, 10*time.Second)
	}
}

// Of sessions at three gateways that share a State, one at a time has an exclusive server.
func TestExclusiveOverGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &usage{inside: map[int]int{}}
		shared := new(cluster.Memory)
		var all sync.WaitGroup
		for node := range 3 {
			f := &farm{rev: mcp.V2025_11_25, more: u.add}
			g := &gateway.Gateway{Name: "g", Version: "1", Lock: lockedBy(shared, string(rune('a'+node)))}
			run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.Exclusive, Queue: time.Hour})
			for i := range 4 {
				s := connect(t, g, mcp.V2025_11_25)
				all.Go(func() {
					for range 2 {
						if got := use(t, s, 10*node+i); got != "used" {
							t.Errorf("caller %d of %d: %s", i, node, got)
						}
					}
					s.Close()
				})
			}
		}
		all.Wait()
		if len(u.both) > 0 {
			t.Errorf("two at a time: %s", u.both)
		}
		if len(u.order) != 12 {
			t.Errorf("the server changed hands in the order %d, want 12 callers", u.order)
		}
	})
}

// A caller whose server another node uses is refused in words, until that caller has not used it for a while or its gateway ends.
func TestExclusiveAtAnotherGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &usage{inside: map[int]int{}}
		shared := new(cluster.Memory)
		var sessions []*mcp.Session
		var stops []func()
		for _, node := range []string{"a", "b"} {
			f := &farm{rev: mcp.V2025_11_25, more: u.add}
			g := &gateway.Gateway{Name: "g", Version: "1", Lock: lockedBy(shared, node)}
			stops = append(stops, run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.Exclusive, Idle: time.Minute}))
			sessions = append(sessions, connect(t, g, mcp.V2025_11_25))
		}
		a, b := sessions[0], sessions[1]
		if got := use(t, a, 1); got != "used" {
			t.Fatal(got)
		}
		if got := use(t, b, 2); !strings.Contains(got, "in use by a caller at another node") || !strings.Contains(got, "waited 2s and did not reach it") {
			t.Errorf("beside it: %s", got)
		}
		time.Sleep(30 * time.Second)
		if got := use(t, a, 1); got != "used" {
			t.Error(got)
		}
		time.Sleep(40 * time.Second)
		if got := use(t, b, 2); !strings.Contains(got, "another node") {
			t.Errorf("40 seconds after the last use: %s", got)
		}
		time.Sleep(30 * time.Second)
		if got := use(t, b, 2); got != "used" {
			t.Errorf("a minute after the last use: %s", got)
		}
		stops[1]()
		if got := use(t, a, 1); got != "used" {
			t.Errorf("after the end of the other gateway: %s", got)
		}
		if len(u.both) > 0 {
			t.Errorf("two at a time: %s", u.both)
		}
	})
}

// cutOff is a State that can be out of reach.
type cutOff struct {
	cluster.State
	away atomic.Bool
}

func (s *cutOff) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if s.away.Load() {
		return 0, errors.New("no majority")
	}
	return s.State.Put(ctx, key, value, version, ttl)
}

// A gateway that is cut off from the others sends nothing to an exclusive server.
func TestExclusiveWithoutTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &usage{inside: map[int]int{}}
		shared := &cutOff{State: new(cluster.Memory)}
		f := &farm{rev: mcp.V2025_11_25, more: u.add}
		g := &gateway.Gateway{Name: "g", Version: "1", Lock: lockedBy(shared, "a")}
		run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.Exclusive})
		s := connect(t, g, mcp.V2025_11_25)
		if got := use(t, s, 1); got != "used" {
			t.Fatal(got)
		}
		shared.away.Store(true)
		time.Sleep(20 * time.Second) // its lock is over
		if got := use(t, s, 1); !strings.Contains(got, "whether another node uses it is not known") {
			t.Errorf("cut off: %s", got)
		}
		shared.away.Store(false)
		time.Sleep(time.Second)
		if got := use(t, s, 1); got != "used" {
			t.Errorf("again: %s", got)
		}
		if len(u.order) != 1 {
			t.Errorf("%d callers", len(u.order))
		}
	})
}
