package steer

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// The list is in the order of beginning, whichever calls end, and holds on to nothing of a call that has ended.
func TestCallsEndInAnyOrder(t *testing.T) {
	var c Calls
	var open []*call
	for round := range 5000 {
		if grows := round < 2500; len(open) == 0 || rand.IntN(5) < 3 == grows {
			open = append(open, c.add(call{ctx: t.Context(), server: "shop", params: []byte("{}")}))
		} else {
			i := rand.IntN(len(open))
			c.remove(open[i])
			if of := open[i]; of.ctx != nil || of.params != nil {
				t.Fatalf("a call that has ended is kept: %+v", of)
			}
			open = slices.Delete(open, i, i+1)
		}
		list, all := c.List()
		if all != len(open) || c.Of("shop") != len(open) || len(list) != min(all, maxShown) {
			t.Fatalf("%d calls, %d of the server, %d in the list; want %d", all, c.Of("shop"), len(list), len(open))
		}
		for i, of := range list {
			if of.ID != open[i].n {
				t.Fatalf("call %d is number %d of the list, want %d", of.ID, i, open[i].n)
			}
		}
	}
	for _, of := range open {
		c.remove(of)
	}
	if c.oldest != nil || c.newest != nil || c.open != 0 {
		t.Errorf("%+v without a call", &c)
	}
}

func TestCallsOfMany(t *testing.T) {
	var c Calls
	h := c.Around("shop")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		if _, all := c.List(); all == 0 {
			t.Error("a call in progress is not listed")
		}
		return nil, nil
	}))
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 200 {
				h.Handle(t.Context(), &mcp.Request{Method: "tools/call"})
			}
		})
	}
	callers.Wait()
	if list, all := c.List(); all != 0 || len(list) != 0 {
		t.Errorf("%d calls after the last: %v", all, list)
	}
}
