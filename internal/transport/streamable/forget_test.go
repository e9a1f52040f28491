package streamable_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/internal/eventmemory"
)

// countedEvents counts the events that were appended and not forgotten.
type countedEvents struct {
	eventmemory.Store
	mu   sync.Mutex
	kept map[string]int // guarded by mu
}

func (c *countedEvents) Append(ctx context.Context, stream string, position int64, event []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[stream]++
	return c.Store.Append(ctx, stream, position, event)
}

func (c *countedEvents) Forget(ctx context.Context, stream string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kept, stream)
	return c.Store.Forget(ctx, stream)
}

// Messages that a call sends after the end of its session are not kept (SHTTP-25-040).
func TestNothingIsKeptOfAnEndedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan int)
		s := newServer(t, steps(next))
		store := &countedEvents{kept: map[string]int{}}
		s.Events = store
		h := open(t, s, "2025-11-25")
		_, begun := background(s, request(toolCall(1), h...))
		next <- 1
		synctest.Wait()
		_, quiet := background(s, request(toolCall(2), h...)) // sends nothing before the end
		synctest.Wait()
		del := httptest.NewRequest("DELETE", "/mcp", nil)
		set(del.Header, h)
		if w := serve(s, del); w.Code != 204 {
			t.Fatalf("DELETE = %d", w.Code)
		}
		next <- 2
		next <- 3
		close(next)
		<-begun
		<-quiet
		store.mu.Lock()
		defer store.mu.Unlock()
		if len(store.kept) > 0 {
			t.Errorf("still kept, by stream: %v", store.kept)
		}
	})
}
