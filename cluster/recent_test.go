package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
)

// Entries that may be lost have 64 MiB, of which the oldest go first, and none is among the other values.
func TestRecentIsBounded(t *testing.T) {
	m := new(cluster.Memory)
	value := make([]byte, 400<<10)
	for i := range 200 { // 78 MiB
		if _, err := m.Recent().Put(t.Context(), fmt.Sprint("event.", i), value, 0, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	count := func(s cluster.State) (bytes int) {
		for c, err := range s.Watch(t.Context(), "event") {
			if err != nil {
				t.Fatal(err)
			}
			if c.Key == "" {
				break
			}
			bytes += len(c.Value)
		}
		return bytes
	}
	if got := count(m.Recent()); got > 64<<20 || got < 63<<20 {
		t.Errorf("%d bytes are kept, want 64 MiB", got)
	}
	if got := count(m); got != 0 {
		t.Errorf("%d bytes are among the others", got)
	}
	if _, err := m.Recent().Get(t.Context(), "event.199"); err != nil {
		t.Error(err)
	}
	if _, err := m.Recent().Get(t.Context(), "event.0"); err == nil {
		t.Error("the oldest is there")
	}
}
