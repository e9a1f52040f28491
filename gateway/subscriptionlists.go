package gateway

import (
	"context"
	"time"
)

// The subscription at a connection tells of changes of its lists: what is kept of them ends, and the
// callers of the gateway hear of it.

// unheard takes note that a round has ended: without one no change is heard.
func (n *subscription) unheard(r *round) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current != r {
		return
	}
	n.hears.Store(0)
	n.grow(changedAll)
}

// grow counts changes of lists.
func (n *subscription) grow(set changeSet) {
	for i := range n.versions {
		if set&(1<<i) != 0 {
			n.versions[i].Add(1)
		}
	}
}

// version returns how often a list has changed, and whether its changes are heard.
func (n *subscription) version(kind changeSet) (version uint64, heard bool) {
	for i := range n.versions {
		if kind&(1<<i) != 0 {
			version = n.versions[i].Load()
		}
	}
	return version, changeSet(n.hears.Load())&kind != 0
}

// listsChanged has the listeners told, and what is kept refreshed, of changes of lists.
func (n *subscription) listsChanged(set changeSet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.grow(set) // before anybody is told
	n.lists |= set
	select {
	case n.relist <- struct{}{}:
	default:
	}
}

// tellLists does so, on a goroutine of its own: a server that is slow to list says other things
// meanwhile.
//
// A change that the gateway itself sees is told at once. One that it does not see may be one for
// other callers, and is told too, but after pauses that grow while that is all that comes: of two
// gateways that have each other as servers, each would wake the other without end.
func (n *subscription) tellLists(ctx context.Context) {
	var unseen changeSet
	var due <-chan time.Time // when unseen is told
	var last time.Time       // that it was
	pause := time.Duration(0)
	for {
		select {
		case <-n.relist:
		case <-due:
			n.p.g.announce(unseen)
			unseen, due, last = 0, nil, time.Now()
			continue
		case <-ctx.Done():
			return
		}
		n.mu.Lock()
		set := n.lists & n.p.up.lists()
		n.lists = 0
		n.mu.Unlock()
		n.p.changes.Add(1)
		changed := n.p.up.refetch(n.c, set)
		n.p.g.announce(changed)
		if unseen |= set &^ changed; unseen == 0 || due != nil {
			continue
		}
		if time.Since(last) > 2*longPause {
			pause = 0
		}
		due = time.After(pause)
		pause = min(max(firstPause, 2*pause), longPause)
	}
}
