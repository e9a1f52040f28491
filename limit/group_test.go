package limit_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// bus is one that gives everything to everybody, at once.
type bus struct {
	mu    sync.Mutex
	takes []func([]byte) // guarded by mu
	bytes int            // guarded by mu
	cut   bool           // guarded by mu
}

func (b *bus) Publish(_ context.Context, _ string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes += len(data)
	if !b.cut {
		for _, take := range b.takes {
			take(slices.Clone(data))
		}
	}
	return nil
}

func (b *bus) Subscribe(_ string, f func([]byte)) (func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takes = append(b.takes, f)
	return func() {}, nil
}

// group is the nodes of a cluster, with the callers of each.
type group struct {
	*bus
	t     *testing.T
	n     seen
	nodes []*wire
}

func newGroup(t *testing.T, n int, l func() *limit.Limiter) *group {
	g := &group{bus: new(bus), t: t}
	for range n {
		g.add(l())
	}
	return g
}

// add adds a node.
func (g *group) add(l *limit.Limiter) {
	g.n.Add(1)
	l.Group = &limit.Group{Nodes: &g.n, Bus: g.bus}
	leave, err := l.Group.Join()
	if err != nil {
		g.t.Fatal(err)
	}
	srv := newServer(l)
	g.nodes = append(g.nodes, &wire{t: g.t, h: srv, user: "ada"})
	g.t.Cleanup(func() {
		leave()
		_ = srv.Shutdown(context.Background())
	})
}

// made makes calls at nodes that to chooses, in a time, at a pace, and returns how many were admitted.
func (g *group) made(in, pace time.Duration, to func(call int) int) (n int) {
	for call := 0; time.Duration(call)*pace < in; call++ {
		if g.nodes[to(call)].call("one").Code == 200 {
			n++
		}
		time.Sleep(pace)
	}
	return n
}

func at(node int) func(int) int { return func(int) int { return node } }

func between(t *testing.T, what string, n, least, most int) {
	t.Helper()
	if n < least || n > most {
		t.Errorf("%s: %d calls, want %d to %d", what, n, least, most)
	}
}

func perSecond(n int) func() *limit.Limiter {
	return func() *limit.Limiter { return &limit.Limiter{Caller: limit.Rate{Count: n, Per: time.Second}} }
}

// The parts of a limit follow the requests of a caller: nearly all of it, where all go to one node, and equal parts where a balancer spreads them.
func TestPartsFollowRequests(t *testing.T) {
	long.WithoutRace(t)
	const s = time.Second
	for name, test := range map[string]struct {
		to          func(call int) int
		least, most int // of 30 s at 30/s
	}{
		"one node":                {at(0), 840, 990},
		"round robin":             {func(call int) int { return call % 3 }, 855, 990},
		"by chance":               {func(int) int { return rand.IntN(3) }, 810, 990},
		"two nodes":               {func(call int) int { return call % 2 }, 840, 990},
		"mostly one":              {func(call int) int { return max(0, call%10-7) }, 810, 990},
		"a new node every 10 s":   {func(call int) int { return call / 600 % 3 }, 650, 990},
		"a new node every second": {func(call int) int { return call / 60 % 3 }, 450, 990},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t, 3, perSecond(30))
				n := g.made(30*s, s/60, test.to)
				t.Logf("%s: %d", name, n)
				between(t, name, n, test.least, test.most)
			})
		})
	}
}

// A slow limit has its burst at one node, after a moment.
func TestBurstAtOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3, func() *limit.Limiter {
			return &limit.Limiter{Tools: map[string]limit.Rate{"one": {Count: 12, Per: time.Minute}}}
		})
		between(t, "the first second", g.made(time.Second, time.Second/20, at(1)), 11, 12)
		g.nodes[0].call("one")
		w := g.nodes[0].call("one")
		if after, _ := strconv.Atoi(w.Header().Get("Retry-After")); after < 1 || after > 15 { // a third of the limit is one in 15 s
			t.Errorf("the node with a small part says to come again after %d s", after)
		}
		between(t, "two minutes", g.made(2*time.Minute, time.Second, at(1)), 21, 25)
		time.Sleep(10 * time.Minute)
		between(t, "the first second after a pause", g.made(time.Second, time.Second/20, at(1)), 11, 12)
		between(t, "two minutes at all nodes", g.made(2*time.Minute, time.Second, func(call int) int { return call % 3 }), 20, 26)
	})
}

// A caller that used all nodes, and then one, has nearly all of the limit there; the first requests count, too.
func TestPartsAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3, func() *limit.Limiter {
			return &limit.Limiter{Tools: map[string]limit.Rate{"one": {Count: 12, Per: time.Minute}}}
		})
		all := func(call int) int { return call % 3 }
		between(t, "the first calls at all nodes", g.made(time.Second, time.Second/12, all), 11, 13)
		between(t, "seven seconds more", g.made(7*time.Second, time.Second/5, all), 0, 3)
		time.Sleep(65 * time.Second)
		between(t, "the first second at one node", g.made(time.Second, time.Second/20, at(2)), 11, 12)
	})
}

// A caller that sends all at once to one node is told to come again in a second, and has the rest of the limit then.
func TestComeAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3, func() *limit.Limiter {
			return &limit.Limiter{Tools: map[string]limit.Rate{"one": {Count: 12, Per: time.Minute}}}
		})
		n := 0
		for range 3 {
			w := g.nodes[0].call("one")
			for ; w.Code == 200; w = g.nodes[0].call("one") {
				n++
			}
			after, _ := strconv.Atoi(w.Header().Get("Retry-After"))
			if n < 11 && after != 1 {
				t.Errorf("after %d calls: Retry-After is %d", n, after)
			}
			time.Sleep(time.Duration(after) * time.Second)
		}
		between(t, "calls after two pauses", n, 11, 14)
	})
}

// A limit of one request in a minute is that at one node, and each other one allows one, too.
func TestOneInAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3, func() *limit.Limiter {
			return &limit.Limiter{Tools: map[string]limit.Rate{"one": {Count: 1, Per: time.Minute}}}
		})
		between(t, "a minute", g.made(time.Minute, time.Second/2, at(0)), 1, 1)
		between(t, "the others at once", g.made(time.Second, time.Second/4, func(call int) int { return 1 + call%2 }), 2, 2)
		between(t, "ten minutes", g.made(10*time.Minute, time.Second, at(0)), 7, 10)
	})
}

// A caller who takes all that a node gives, and then goes to the next one, has hardly more than one who stays.
func TestNoMoreAtOtherNodes(t *testing.T) {
	long.WithoutRace(t)
	for _, pause := range []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			g := newGroup(t, 3, func() *limit.Limiter {
				return &limit.Limiter{Caller: limit.Rate{Count: 60, Per: time.Minute}}
			})
			began, n := time.Now(), 0
			for node := range 300 {
				for g.nodes[node%3].call("one").Code == 200 {
					n++
				}
				time.Sleep(pause)
			}
			between(t, pause.String(), n, 35, 60+15+int(time.Since(began).Seconds()*1.01)) // what one tells is true a moment ago
		})
	}
}

// The requests at once of a caller are bounded at all nodes together, and one node may have nearly all of them.
func TestRunningAtOneNode(t *testing.T) {
	for name, rate := range map[string]limit.Rate{"alone": {}, "with a rate": {Count: 100, Per: time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var begun atomic.Int64
				g := newGroup(t, 3, func() *limit.Limiter { return &limit.Limiter{Concurrent: 9, Caller: rate} })
				for _, w := range g.nodes {
					mcp.AddTool(w.h.(*mcp.Server), mcp.Tool{Name: "wait"}, func(context.Context, struct{}) (string, error) {
						begun.Add(1)
						<-release
						return "", nil
					})
				}
				var ok atomic.Int64
				var all sync.WaitGroup
				for node := range g.nodes {
					for range 30 {
						all.Go(func() {
							if g.nodes[node].call("wait").Code == 200 {
								ok.Add(1)
							}
						})
						time.Sleep(time.Second)
					}
					if n := ok.Load(); n > 0 {
						t.Errorf("%d calls are answered", n)
					}
					between(t, "at the first nodes", int(begun.Load()), 9, 9+node)
				}
				close(release)
				all.Wait()
				between(t, "at once", int(ok.Load()), 9, 11)
			})
		})
	}
}

// Nodes that do not hear each other have equal parts.
func TestPartsWithoutBus(t *testing.T) {
	long.WithoutRace(t)
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3, perSecond(30))
		const s = time.Second
		between(t, "all", g.made(10*s, s/60, at(0)), 255, 315)
		g.bus.mu.Lock()
		g.cut = true
		g.bus.mu.Unlock()
		g.made(10*s, s/60, at(0))
		between(t, "a third", g.made(10*s, s/60, at(0)), 95, 105)
		between(t, "another third", g.made(10*s, s/60, at(1)), 95, 110)
		g.bus.mu.Lock()
		g.cut = false
		g.bus.mu.Unlock()
		g.made(5*s, s/60, at(0))
		between(t, "all again", g.made(10*s, s/60, at(0)), 250, 310)
	})
}

// A node that begins has its part within a second, and what one that has died had is free after a few.
func TestPartsOfNewAndDeadNodes(t *testing.T) {
	long.WithoutRace(t)
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		g := newGroup(t, 2, perSecond(30))
		between(t, "one of two", g.made(10*s, s/60, at(0)), 270, 330)
		g.add(perSecond(30)())
		between(t, "one of three", g.made(10*s, s/60, at(0)), 250, 310)
		n := 0
		for range 10 {
			n += g.made(s, s/60, func(call int) int { return call % 3 })
		}
		between(t, "all three", n, 255, 310)
		g.n.Store(2) // the third one is not seen any more
		g.made(8*s, s/60, func(call int) int { return call % 2 })
		between(t, "those that are left", g.made(10*s, s/60, func(call int) int { return call % 2 }), 250, 310)
	})
}

// Of callers who are not near their limits, nodes tell each other nothing.
func TestNothingToTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3, perSecond(30))
		g.made(10*time.Second, time.Second/4, func(call int) int { return call % 3 })
		g.bus.mu.Lock()
		if g.bytes != 0 {
			t.Errorf("%d bytes of a caller far from the limit", g.bytes)
		}
		g.bus.mu.Unlock()
		g.made(10*time.Second, time.Second/60, at(0))
		g.bus.mu.Lock()
		if g.bytes == 0 || g.bytes > 5000 {
			t.Errorf("%d bytes of a caller near the limit, in 10 s", g.bytes)
		}
		g.bus.mu.Unlock()
		time.Sleep(time.Minute)
		g.bus.mu.Lock()
		before := g.bytes
		g.bus.mu.Unlock()
		time.Sleep(time.Minute)
		g.bus.mu.Lock()
		defer g.bus.mu.Unlock()
		if g.bytes != before {
			t.Errorf("%d bytes of a caller who has left", g.bytes-before)
		}
	})
}

// Messages that are none of this version change nothing.
func TestForeignMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 2, perSecond(30))
		g.nodes[0].call("one")
		for n := range 60 {
			m := make([]byte, n)
			for i := range m {
				m[i] = byte(rand.Uint32())
			}
			if n > 0 {
				m[0] = byte(n % 3)
			}
			_ = g.Publish(t.Context(), "limits", m)
		}
		between(t, "a second", g.made(time.Second, time.Second/60, at(0)), 15, 60)
		between(t, "ten seconds", g.made(10*time.Second, time.Second/60, at(0)), 255, 315)
	})
}
