package gateway_test

import (
	"context"
	"errors"
	"fmt"
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
		l, err := cluster.Acquire(ctx, s, "server."+server, node, 10*time.Second)
		switch {
		case errors.Is(err, cluster.ErrConflict):
			return nil, fmt.Errorf("%w (%w)", gateway.ErrInUse, err)
		case err != nil:
			return nil, err
		}
		return l, nil
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
		if got := use(t, a, 1); !strings.Contains(got, "kept for you is gone: unused for 1m0s") {
			t.Errorf("after two minutes and the end of the other gateway: %s", got)
		}
		if got := use(t, a, 1); got != "used" {
			t.Errorf("then: %s", got)
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

// atGateways returns a function that connects to gateways a, b and so on, each of which uses the exclusive server db with a lock of a State.
func atGateways(t *testing.T, shared cluster.State, src ...gateway.Source) (connectTo func(node int, rev mcp.Revision) *mcp.Session, stops []func()) {
	u := &usage{inside: map[int]int{}}
	var all []*gateway.Gateway
	for i, s := range src {
		f := &farm{rev: mcp.V2025_11_25, more: u.add}
		g := &gateway.Gateway{Name: "g", Version: "1", Lock: lockedBy(shared, string(rune('a'+i)))}
		s.Name, s.Open, s.Share = "db", f.Open, gateway.Exclusive
		stops = append(stops, run(t, g, s))
		all = append(all, g)
	}
	return func(node int, rev mcp.Revision) *mcp.Session { return connect(t, all[node], rev) }, stops
}

// The requests of a client without a session come to any gateway, so its lock ends with its requests.
func TestExclusiveWithoutSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, _ := atGateways(t, new(cluster.Memory), gateway.Source{}, gateway.Source{})
		one, two := at(0, mcp.V2026_07_28), at(1, mcp.V2026_07_28)
		for i := range 4 {
			s := one
			if i%2 == 1 {
				s = two
			}
			if got := use(t, s, 1); got != "used" {
				t.Errorf("request %d: %s", i, got)
			}
			synctest.Wait()
		}
		if got := use(t, at(0, mcp.V2025_11_25), 2); got != "used" { // another caller at the same node
			t.Error(got)
		}
	})
}

// A caller that another gateway keeps from the server does not keep it from others here, and its parallel calls wait at the same time.
func TestExclusiveRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, _ := atGateways(t, new(cluster.Memory), gateway.Source{}, gateway.Source{})
		a, x, y := at(0, mcp.V2025_11_25), at(1, mcp.V2025_11_25), at(1, mcp.V2025_11_25)
		if got := use(t, a, 1); got != "used" {
			t.Fatal(got)
		}
		began := time.Now()
		var calls sync.WaitGroup
		for range 6 {
			calls.Go(func() {
				if got := use(t, x, 2); !strings.Contains(got, "in use by a caller at another node") {
					t.Error(got)
				}
			})
		}
		calls.Wait()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("six calls have waited for %v", took)
		}
		a.Close()
		synctest.Wait()
		if got := use(t, y, 3); got != "used" {
			t.Errorf("another caller of that gateway: %s", got)
		}
	})
}

// A request that is cancelled, before it has the lock or while the lock is renewed, leaves the server to its caller.
func TestExclusiveCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &silent{State: new(cluster.Memory)}
		at, _ := atGateways(t, shared, gateway.Source{})
		x, y := at(0, mcp.V2025_11_25), at(0, mcp.V2025_11_25)
		if got := use(t, x, 1); got != "used" {
			t.Fatal(got)
		}
		shared.away.Store(true)             // renewals of the lease of 10 seconds are late
		time.Sleep(7300 * time.Millisecond) // the lease is held for 9 seconds since it was taken
		var long sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		long.Go(func() {
			if _, err := x.CallTool(ctx, "db_use", map[string]any{"caller": 1}); err == nil {
				t.Error("the call was not cancelled")
			}
		})
		long.Wait()
		shared.away.Store(false)
		if got := use(t, y, 2); !strings.Contains(got, "in use by another session") {
			t.Errorf("another session: %s", got)
		}
		if got := use(t, x, 1); got != "used" {
			t.Errorf("the session: %s", got)
		}
	})
}

// A source ends while a request waits for the lock.
func TestExclusiveEndsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, stops := atGateways(t, new(cluster.Memory), gateway.Source{Idle: 5 * time.Hour}, gateway.Source{Queue: time.Hour})
		a, x := at(0, mcp.V2025_11_25), at(1, mcp.V2025_11_25)
		if got := use(t, a, 1); got != "used" {
			t.Fatal(got)
		}
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if got := use(t, x, 2); !strings.Contains(got, "is stopped") {
				t.Error(got)
			}
		})
		time.Sleep(time.Second)
		began := time.Now()
		stops[1]()
		waiting.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end took %v", took)
		}
	})
}

// A call whose gateway loses the lock is cancelled, with words. A State that gives no answer is not taken for another user.
func TestExclusiveLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &silent{State: new(cluster.Memory)}
		began, ended := make(chan struct{}), make(chan struct{})
		f := &farm{rev: mcp.V2025_11_25, more: func(_ int, s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "use"}, func(ctx context.Context, _ struct {
				Caller int `json:"caller"`
			}) (string, error) {
				close(began)
				<-ctx.Done()
				close(ended)
				return "", context.Cause(ctx)
			})
		}}
		g := &gateway.Gateway{Name: "g", Version: "1", Lock: lockedBy(shared, "a")}
		run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.Exclusive})
		s := connect(t, g, mcp.V2025_11_25)
		var calls sync.WaitGroup
		calls.Go(func() {
			if got := use(t, s, 1); !strings.Contains(got, "the owner has changed") || !strings.Contains(got, "may have had an effect") {
				t.Errorf("the call: %s", got)
			}
		})
		<-began
		shared.away.Store(true)
		calls.Wait()
		<-ended
		if got := use(t, s, 1); !strings.Contains(got, "whether another node uses it is not known") {
			t.Errorf("then: %s", got)
		}
	})
}

// silent is a State without a majority: Put gets no answer.
type silent struct {
	cluster.State
	away atomic.Bool
}

func (s *silent) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if s.away.Load() {
		<-ctx.Done()
		return 0, errors.Join(context.Cause(ctx), context.DeadlineExceeded)
	}
	return s.State.Put(ctx, key, value, version, ttl)
}
