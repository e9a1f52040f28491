package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
)

// slowState takes a time for each change.
type slowState struct {
	cluster.State
	takes time.Duration
}

func (s slowState) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	version, err := s.State.Put(ctx, key, value, version, ttl)
	time.Sleep(s.takes)
	return version, err
}

// TestLeaseOfSlowState sees that the time which a renewal takes does not put off the next one: a lease of three seconds is held for another one
// at each moment, although the State takes more than half a second.
func TestLeaseOfSlowState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, err := cluster.TryAcquire(t.Context(), slowState{new(cluster.Memory), 600 * time.Millisecond}, "one", "n", 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3000 {
			if time.Sleep(10 * time.Millisecond); !l.HeldFor(time.Second) {
				t.Errorf("after look %d the lease is not held for a second", n)
				break
			}
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
