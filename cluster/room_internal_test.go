package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/store"
)

// A node that has more than its part, because there are more nodes than before, keeps the changes of its sessions that need no more room.
func TestRoomOfASmallerPart(t *testing.T) {
	var o owners
	entry := func(bytes int) record { return record{Principal: "p", Data: make(json.RawMessage, bytes)} }
	last := ""
	for i := 0; o.room(fmt.Sprint(i), entry(400<<10), 1) == nil; i++ {
		last = fmt.Sprint(i)
		o.add(last, entry(400<<10), server{})
	}
	if err := o.room(last, entry(400<<10), 3); err != nil {
		t.Errorf("a change of the same size: %v", err)
	}
	for key, bytes := range map[string]int{last: 401 << 10, "new": 1} {
		if err := o.room(key, entry(bytes), 3); !errors.Is(err, store.ErrNoRoom) {
			t.Errorf("session %s with %d bytes: %v", key, bytes, err)
		}
	}
}
