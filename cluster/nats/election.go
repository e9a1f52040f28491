package nats

import (
	"sync"
	"time"
	_ "unsafe" // for go:linkname
)

// The times of elections among servers of NATS, which no option sets. Their own are 4 to 9 seconds for a leader that has died, and until
// another one is chosen, no session of a dead node goes on elsewhere. In a program that does not link these variables, because a newer
// server has renamed them, they are zero here, and nothing is set. TestElectionTimes sees that they are linked, and fails then:
// the new names are in the file raft.go of the server.
var (
	//go:linkname minElection github.com/nats-io/nats-server/v2/server.minElectionTimeout
	minElection time.Duration
	//go:linkname maxElection github.com/nats-io/nats-server/v2/server.maxElectionTimeout
	maxElection time.Duration
	//go:linkname heartbeat github.com/nats-io/nats-server/v2/server.hbInterval
	heartbeat time.Duration
	//go:linkname lostQuorum github.com/nats-io/nats-server/v2/server.lostQuorumInterval
	lostQuorum time.Duration
	//go:linkname lostQuorumCheck github.com/nats-io/nats-server/v2/server.lostQuorumCheck
	lostQuorumCheck time.Duration
)

// hurry makes elections of the servers of this process begin 1.25 to 2.25 seconds after the last heartbeat of a leader, of which several
// fit into that: a process that waits a second for its turn on a busy machine is not taken for dead. A leader that cannot reach most
// servers gives up after 5 to 10 seconds instead of 10 to 20. It has to be called before the first server starts.
var hurry = sync.OnceFunc(func() {
	all := []*time.Duration{&minElection, &maxElection, &heartbeat, &lostQuorum, &lostQuorumCheck}
	for _, d := range all {
		if *d == 0 {
			return
		}
	}
	for i, d := range []time.Duration{1250 * time.Millisecond, 2250 * time.Millisecond, 250 * time.Millisecond, 5 * time.Second, 5 * time.Second} {
		*all[i] = d
	}
})
