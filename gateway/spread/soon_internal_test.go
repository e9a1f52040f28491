package spread

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/note"
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
	once sync.Once
}

func (n *named) Handle(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.RawResult(`{"of":"` + n.name + `"}`), nil
}

func (n *named) Done() <-chan struct{} { return n.done }
func (n *named) Err() error            { return nil }
func (n *named) Close() error          { n.once.Do(func() { close(n.done) }); return nil }

// A call waits for a replica whose restart begins while a replica is chosen, after the breaker of the other one has
// opened. So does the gateway before it sends the call.
func TestRestartBeginsDuringTheChoice(t *testing.T) {
	for _, by := range []string{"call", "gateway"} {
		t.Run(by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial := func(name string) Replica {
					return Replica{Name: name, Open: func(context.Context) (gateway.Upstream, error) {
						return &named{name: name, done: make(chan struct{})}, nil
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

// attempts calls before with the number of each attempt, when its connection is chosen and nothing is sent.
type attempts struct {
	n      int
	before func(n int)
}

func (a *attempts) Attempt(context.Context, string) error {
	a.n++
	a.before(a.n)
	return nil
}

func (a *attempts) Again(context.Context) error { return nil }

// A restart between the choice of a connection and the sending fails no request, however often it happens: neither one
// that any replica may take, nor one about a task of that replica.
func TestRestartBeforeTheSending(t *testing.T) {
	for _, req := range []mcp.Request{
		{Method: "tools/call", Params: []byte(`{"name":"t"}`)},
		{Method: "tasks/get", Params: []byte(`{"taskId":"1"}`)},
	} {
		t.Run(req.Method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial := func(context.Context) (gateway.Upstream, error) {
					return &named{name: "a", done: make(chan struct{})}, nil
				}
				g := &Group{Name: "work", Logger: slog.New(slog.DiscardHandler), Replicas: []Replica{{Name: "a", Open: dial}, {Name: "b", Open: dial}}}
				g.start()
				defer g.Close()
				g.replicas[1].breaker = &opened{then: func() {}}
				g.pinned.tasks = map[string]*replica{"1": g.replicas[0]}
				up, err := g.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer up.Close()
				synctest.Wait()
				const restarts = 20
				hook := &attempts{before: func(n int) {
					if n > restarts {
						return
					}
					if err := g.Restart(t.Context(), "a", time.Second); err != nil {
						t.Error(err)
					}
				}}
				res, err := up.Handle(note.WithAttempts(t.Context(), hook), &req)
				if err != nil || string(res.JSON()) != `{"of":"a"}` || hook.n != restarts+1 {
					t.Errorf("after %d attempts: %v, %v", hook.n, res, err)
				}
			})
		})
	}
}
