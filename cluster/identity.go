package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"
)

// identityKey is the key of a random value, which is another one if the State was lost and is filled again: servers of NATS that
// keep it in memory were all restarted.
const identityKey = "cluster.identity"

// identity is what a node knows of that value.
type identity struct {
	mu    sync.Mutex
	value string    // guarded by mu
	lost  time.Time // when a State without it was seen last; guarded by mu
}

// errLoss says that a session may be there that the State does not have.
var errLoss = errors.New("the cluster has lost what its nodes share, and they put it again; try again")

// lossTime is how long nodes have to put their sessions again. Each of them has to connect to NATS anew before.
const lossTime = 10 * time.Second

// whole returns errLoss if the State has lost its entries a moment ago.
func (n *Node) whole(ctx context.Context) error {
	e, err := n.State.Get(ctx, identityKey)
	if errors.Is(err, ErrNotFound) {
		e.Value = []byte(rand.Text())
		if _, err = n.State.Put(ctx, identityKey, e.Value, 0, 0); errors.Is(err, ErrConflict) {
			e, err = n.State.Get(ctx, identityKey)
		}
	}
	if err != nil {
		return err
	}
	lost, again := n.identity.see(string(e.Value), time.Now())
	if lost {
		n.Logger.Warn("the State has lost its entries; the nodes put their sessions again")
	}
	if again {
		return errLoss
	}
	return nil
}

// errUnsettled says that a session may be there that the State does not show yet.
var errUnsettled = errors.New("the nodes have just come together, and the session may be one of theirs; try again")

// sure returns an error if there may be an entry that the State does not have: after the loss of all, or if this node was not seen by the
// others just before, as when a majority comes back.
func (n *Node) sure(ctx context.Context) error {
	if err := n.whole(ctx); err != nil {
		return err
	}
	if s := n.sight.Load(); s == nil || !s.seen || time.Since(s.since) < lossTime {
		return errUnsettled
	}
	return nil
}

// see notes the value of the State at a time. It reports whether it is another one than before, and whether that is so, or was so a
// moment ago.
func (i *identity) see(value string, now time.Time) (lost, again bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if lost = i.value != "" && i.value != value; lost {
		i.lost = now
	}
	i.value = value
	return lost, !i.lost.IsZero() && now.Sub(i.lost) < lossTime
}
