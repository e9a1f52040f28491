package spread_test

import (
	"context"
	"encoding/json"
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

// patient is a replica whose calls may be silent for an hour.
func (b *box) patient(rev mcp.Revision) spread.Replica {
	return spread.Replica{Name: b.name, Open: func(ctx context.Context) (gateway.Upstream, error) {
		c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{rev}}
		c.Limits.CallTimeout = time.Hour
		gateway.Relay(ctx, c)
		s, err := c.Dial(ctx, "http://"+b.addr)
		if err != nil {
			return nil, err
		}
		return s, nil
	}}
}

// compared waits until both replicas list their tools.
func compared(t *testing.T, s *mcp.Session, a, b *box) {
	t.Helper()
	eventually(t, "both replicas are compared and get calls", func() bool {
		_, err := call(t, s, "work_which")
		return err == nil && a.calls.Load() > 0 && b.calls.Load() > 0
	})
}

// A replica hangs with calls in flight. Those that may be repeated are answered by the other replica as soon
// as the breaker opens, although no limit is reached. A call that may have run waits for its answer.
func TestCallsAtAHungReplica(t *testing.T) {
	t.Parallel()
	yes := true
	a, b := newBox(t, "a"), newBox(t, "b")
	var frozen atomic.Bool
	waiting := make(chan string, 100)
	for _, box := range []*box{a, b} {
		run := func(tool string) func(ctx context.Context, _ struct{}) (string, error) {
			return func(ctx context.Context, _ struct{}) (string, error) {
				if box == a && frozen.Load() {
					waiting <- tool
					<-ctx.Done()
					return "", ctx.Err()
				}
				return box.name, nil
			}
		}
		mcp.AddTool(box.srv, mcp.Tool{Name: "look", Annotations: &mcp.ToolAnnotations{ReadOnly: &yes}}, run("look"))
		mcp.AddTool(box.srv, mcp.Tool{Name: "pay"}, run("pay"))
	}
	group := &spread.Group{Name: "work", Logger: quiet(), Trusted: true, Rule: breaker.Rule{For: time.Hour},
		Replicas: []spread.Replica{a.patient(mcp.V2026_07_28), b.patient(mcp.V2026_07_28)}}
	_, session := through(t, group, gateway.Shared)
	s := session()
	connected(t, group)
	compared(t, s, a, b)
	ctx, cancel := context.WithCancel(t.Context())
	frozen.Store(true)
	var looks, pays sync.WaitGroup
	var atB atomic.Int64
	for range 20 {
		looks.Go(func() {
			if res, err := s.CallTool(ctx, "work_look", nil); err != nil || res.Text() != "b" {
				t.Errorf("a call that may be repeated: %v, %v", res, err)
			}
		})
		pays.Go(func() {
			if _, err := s.CallTool(ctx, "work_pay", nil); err == nil {
				atB.Add(1)
			} else if ctx.Err() == nil {
				t.Errorf("a call that may have run: %v", err)
			}
		})
	}
	kinds := map[string]bool{}
	for !kinds["look"] || !kinds["pay"] {
		select {
		case tool := <-waiting:
			kinds[tool] = true
		case <-time.After(time.Minute):
			t.Fatalf("only these calls hang: %v", kinds)
		}
	}
	a.hang.Store(true) // now it does not answer a ping either
	looks.Wait()
	if !group.Status()[0].Breaker.Open {
		t.Error("the breaker is closed")
	}
	if atB.Load() == 20 {
		t.Error("all calls that may have run have ended at the replica that works")
	}
	cancel()
	pays.Wait()
}

// A replica that stops to answer is noticed whatever its callers do: with one call that began before its last
// answer, and with callers that leave sooner than it is suspected.
func TestSilenceIsNoticed(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, a *box) (*spread.Group, *mcp.Session) {
		group := &spread.Group{Name: "work", Logger: quiet(), Rule: breaker.Rule{For: time.Hour}, Replicas: []spread.Replica{a.patient(mcp.V2026_07_28)}}
		_, session := through(t, group, gateway.Shared)
		return group, session()
	}
	opens := func(t *testing.T, group *spread.Group) {
		eventually(t, "the breaker opens", func() bool {
			b := group.Status()[0].Breaker
			return b.Open && strings.Contains(b.Cause, "it has not answered a call, nor a probe")
		})
	}
	t.Run("a call from before", func(t *testing.T) {
		t.Parallel()
		a := newBox(t, "a")
		begun := make(chan bool)
		mcp.AddTool(a.srv, mcp.Tool{Name: "long"}, func(ctx context.Context, _ struct{}) (string, error) {
			begun <- true
			<-ctx.Done()
			return "", ctx.Err()
		})
		group, s := start(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() { defer close(done); s.CallTool(ctx, "work_long", nil) }()
		defer func() { cancel(); <-done }()
		<-begun
		if _, err := call(t, s, "work_which"); err != nil {
			t.Fatal(err)
		}
		a.hang.Store(true)
		opens(t, group)
	})
	t.Run("callers that leave", func(t *testing.T) {
		t.Parallel()
		a := newBox(t, "a")
		group, s := start(t, a)
		if _, err := call(t, s, "work_which"); err != nil {
			t.Fatal(err)
		}
		a.hang.Store(true)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if _, err := s.CallTool(ctx, "work_which", nil); err == nil {
				t.Error("a call at a replica that hangs has a result")
			}
			cancel()
		}
		opens(t, group)
	})
	t.Run("a long call is not silence", func(t *testing.T) {
		t.Parallel()
		a := newBox(t, "a")
		mcp.AddTool(a.srv, mcp.Tool{Name: "long"}, func(ctx context.Context, _ struct{}) (string, error) {
			select {
			case <-time.After(18 * time.Second): // two looks
			case <-ctx.Done():
			}
			return "done", ctx.Err()
		})
		group, s := start(t, a)
		if text, err := call(t, s, "work_long"); err != nil || text != "done" || group.Status()[0].Breaker.Opened > 0 {
			t.Errorf("%q, %v, breaker %+v", text, err, group.Status()[0].Breaker)
		}
	})
}

// process is a connection to a process of its own, which can hang.
type process struct {
	*mcp.Session
	hangs *atomic.Bool
}

func (p *process) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if err := p.hang(ctx); err != nil {
		return nil, err
	}
	return p.Session.Handle(ctx, req)
}

func (p *process) Raw(ctx context.Context, method string, params any, opts ...mcp.CallOption) (json.RawMessage, error) {
	if err := p.hang(ctx); err != nil {
		return nil, err
	}
	return p.Session.Raw(ctx, method, params, opts...)
}

func (p *process) hang(ctx context.Context) error {
	if !p.hangs.Load() {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// A process hangs, and another process of the same entry would not: its breaker stays closed, the requests
// that may be repeated go to another replica, and so do new ones until it answers again.
func TestProcessHangs(t *testing.T) {
	t.Parallel()
	yes := true
	a, b := newBox(t, "a"), newBox(t, "b")
	for _, box := range []*box{a, b} {
		mcp.AddTool(box.srv, mcp.Tool{Name: "look", Annotations: &mcp.ToolAnnotations{ReadOnly: &yes}}, func(context.Context, struct{}) (string, error) {
			box.calls.Add(1)
			return box.name, nil
		})
	}
	var hangs, never atomic.Bool
	var opened atomic.Int64
	replica := a.patient(mcp.V2026_07_28)
	open := replica.Open
	replica.Open = func(ctx context.Context) (gateway.Upstream, error) {
		up, err := open(ctx)
		if err != nil {
			return nil, err
		}
		if opened.Add(1) == 1 {
			return &process{up.(*mcp.Session), &hangs}, nil
		}
		return &process{up.(*mcp.Session), &never}, nil // that of a probe
	}
	group := &spread.Group{Name: "work", Logger: quiet(), Trusted: true, Replicas: []spread.Replica{replica, b.patient(mcp.V2026_07_28)}}
	_, session := through(t, group, gateway.Shared)
	s := session()
	connected(t, group)
	compared(t, s, a, b)
	hangs.Store(true)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if text, err := call(t, s, "work_look"); err != nil || text != "b" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
	wg.Wait()
	for range 50 { // as fast as the other replica answers
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		if res, err := s.CallTool(ctx, "work_which", nil); err != nil || res.Text() != "b" {
			t.Errorf("while it hangs: %v, %v", res, err)
		}
		cancel()
	}
	if st := group.Status()[0]; st.Breaker.Opened > 0 {
		t.Errorf("the breaker has opened: %+v", st)
	}
	hangs.Store(false)
	before := a.calls.Load()
	eventually(t, "it gets calls again", func() bool {
		_, err := call(t, s, "work_which")
		return err == nil && a.calls.Load() > before
	})
}
