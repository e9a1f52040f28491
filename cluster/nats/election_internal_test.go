package nats

import (
	"testing"
	"time"
	_ "unsafe" // for go:linkname
)

//go:linkname electionTime github.com/nats-io/nats-server/v2/server.randElectionTimeout
func electionTime() time.Duration

// TestElectionTimes sees that the variables of this package are those of the server. If one is zero, the server has renamed it.
func TestElectionTimes(t *testing.T) {
	hurry()
	for range 100 {
		if d := electionTime(); d < 1250*time.Millisecond || d >= 2250*time.Millisecond {
			t.Fatalf("an election begins after %v", d)
		}
	}
	if heartbeat != 250*time.Millisecond || lostQuorum != 5*time.Second || lostQuorumCheck != 5*time.Second {
		t.Errorf("heartbeat %v, a leader without a majority %v, checked each %v", heartbeat, lostQuorum, lostQuorumCheck)
	}
}
