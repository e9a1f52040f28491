package nats_test

import (
	"testing"
	"time"
)

// TestElection sees that the death of a leader is over in less than the 4 seconds that an election of the server takes at least with its
// own times. A busy machine has several attempts.
func TestElection(t *testing.T) {
	t.Parallel()
	for range 5 {
		if took := elected(t); took < 4*time.Second {
			return
		}
	}
	t.Error("no election took less than 4 seconds")
}

// elected returns how long the State is away when the server dies that leads its stream.
func elected(t *testing.T) time.Duration {
	list := diskProcesses(t, 3, false)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		for i, p := range list {
			if p.ask(t, "leads") != "" {
				continue
			}
			other := list[(i+1)%3]
			other.awaits(t, "put k") // from then on, the others wait for the next heartbeat
			begin := time.Now()
			p.kill()
			other.awaits(t, "put k")
			other.awaits(t, "watch")
			t.Logf("after %v", time.Since(begin))
			return time.Since(begin)
		}
	}
	t.Fatal("the stream has no leader")
	return 0
}
