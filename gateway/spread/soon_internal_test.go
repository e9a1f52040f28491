package spread

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// opened is a breaker that opens later, and calls then when it refuses a request.
type opened struct {
	noBreaker
	then func() // nil: it is closed
}

func (o *opened) Allow() error {
	if o.then == nil {
		return nil
	}
	o.then()
	return &breaker.OpenError{Name: "replica b"}
}

// named is a connection that answers each request with a name.
type named struct {
	name string
	done chan struct{}
}

func (n *named) Handle(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.RawResult(`{"of":"` + n.name + `"}`), nil
}

func (n *named) Done() <-chan struct{} { return n.done }
func (n *named) Err() error            { return nil }
func (n *named) Close() error          { close(n.done); return nil }

// A call waits for a replica whose restart begins while a replica is chosen, after the breaker of the other one has
// opened. So does the gateway before it sends the call.
func TestRestartBeginsDuringTheChoice(t *testing.T) {
	for _, by := range []string{"call", "gateway"} {
		t.Run(by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial := func(name string) Replica {
					return Replica{Name: name, Open: func(context.Context) (gateway.Upstream, error) {
						return &named{name, make(chan struct{})}, nil
					}}
				}
				g := &Group{Name: "work", Logger: slog.New(slog.DiscardHandler), Replicas: []Replica{dial("b"), dial("a")}}
				g.start()
				defer g.Close()
				a, other := g.replicas[1], &opened{}
				g.replicas[0].breaker = other
				up, err := g.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer up.Close()
				synctest.Wait()
				other.then = sync.OnceFunc(func() { a.takeOut(restarting) })
				if by == "gateway" {
					if _, err := up.(*conn).Reach(); err != nil {
						t.Error(err)
					}
					return
				}
				var res mcp.Result
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					res, err = up.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"t"}`)})
				}()
				synctest.Wait()
				select {
				case <-answered:
					t.Fatalf("the call did not wait: %v, %v", res, err)
				default:
				}
				a.putBack(restarting)
				<-answered
				if err != nil || string(res.JSON()) != `{"of":"a"}` {
					t.Errorf("the call got %v, %v", res, err)
				}
			})
		})
	}
}

// While the connections to a replica that was restarted end, the gateway lets calls wait for it.
func TestReachWhileARestartEnds(t *testing.T) {
	g := &Group{Name: "work", Replicas: []Replica{{Name: "a"}, {Name: "b"}}}
	g.start()
	defer g.Close()
	a, b := g.replicas[0], g.replicas[1]
	b.breaker = &opened{then: func() {}}
	c := &conn{g: g, soon: make([]bool, 2), pausing: make([]bool, 2), legs: []*line{
		{r: a, up: &named{}, why: wasRestart}, {r: b, up: &named{}},
	}}
	if _, err := c.Reach(); err != nil {
		t.Error(err)
	}
}
