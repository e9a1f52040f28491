package spread_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Replicas are restarted one after another under 16 callers, and no call fails. With the last replica that
// works, calls wait.
func TestRestartReplicas(t *testing.T) {
	t.Parallel()
	for _, rev := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_06_18} {
		t.Run(string(rev), func(t *testing.T) {
			a, b := newBox(t, "a"), newBox(t, "b")
			var atA, atB atomic.Int64
			group := &spread.Group{Name: "work", Logger: quiet(), Replicas: []spread.Replica{a.replica(rev, &atA), b.replica(rev, &atB)}}
			_, session := through(t, group, gateway.Shared)
			s := session()
			connected(t, group)
			compared(t, s, a, b)
			mark := load(t, session, "work_which")
			for round := range int64(3) {
				before := b.calls.Load()
				for i, name := range []string{"a", "b"} {
					if err := group.Restart(t.Context(), name, 10*time.Second); err != nil {
						t.Fatalf("replica %s: %v", name, err)
					}
					if st := group.Status()[i]; st.Out != "" || st.Conns == 0 {
						t.Errorf("after the restart: %+v", st)
					}
				}
				if n, m := atA.Load(), atB.Load(); n < round+2 || m < round+2 { // more with a probe
					t.Errorf("connections opened: %d and %d", n, m)
				}
				eventually(t, "calls go on", func() bool { return b.calls.Load() > before+20 })
			}
			if n, errs := mark(); len(errs) > 0 || n < 50 {
				t.Errorf("%d calls, %d failed: %v", n, len(errs), errs)
			}
			b.kill()
			eventually(t, "the other is gone", func() bool { return group.Status()[1].Conns == 0 || group.Status()[1].Breaker.Open })
			eventually(t, "calls work", func() bool { _, errs := mark(); return len(errs) == 0 })
			if err := group.Restart(t.Context(), "a", 10*time.Second); err != nil {
				t.Fatal(err)
			}
			before := a.calls.Load()
			eventually(t, "calls go on", func() bool { return a.calls.Load() > before+20 })
			if _, errs := mark(); len(errs) > 0 {
				t.Errorf("while the last replica is restarted: %d failed, such as %v", len(errs), errs[0])
			}
		})
	}
}

// A call in progress finishes before its replica is restarted, or is told who has cut it off.
func TestRestartReplicaInMidCall(t *testing.T) {
	t.Parallel()
	a := newBox(t, "a")
	b := newBox(t, "b")
	held, begun := make(chan bool), make(chan *box, 2)
	for _, box := range []*box{a, b} {
		mcp.AddTool(box.srv, mcp.Tool{Name: "hold"}, func(ctx context.Context, _ struct{}) (string, error) {
			begun <- box
			select {
			case <-held:
				return "held", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
	}
	group := &spread.Group{Name: "work", Logger: quiet(), Replicas: []spread.Replica{a.patient(mcp.V2026_07_28), b.patient(mcp.V2026_07_28)}}
	_, session := through(t, group, gateway.Shared)
	s := session()
	connected(t, group)
	compared(t, s, a, b)
	for _, drain := range []time.Duration{30 * time.Second, 0} {
		type end struct {
			text string
			err  error
		}
		ended := make(chan end)
		go func() {
			text, err := call(t, s, "work_hold")
			ended <- end{text, err}
		}()
		at := <-begun
		restarted := make(chan error)
		go func() { restarted <- group.Restart(t.Context(), at.name, drain) }()
		if drain > 0 {
			eventually(t, "it is taken out", func() bool {
				st := group.Status()
				return st[0].Out+st[1].Out == "is being restarted by its operator"
			})
			for range 20 {
				if text, err := call(t, s, "work_which"); err != nil || text == at.name {
					t.Fatalf("meanwhile: %q, %v", text, err)
				}
			}
			held <- true
			if e := <-ended; e.err != nil || e.text != "held" {
				t.Errorf("with time: %+v", e)
			}
		} else if e := <-ended; e.err == nil || !strings.Contains(e.err.Error(), "the tool may or may not have run: it was restarted by its operator") {
			t.Errorf("without time: %+v", e)
		}
		if err := <-restarted; err != nil {
			t.Error(err)
		}
	}
}

// A disabled replica gets no calls until it is enabled, also of connections that are opened meanwhile.
func TestDisableReplica(t *testing.T) {
	t.Parallel()
	a, b := newBox(t, "a"), newBox(t, "b")
	group := &spread.Group{Name: "work", Logger: quiet(), Replicas: []spread.Replica{a.patient(mcp.V2025_06_18), b.patient(mcp.V2025_06_18)}}
	_, session := through(t, group, gateway.PerSession)
	s := session()
	connected(t, group)
	if did, err := group.Disable("a", "patchbay enable work --replica a", 0); err != nil || !did {
		t.Fatal(did, err)
	}
	if did, err := group.Disable("a", "", 0); err != nil || did {
		t.Errorf("twice: %v, %v", did, err)
	}
	if err := group.Restart(t.Context(), "a", 0); !errors.Is(err, spread.ErrDisabled) {
		t.Errorf("a restart: %v", err)
	}
	eventually(t, "it has no connection", func() bool { return group.Status()[0].Conns == 0 })
	eventually(t, "the state that was lost is told", func() bool { text, err := call(t, s, "work_which"); return err == nil && text == "b" })
	for range 20 {
		if text, err := call(t, session(), "work_which"); err != nil || text != "b" {
			t.Fatalf("%q, %v", text, err)
		}
	}
	if st := group.Status()[0]; !st.Disabled() || st.Conns != 0 || st.Out != "is disabled (patchbay enable work --replica a)" {
		t.Errorf("%+v", st)
	}
	if did, err := group.Enable(t.Context(), "a"); err != nil || !did {
		t.Fatal(did, err)
	}
	eventually(t, "it gets calls", func() bool { text, err := call(t, session(), "work_which"); return err == nil && text == "a" })
	var unknown *spread.UnknownReplica
	if err := group.Restart(t.Context(), "c", 0); !errors.As(err, &unknown) || err.Error() != `no replica "c"; replicas: a, b` {
		t.Errorf("an unknown replica: %v", err)
	}
}

// A replica that does not start again is reported with the reason, and Disable during a restart wins.
func TestRestartFails(t *testing.T) {
	t.Parallel()
	a, b := newBox(t, "a"), newBox(t, "b")
	group := &spread.Group{Name: "work", Logger: quiet(), Rule: breaker.Rule{}, Replicas: []spread.Replica{a.patient(mcp.V2026_07_28), b.patient(mcp.V2026_07_28)}}
	_, session := through(t, group, gateway.Shared)
	s := session()
	connected(t, group)
	compared(t, s, a, b)
	a.kill()
	if err := group.Restart(t.Context(), "a", 0); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a replica that is gone: %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { group.Restart(t.Context(), "b", 0) })
	wg.Go(func() { group.Disable("b", "x", 0) })
	wg.Wait()
	if st := group.Status()[1]; !st.Disabled() {
		t.Errorf("%+v", st)
	}
}

// If no replica can be opened, the error has the cause of each, in one line.
func TestOpenNamesAllReplicas(t *testing.T) {
	fails := func(name string) spread.Replica {
		return spread.Replica{Name: name, Open: func(context.Context) (gateway.Upstream, error) { return nil, errors.New(name + " is away") }}
	}
	group := &spread.Group{Name: "work", Logger: quiet(), Replicas: []spread.Replica{fails("a"), fails("b")}}
	_, err := group.Open(t.Context())
	if err == nil || err.Error() != "replica a: a is away; replica b: b is away" && err.Error() != "replica b: b is away; replica a: a is away" {
		t.Errorf("Open = %v", err)
	}
}
