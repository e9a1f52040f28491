package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// timeline records when calls run.
type timeline struct {
	mu     sync.Mutex
	start  time.Time
	now    int      // calls that run; guarded by mu
	most   int      // at the same time; guarded by mu
	events []string // guarded by mu
}

// tool adds a tool that takes a second.
func (c *timeline) tool(srv *mcp.Server, name string, hints *mcp.ToolAnnotations) {
	mcp.AddTool(srv, mcp.Tool{Name: name, Annotations: hints}, func(ctx context.Context, in struct {
		X int `json:"x,omitempty"`
	}) (string, error) {
		c.mu.Lock()
		c.now++
		c.most = max(c.most, c.now)
		c.events = append(c.events, fmt.Sprintf("%ds %s/%s %d", time.Since(c.start)/time.Second, srv.Name, name, in.X))
		c.mu.Unlock()
		time.Sleep(time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now--
		return "ok", nil
	})
}

// Calls of one answer run in parallel up to the limit, but those that change something keep their
// order within their server, and of two identical calls the second waits for the first.
func TestOrderOfCalls(t *testing.T) {
	tests := []struct {
		name  string
		calls []string
		want  []string
	}{
		{"independent", []string{`a_plain {"x":1}`, `a_plain {"x":2}`, `a_read {"x":3}`, `b_plain {"x":4}`},
			[]string{"0s a/plain 1", "0s a/plain 2", "0s a/read 3", "0s b/plain 4"}},
		{"the same", []string{`a_plain {"x":1}`, `a_plain {"x": 1}`, `b_plain {"x":1}`},
			[]string{"0s a/plain 1", "0s b/plain 1", "1s a/plain 1"}},
		{"writes among reads", []string{`a_read {"x":1}`, `a_plain {"x":2}`, `a_write {"x":3}`, `b_write {"x":4}`, `a_read {"x":5}`, `a_read {"x":6}`, `a_write {"x":7}`},
			[]string{"0s a/plain 2", "0s a/read 1", "0s b/write 4", "1s a/write 3", "2s a/read 5", "2s a/read 6", "3s a/write 7"}},
		{"more than may run", []string{`a_plain {"x":1}`, `a_plain {"x":2}`, `a_plain {"x":3}`, `a_plain {"x":4}`, `a_plain {"x":5}`, `a_plain {"x":6}`}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := &timeline{}
				var servers []host.Server
				for _, name := range []string{"a", "b"} {
					srv := &mcp.Server{Name: name, Version: "1"}
					clock.tool(srv, "plain", nil)
					clock.tool(srv, "read", &mcp.ToolAnnotations{ReadOnly: ptr(true)})
					clock.tool(srv, "write", &mcp.ToolAnnotations{ReadOnly: ptr(false)})
					servers = append(servers, inMemory(name, srv))
				}
				m := calls(tt.calls)
				h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}, Limits: host.Limits{Parallel: 4}}, servers...)
				defer h.Close()
				clock.start = time.Now()
				d := talk(t, h)
				slices.Sort(clock.events)
				if diff := cmp.Diff(tt.want, clock.events); diff != "" && tt.want != nil {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				if tt.want == nil && (clock.most != 4 || time.Since(clock.start) < 2*time.Second || time.Since(clock.start) > 3*time.Second) {
					t.Errorf("%d calls at the same time, %v in all", clock.most, time.Since(clock.start))
				}
				for i := range tt.calls {
					if got := d.outcome(t, fmt.Sprintf("c1.%d", i+1)); got != host.Succeeded {
						t.Errorf("%s: %s", tt.calls[i], got)
					}
				}
			})
		})
	}
}

// Calls that wait for the person do not delay other calls.
func TestWaitingHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := calls([]string{`s_plain {"x":1}`, `s_plain {"x":2}`, `s_write {}`, `s_read {}`})
		start := time.Now()
		h := newHost(t, &host.Host{Model: m, Limits: host.Limits{Parallel: 1}, Allow: []string{"s/read"}, Person: approver{approve: func(ctx context.Context, a *host.Approval) (host.Verdict, error) {
			time.Sleep(time.Hour)
			return host.Verdict{Answer: host.AllowOnce}, nil
		}}}, inMemory("s", tools()))
		defer h.Close()
		c := h.NewConversation()
		var read time.Duration
		c.OnEvent = func(e host.Event) {
			if e.Kind == host.Resulted && e.Call.Tool == "read" {
				read = time.Since(start)
			}
		}
		// The read comes after a write, which waits for the person; without that it would be at once.
		m.turns[0] = slices.Delete(m.turns[0], 2, 3)
		if _, err := c.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if read > time.Second {
			t.Errorf("the call that needs no approval was over after %v", read)
		}
	})
}

// A cancelled call ends at once, whatever its server does, and the server is notified. The model is
// told that it may have run, and the same call is not repeated without asking.
func TestCancelledCall(t *testing.T) {
	for _, rude := range []bool{false, true} {
		t.Run(fmt.Sprintf("rude=%v", rude), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, told := make(chan struct{}, 1), make(chan struct{}, 1)
				srv := &mcp.Server{Name: "s", Version: "1"}
				mcp.AddTool(srv, mcp.Tool{Name: "hang"}, func(ctx context.Context, _ struct{}) (string, error) {
					begun <- struct{}{}
					<-ctx.Done()
					told <- struct{}{}
					if rude {
						time.Sleep(time.Hour)
					}
					return "late", nil
				})
				m := calls([]string{"s_hang {}"})
				h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("s", srv))
				defer h.Close()
				c, d := h.NewConversation(), &diary{}
				c.OnEvent = d.note
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					<-begun
					cancel(errors.New("enough"))
				}()
				start := time.Now()
				if _, err := c.Send(ctx, "go"); err == nil || err.Error() != "enough" {
					t.Errorf("Send = %v", err)
				}
				if took := time.Since(start); took > time.Second || d.outcome(t, "c1.1") != host.Cancelled {
					t.Errorf("%s after %v", d.outcome(t, "c1.1"), took)
				}
				<-told
				if r := c.Entries[2].Parts[0].Result; !r.Unknown || !strings.Contains(r.Parts[0].Text, "may or may not have happened") {
					t.Errorf("result %+v", r)
				}
				c.Model = calls([]string{"s_hang {}"})
				if _, err := c.Send(t.Context(), "go on"); err != nil {
					t.Fatal(err)
				}
				ends := d.of(host.Resulted)
				h.Close()
				time.Sleep(2 * time.Hour) // the rude one ends too
				if last := ends[len(ends)-1]; last.Call.Outcome != host.Denied || !strings.Contains(last.Error, "cancelled while it ran") {
					t.Errorf("the same call once more: %s, %s", last.Call.Outcome, last.Error)
				}
			})
		})
	}
}
