package gateway_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// counting counts the lists that a server is asked for.
type counting struct {
	gateway.Upstream
	lists *atomic.Int64
}

func (c counting) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Method == "tools/list" {
		c.lists.Add(1)
	}
	return c.Upstream.Handle(ctx, req)
}

// A caller that guesses names of tools causes a bounded number of lists, and a tool that is really there is
// called all the while.
func TestGuessedNamesCauseFewLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &mcp.Server{Name: "db", Version: "1"}
		mcp.AddTool(srv, mcp.Tool{Name: "query"}, func(context.Context, struct{}) (string, error) { return "", nil })
		g := &gateway.Gateway{Name: "gw", Version: "1"}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		var lists atomic.Int64
		open := opener(srv, mcp.V2025_11_25, false, mcp.Limits{})
		go func() {
			defer close(done)
			g.Run(ctx, gateway.Source{Name: "db", Open: func(ctx context.Context) (gateway.Upstream, error) {
				up, err := open(ctx)
				return counting{up, &lists}, err
			}})
		}()
		time.Sleep(time.Second)
		call := func(name string) error {
			_, err := g.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"db_` + name + `"}`)})
			return err
		}
		before := lists.Load()
		for i := range 300 {
			if call(fmt.Sprint("guess", i)) == nil {
				t.Fatal("a guessed tool was called")
			}
		}
		if n := lists.Load() - before; n < 1 || n > 10 {
			t.Errorf("300 guessed names caused %d lists, want 1 to 10", n)
		}
		if err := call("query"); err != nil {
			t.Error(err)
		}
		time.Sleep(6 * time.Second)
		before = lists.Load()
		call("guess")
		if n := lists.Load() - before; n != 1 {
			t.Errorf("a name that comes later caused %d lists, want 1", n)
		}
		cancel()
		<-done
	})
}
