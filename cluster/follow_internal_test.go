package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/eventmemory"
	"github.com/patchbay-dev/patchbay/internal/long"
)

// The entries that watches of a node keep have a bound, together, and an age. A follower that was slow gets what there is.
func TestWatchForgets(t *testing.T) {
	long.WithoutRace(t)
	synctest.Test(t, func(t *testing.T) {
		var total atomic.Int64
		begin := func() *bucketWatch {
			return &bucketWatch{total: &total, streams: map[string][]readEvent{}, changed: map[string]chan struct{}{}, marks: map[string]chan struct{}{}}
		}
		one, two := begin(), begin()
		put := func(w *bucketWatch, i int, data string) {
			value, _ := json.Marshal(eventRecord{eventFormat, []sharedEvent{{Stream: "a", Position: int64(i), Data: json.RawMessage(data)}, {Stream: fmt.Sprint("b", i), Position: 1}}})
			w.take(Change{Entry: Entry{Key: fmt.Sprint("event.0.p.", i), Value: value}})
		}
		one.take(Change{})
		put(one, 0, `""`)
		first := one.of("a", 0)
		if len(first.events) != 1 || first.events[0].number == 0 {
			t.Fatalf("the first event is %+v", first)
		}
		two.take(Change{Entry: Entry{Key: "event.1.p.1", Value: []byte("not JSON, of stream x")}})
		two.take(Change{})
		if two.of("x", 0).err == nil || two.of("y", 0).err != nil {
			t.Error("an entry that cannot be read is an error for other streams than its own")
		}
		large := `"` + strings.Repeat("x", 400<<10) + `"`
		for i := range 1000 {
			put([]*bucketWatch{one, two}[i%2], i+1, large)
			if n := total.Load(); n > watchBytes {
				t.Fatalf("after %d entries %d bytes are kept", i+1, n)
			}
		}
		list := one.of("a", first.events[0].number).events
		if n := len(list); n == 0 || n > 160 || list[n-1].Position != 999 || len(one.streams) != len(one.order)+1 {
			t.Errorf("a slow follower gets %d events, of %d streams and %d entries", n, len(one.streams), len(one.order))
		}
		if two.of("x", 0).err != nil {
			t.Error("an entry that cannot be read is never forgotten")
		}
		time.Sleep(eventmemory.MaxAge + time.Second)
		put(one, 1001, `""`)
		if len(one.order) != 1 || len(one.streams) != 2 {
			t.Errorf("after its time, %d entries with %d streams are kept", len(one.order), len(one.streams))
		}
		one.end(ErrNotFound)
		two.end(ErrNotFound)
		if n := total.Load(); n != 0 {
			t.Errorf("%d bytes are counted of watches that have ended", n)
		}
	})
}
