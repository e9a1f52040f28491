package gateway

import (
	"context"
	"time"
)

// The subscription at a connection reports changes of its lists: cached lists become invalid, and
// the callers of the gateway are notified.

// unheard records that a round has ended: changes are not announced until the next one.
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

// version returns how many times a list has changed, and whether its changes are announced.
func (n *subscription) version(kind changeSet) (version uint64, heard bool) {
	for i := range n.versions {
		if kind&(1<<i) != 0 {
			version = n.versions[i].Load()
		}
	}
	return version, changeSet(n.hears.Load())&kind != 0
}

// listsChanged invalidates lists, and wakes tellLists to report their changes.
func (n *subscription) listsChanged(set changeSet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.grow(set) // before anyone is told
	n.lists |= set
	select {
	case n.relist <- struct{}{}:
	default:
	}
}

// tellLists reports changes of lists, on its own goroutine, so that a server that is slow to list
// can send other events meanwhile.
//
// A change that the gateway sees itself is reported at once. One that it does not see may exist for
// other callers, and is reported too, but after pauses that grow while only such changes come: two
// gateways that are servers of each other would otherwise wake each other without end.
func (n *subscription) tellLists(ctx context.Context) {
	var unseen changeSet
	var due <-chan time.Time // when unseen will be reported
	var last time.Time       // when it was last reported
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
