package eventmemory_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/eventmemory"
)

// The oldest events are dropped first.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m eventmemory.Store
		ctx := t.Context()
		after := func(stream string, position int64) (n int) {
			events, err := m.After(ctx, stream, position)
			if err != nil {
				t.Fatal(err)
			}
			return len(events)
		}
		big := bytes.Repeat([]byte("x"), 1<<20)
		for i := range int64(100) {
			m.Append(ctx, "a", i+1, big)
		}
		if n := after("a", 0); n < 50 || n > 64 {
			t.Errorf("%d MiB are kept, want less than 64", n)
		}
		if n := after("a", 99); n != 1 {
			t.Errorf("behind 99 are %d events, want 1", n)
		}
		m.Append(ctx, "b", 1, []byte("x"))
		m.Forget(ctx, "a")
		m.Forget(ctx, "unknown")
		if a, b := after("a", 0), after("b", 0); a != 0 || b != 1 {
			t.Errorf("after Forget a has %d events and b %d", a, b)
		}
		time.Sleep(5 * time.Minute)
		if n := after("b", 0); n != 0 {
			t.Errorf("%d events are older than 5 minutes", n)
		}
	})
}
