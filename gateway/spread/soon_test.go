package spread_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/mcp"
)

// answerer is a connection to a replica that answers each request with its name.
type answerer struct {
	name string
	done chan struct{}
	once sync.Once
	hold chan struct{} // calls wait until it is closed; nil: they do not
}

func newAnswerer(name string) *answerer { return &answerer{name: name, done: make(chan struct{})} }

func (a *answerer) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Method == "tools/call" && a.hold != nil {
		<-a.hold
	}
	return mcp.RawResult(`{"of":"` + a.name + `"}`), nil
}

func (a *answerer) Done() <-chan struct{} { return a.done }

func (a *answerer) Err() error { return errors.New("it crashed") }

func (a *answerer) Close() error { a.once.Do(func() { close(a.done) }); return nil }

// A call that comes while the only replica that could take it is being connected to waits, and goes to it, whether the other
// one was taken out or has ended. It fails at once when the attempt fails, and while none is made after that.
func TestCallWaitsForAReplica(t *testing.T) {
	for _, out := range []string{"disabled", "ended"} {
		for _, comes := range []bool{true, false} {
			t.Run(map[bool]string{true: "comes", false: "fails"}[comes]+" "+out, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b := newAnswerer("a"), newAnswerer("b")
					ready := make(chan struct{})
					opens := 0
					group := &spread.Group{Name: "work", Logger: quiet(), Replicas: []spread.Replica{
						{Name: "a", Open: func(context.Context) (gateway.Upstream, error) {
							if opens++; opens > 1 {
								return nil, errors.New("a is gone")
							}
							return a, nil
						}},
						{Name: "b", Open: func(ctx context.Context) (gateway.Upstream, error) {
							select {
							case <-ready:
							case <-ctx.Done():
							}
							if !comes {
								return nil, errors.New("b does not start")
							}
							return b, nil
						}},
					}}
					defer group.Close()
					up := openFirst(t, group)
					defer up.Close()
					a.hold = make(chan struct{})
					var calls sync.WaitGroup
					calls.Go(func() { _, _ = up.Handle(t.Context(), callOf("t")) }) // keeps the connection of a disabled replica
					synctest.Wait()
					if out == "disabled" {
						if _, err := group.Disable("a", "x", time.Hour); err != nil {
							t.Fatal(err)
						}
					} else {
						a.Close()
					}
					synctest.Wait()
					var res mcp.Result
					var err error
					answered := false
					calls.Go(func() { res, err = up.Handle(t.Context(), callOf("t")); answered = true })
					time.Sleep(5 * time.Second) // less than an attempt may take
					synctest.Wait()
					if answered {
						t.Errorf("the call did not wait: %v", err)
					}
					close(ready)
					synctest.Wait()
					switch {
					case !answered:
						t.Error("the call goes on waiting")
					case comes && (err != nil || string(res.JSON()) != `{"of":"b"}`):
						t.Errorf("the call got %v, %v", res, err)
					case !comes && (err == nil || !strings.Contains(err.Error(), "no replica is connected")):
						t.Errorf("the call got %v, %v", res, err)
					}
					if began := time.Now(); !comes {
						if _, err := up.Handle(t.Context(), callOf("t")); err == nil || time.Since(began) > 0 {
							t.Errorf("a later call got %v after %v", err, time.Since(began))
						}
					}
					close(a.hold)
					calls.Wait()
				})
			})
		}
	}
}

// A call that waits for a replica ends with its caller, and with the connection.
func TestWaitingCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswerer("a")
		first := true
		group := &spread.Group{Name: "work", Logger: quiet(), Replicas: []spread.Replica{
			{Name: "a", Open: func(context.Context) (gateway.Upstream, error) { return a, nil }},
			{Name: "b", Open: func(ctx context.Context) (gateway.Upstream, error) { <-ctx.Done(); return nil, ctx.Err() }},
		}}
		defer group.Close()
		up := openFirst(t, group)
		a.hold = make(chan struct{})
		defer close(a.hold)
		go up.Handle(t.Context(), callOf("t"))
		synctest.Wait()
		if _, err := group.Disable("a", "x", time.Hour); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		for _, end := range []func(){cancel, func() { up.Close() }} {
			if !first {
				ctx = t.Context()
			}
			first = false
			over := make(chan error, 1)
			go func() { _, err := up.Handle(ctx, callOf("t")); over <- err }()
			synctest.Wait()
			if len(over) > 0 {
				t.Fatalf("the call did not wait: %v", <-over)
			}
			end()
			synctest.Wait()
			if len(over) == 0 {
				t.Fatal("the call goes on waiting")
			}
		}
	})
}

// openFirst opens a connection that has replica a and is being connected to b.
func openFirst(t *testing.T, group *spread.Group) gateway.Upstream {
	t.Helper()
	if _, err := group.Disable("b", "x", 0); err != nil {
		t.Fatal(err)
	}
	up, err := group.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := group.Enable(ctx, "b"); err != nil && !errors.Is(err, context.Canceled) { // it does not wait, but may be there already
		t.Fatal(err)
	}
	synctest.Wait()
	return up
}

func callOf(tool string) *mcp.Request {
	return &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"` + tool + `"}`)}
}
