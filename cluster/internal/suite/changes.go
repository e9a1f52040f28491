package suite

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/mcp"
)

// changes sees that subscribers at each node hear an update that the server of any node has told, and that one update comes once.
func changes(t *testing.T, f *Members) {
	const clock, bell = "test://clock", "test://bell"
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	var mu sync.Mutex
	heard := map[string]map[string]int{} // updates by client and resource; guarded by mu
	for _, r := range []mcp.Revision{latest, mcp.Revision(revision.Latest(revision.All, false).Name)} {
		for i := range f.Nodes { // the front takes them in turn
			s, client := f.dial(t, r), fmt.Sprint(r, " ", i)
			mu.Lock()
			heard[client] = map[string]int{}
			mu.Unlock()
			go func() {
				for e, err := range s.Watch(ctx, clock, bell) {
					if err != nil {
						return
					}
					mu.Lock()
					heard[client][e.URI]++
					mu.Unlock()
				}
			}()
		}
	}
	// extremes returns how many updates of a resource the clients have heard that heard the fewest and the most.
	extremes := func(uri string) (least, most int) {
		mu.Lock()
		defer mu.Unlock()
		least = int(^uint(0) >> 1)
		for _, of := range heard {
			least, most = min(least, of[uri]), max(most, of[uri])
		}
		return least, most
	}
	until := func(uri string, n int, again func()) {
		t.Helper()
		for {
			least, _ := extremes(uri)
			switch {
			case least >= n:
				return
			case ctx.Err() != nil:
				mu.Lock()
				defer mu.Unlock()
				t.Fatalf("clients wait for update %d of %s: %v", n, uri, heard)
			}
			again()
			time.Sleep(50 * time.Millisecond)
		}
	}
	for i, srv := range f.Servers {
		time.Sleep(200 * time.Millisecond) // for those of the node before
		_, most := extremes(clock)
		until(clock, most+1, func() { srv.ResourceUpdated(clock) }) // that a client or a node listens is seen a moment later
		srv.ResourceUpdated(bell)
		until(bell, i+1, func() {})
		time.Sleep(200 * time.Millisecond)
		if _, most := extremes(bell); most > i+1 {
			t.Errorf("a client has heard %d updates, and %d nodes have told one each", most, i+1)
		}
	}
}
