package host_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// grouped makes a host with a group "g" of nodes that are ready.
func grouped(t *testing.T, nodes ...*node) *host.Host {
	t.Helper()
	h := &host.Host{}
	for _, n := range nodes {
		added(t, h, n.server("g"))
	}
	synctest.Wait()
	return h
}

// works makes calls one after the other, and returns how many each node got.
func works(t *testing.T, h *host.Host, n int, nodes ...*node) (counts []int) {
	t.Helper()
	for range n {
		work(t.Context(), h, "g")
	}
	for _, n := range nodes {
		counts = append(counts, n.count())
	}
	return counts
}

// about reports whether got is near want.
func about(got, want int) bool { return got >= want*9/10-1 && got <= want*11/10+1 }

// Calls are distributed by 1 / (latency x (1 + error rate)).
func TestGroupShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := &node{name: "a", takes: 10 * time.Millisecond}, &node{name: "b", takes: 20 * time.Millisecond}, &node{name: "c", takes: 40 * time.Millisecond}
		h := grouped(t, a, b, c)
		defer h.Close()
		if n := works(t, h, 3, a, b, c); n[0] != 1 || n[1] != 1 || n[2] != 1 {
			t.Errorf("the first three calls went %v, want each to another", n)
		}
		if n := works(t, h, 700, a, b, c); !about(n[0], 400) || !about(n[1], 200) || !about(n[2], 100) {
			t.Errorf("700 calls went %v, want about 400, 200 and 100", n)
		}
		s := status(t, h, "b")
		if s.Latency != 20*time.Millisecond || s.Calls < 180 || s.Errors != 0 || s.Group != "g" || s.Underway != 0 {
			t.Errorf("status of b: %+v", s)
		}

		// Half of the calls of a fail, never two in a row: it is half as good again as b.
		a.set(func() {
			a.takes, b.takes = 20*time.Millisecond, 20*time.Millisecond
			a.fails = func(n int) error {
				if n%2 == 0 {
					return mcp.Errorf(jsonrpc.CodeInternal, "no")
				}
				return nil
			}
		})
		c.set(func() { c.takes = 20 * time.Millisecond })
		works(t, h, 300, a, b, c) // let the host learn
		n := works(t, h, 800, a, b, c)
		if !about(n[0], 200) || !about(n[1], 300) || !about(n[2], 300) {
			t.Errorf("800 calls went %v, want about 200, 300 and 300", n)
		}
		if s := status(t, h, "a"); s.ErrorRate < 0.3 || s.ErrorRate > 0.7 || s.Errors < 100 {
			t.Errorf("status of a: %+v", s)
		}
	})
}

// A slow server still gets some calls, and gets its share back when it is fast again.
func TestGroupStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, slow := &node{name: "fast", takes: 10 * time.Millisecond}, &node{name: "slow", takes: 10 * time.Second}
		h := grouped(t, fast, slow)
		defer h.Close()
		works(t, h, 10, fast, slow)
		if n := works(t, h, 210, fast, slow); !about(n[1], 10) {
			t.Errorf("210 calls went %v, want about 10 to the slow one", n)
		}
		slow.set(func() { slow.takes = 10 * time.Millisecond })
		works(t, h, 1000, fast, slow)
		if n := works(t, h, 100, fast, slow); !about(n[1], 50) {
			t.Errorf("100 calls went %v, want half to each", n)
		}
	})
}

// A server in which calls hang gets fewer of the next ones, even before any has ended.
func TestGroupAvoidsWhoHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &node{name: "a", takes: 10 * time.Millisecond}, &node{name: "b", takes: 10 * time.Millisecond}
		h := grouped(t, a, b)
		defer h.Close()
		works(t, h, 20, a, b)
		a.set(func() { a.takes = time.Hour })
		for range 4 {
			go work(t.Context(), h, "g")
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		b.count()
		for range 20 {
			go work(ctx, h, "g")
			time.Sleep(20 * time.Millisecond)
		}
		if n := b.count(); n < 18 {
			t.Errorf("20 calls while a hangs: %d went to b, want nearly all", n)
		}
		if s := status(t, h, "a"); s.Underway < 2 {
			t.Errorf("status of a: %+v", s)
		}
	})
}

// A server that fails twice in a row is set aside, for longer each time, and then gets one trial
// call.
func TestGroupSetsAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &node{name: "a", takes: time.Millisecond}, &node{name: "b", takes: time.Millisecond}
		h := grouped(t, a, b)
		defer h.Close()
		works(t, h, 10, a, b)
		a.set(func() { a.fails = func(int) error { return errors.New("broken") } })
		if n := works(t, h, 50, a, b); n[0] != 2 || n[1] != 48 {
			t.Errorf("50 calls went %v, want 2 to the one that fails", n)
		}
		s := status(t, h, "a")
		if left := time.Until(s.Aside); left <= 0 || left > 5*time.Second {
			t.Errorf("it is left alone for %v more, want up to 5s", left)
		}
		for _, pause := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} {
			time.Sleep(pause)
			if n := works(t, h, 50, a, b); n[0] != 1 {
				t.Errorf("50 calls %v later went %v, want 1 to the one that fails", pause, n)
			}
		}
		a.set(func() { a.fails = nil })
		time.Sleep(40 * time.Second)
		works(t, h, 50, a, b)
		if n := works(t, h, 100, a, b); n[0] < 40 {
			t.Errorf("100 calls went %v, want half to the one that is back", n)
		}
		if s := status(t, h, "a"); !s.Aside.IsZero() {
			t.Errorf("status of a: %+v", s)
		}

		// A server outside of a group is never set aside.
		alone := &node{name: "alone", fails: func(int) error { return errors.New("broken") }}
		added(t, h, alone.server(""))
		for range 5 {
			work(t.Context(), h, "alone")
		}
		if s := status(t, h, "alone"); s.Errors != 5 || !s.Aside.IsZero() {
			t.Errorf("status of one that is of no group: %+v", s)
		}

		// If all are set aside, the one that is due first gets the call.
		broken := func(int) error { return errors.New("broken") }
		a.set(func() { a.fails = broken })
		b.set(func() { b.fails = broken })
		works(t, h, 10, a, b)
		if n := works(t, h, 10, a, b); n[0]+n[1] != 10 {
			t.Errorf("10 calls went %v, want one each", n)
		}
		h.Retry("g") // the person says that the servers are fine
		if s := status(t, h, "a"); !s.Aside.IsZero() {
			t.Errorf("status of a after Retry: %+v", s)
		}
	})
}

// While a trial call tests whether a server is back, other calls do not wait for it.
func TestGroupTriesWithOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &node{name: "a", takes: time.Millisecond}, &node{name: "b", takes: time.Millisecond}
		h := grouped(t, a, b)
		defer h.Close()
		a.set(func() { a.fails = func(int) error { return errors.New("broken") } })
		works(t, h, 20, a, b)
		time.Sleep(5 * time.Second)
		a.set(func() { a.takes = 10 * time.Second })
		for range 100 {
			go work(t.Context(), h, "g")
			time.Sleep(2 * time.Millisecond)
		}
		if n, m := a.count(), b.count(); n != 1 || m != 99 {
			t.Errorf("100 calls went %d and %d, want 1 and 99", n, m)
		}
		time.Sleep(time.Minute)
	})
}

// Only a call that was certainly not accepted goes to the next server.
func TestGroupGoesOn(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	tests := []struct {
		name string
		err  error
		next bool
	}{
		{"dial", dial, true},
		{"429", &mcp.HTTPError{Status: http.StatusTooManyRequests}, true},
		{"503 with Retry-After", &mcp.HTTPError{Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"1"}}}, true},
		{"401", &mcp.HTTPError{Status: http.StatusUnauthorized}, true},
		{"500", &mcp.HTTPError{Status: http.StatusInternalServerError}, false},
		{"lost", mcp.ErrClosed, false},
		{"invalid params", mcp.Errorf(jsonrpc.CodeInvalidParams, "no"), false},
		{"time-out", context.DeadlineExceeded, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := &node{name: "a"}, &node{name: "b"}
				h := grouped(t, a, b)
				defer h.Close()
				a.set(func() { a.fails = func(int) error { return tt.err } })
				text, err := work(t.Context(), h, "g")
				if tt.next && (err != nil || text != "by b") || !tt.next && !errors.Is(err, tt.err) {
					t.Errorf("work = %q, %v", text, err)
				}
				if n := b.count(); (n == 1) != tt.next {
					t.Errorf("%d calls at the next one", n)
				}
			})
		})
	}
}

// A call that one member has refused, while the others were unavailable, has not run, even if it
// was cancelled while it waited for one of those.
func TestGroupRefuses(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		t.Run(fmt.Sprintf("cancelled=%v", cancelled), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := &node{name: "a"}, &node{name: "b", refuses: errors.New("no such program")}
				a.set(func() { a.fails = func(int) error { return &mcp.HTTPError{Status: http.StatusTooManyRequests} } })
				missing := b.server("g")
				if cancelled {
					missing.Open = func(ctx context.Context, _ *mcp.Client) (mcp.Handler, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					}
				}
				m := calls([]string{"g_work {}"})
				h := &host.Host{Model: m, Allow: []string{"*"}}
				defer h.Close()
				added(t, h, a.server("g"), missing)
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c, d := h.NewConversation(), &diary{}
				c.OnEvent = d.note
				if cancelled {
					time.AfterFunc(time.Second, cancel)
				}
				c.Send(ctx, "go")
				want, told := host.Broken, "may work later"
				if cancelled {
					want, told = host.Cancelled, "It has not run"
				}
				r := c.Entries[2].Parts[0].Result
				if got := d.outcome(t, "c1.1"); got != want || r.Unknown || !strings.Contains(r.Parts[0].Text, told) || a.count() == 0 {
					t.Errorf("%s, want %s; the model is told %q, unknown %v", got, want, r.Parts[0].Text, r.Unknown)
				}
			})
		})
	}
}

// The model sees a group as one server while at least one member is available. Lists are those of
// the first member. A permanent approval covers the current members.
func TestGroupIsOneServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &node{name: "a"}, &node{name: "b"}
		asked := ""
		m := calls([]string{`g_work {}`}, []string{`g_work {}`})
		h := &host.Host{Model: m, Person: approver{approve: func(_ context.Context, a *host.Approval) (host.Verdict, error) {
			asked += a.Server + " "
			return host.Verdict{Answer: host.AllowConversation}, nil
		}}}
		defer h.Close()
		added(t, h, a.server("g"), (&node{name: "other"}).server(""), b.server("g"))
		synctest.Wait()
		var names []string
		for _, tool := range h.Tools(t.Context()) {
			names = append(names, tool.Name+" "+tool.Description)
		}
		if got := strings.Join(names, ", "); got != "g_work as a has it, other_work as other has it" {
			t.Errorf("tools: %s", got)
		}
		d := talk(t, h)
		if asked != "g " || m.result(t, "c1.1") == m.result(t, "c2.1") || d.outcome(t, "c2.1") != host.Succeeded {
			t.Errorf("approvals %q, results %q and %q; want one, and each from another", asked, m.result(t, "c1.1"), m.result(t, "c2.1"))
		}
		if err := h.Add((&node{name: "g"}).server("")); err == nil {
			t.Error("a server may have the name of a group of others")
		}
		if err := h.Add((&node{name: "x"}).server("other")); err == nil {
			t.Error("a group may have the name of another server")
		}

		h.Remove("a")
		synctest.Wait()
		if text, err := work(t.Context(), h, "g"); text != "by b" || err != nil {
			t.Errorf("work = %q, %v", text, err)
		}
		h.Remove("b")
		if _, err := work(t.Context(), h, "g"); err == nil || !strings.Contains(err.Error(), `no server "g"`) {
			t.Errorf("a group without servers: %v", err)
		}
	})
}
