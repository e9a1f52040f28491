package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// A connection keeps the lists that it has given for as long as they hold, and gives them to callers
// whom the server cannot tell apart:
//
//   - A list is kept for an audience: callers who are the same to the server.
//   - Only an Upstream with the method ListVersion of a Session has its lists kept: what others
//     answer may depend on anything.
//   - A change that the server announces ends all lists of the kind, those too that are on their
//     way. So does the end of the way by which it announces changes.
//   - Where changes are heard a list is kept for heardAge, as there are servers that forget to
//     announce one, or for the ttlMs of a public list if that is longer. Where they are not heard, it
//     is kept for its ttlMs, that of an older server for unheardAge.
//   - Callers who want a list at once wait for one answer.

const (
	heardAge   = 30 * time.Second
	unheardAge = 2 * time.Second

	maxFresh      = 100 // lists of one connection
	maxFreshBytes = 16 << 20
)

// lister is an Upstream that tells when its lists change, as a [*mcp.Session] does.
type lister interface {
	ListVersion(method string) (version uint64, heard bool)
}

// listVersion is the state of a list at a server, as far as it was announced.
type listVersion struct{ told, shared uint64 }

// version returns the state of a list, and whether a change of it would be heard.
func (c *conn) version(k *listKind) (v listVersion, heard bool) {
	if c.lister == nil {
		return v, false
	}
	v.told, heard = c.lister.ListVersion(k.Method)
	if c.shared != nil {
		var follows bool
		v.shared, follows = c.shared.version(k.change)
		heard = heard || follows && c.modern
	}
	return v, heard
}

// fresh are the lists of one connection. The zero value is ready for use.
type fresh struct {
	mu    sync.Mutex
	lists map[freshKey]*freshList // guarded by mu
	bytes int                     // guarded by mu
}

type freshKey struct {
	method string
	audience
}

// freshList is a list that is kept, or on its way.
type freshList struct {
	version listVersion // before it was asked for
	heard   bool        // a change of it was heard then
	done    chan struct{}

	// The answer, read after done.
	list  *keptList
	err   error
	until time.Time

	missed bool // one who waited for it has left without; guarded by mu of fresh
}

// over tells whether the list has come.
func (l *freshList) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// holds tells whether the list, which has come, can be given now.
func (l *freshList) holds(v listVersion, heard bool) bool {
	return l.version == v && (heard || !l.heard) && time.Now().Before(l.until)
}

// known returns a list of the connection that holds, nil if there is none.
func (c *conn) known(k *listKind, a audience) *keptList {
	if c.lister == nil {
		return nil
	}
	f := &c.fresh
	f.mu.Lock()
	l := f.lists[freshKey{k.Method, a.to(c)}]
	f.mu.Unlock()
	if l == nil || !l.over() {
		return nil
	}
	if v, heard := c.version(k); !l.holds(v, heard) {
		return nil
	}
	return l.list
}

// join returns the list that an audience waits for, and whether it is the caller who must ask for
// it and call settle.
func (c *conn) join(k *listKind, a audience) (l *freshList, asks bool) {
	v, heard := c.version(k)
	l = &freshList{version: v, heard: heard, done: make(chan struct{})}
	if c.lister == nil || k.Capability == "" {
		return l, true
	}
	f := &c.fresh
	f.mu.Lock()
	defer f.mu.Unlock()
	key := freshKey{k.Method, a.to(c)}
	if other := f.lists[key]; other != nil {
		if other.version == v && (!other.over() || other.holds(v, heard)) {
			return other, false
		}
		if other.over() {
			f.bytes -= other.list.size
		}
	}
	if f.lists == nil || len(f.lists) >= maxFresh {
		f.lists, f.bytes = map[freshKey]*freshList{}, 0
	}
	f.lists[key] = l
	return l, true
}

// settle ends the wait for a list, which is kept if it still holds. Missed tells whether a caller has
// not waited for it.
func (c *conn) settle(k *listKind, a audience, l *freshList, list *keptList, ttl time.Duration, err error) (missed bool) {
	v, heard := c.version(k)
	switch {
	case heard && l.heard:
		ttl = max(ttl, heardAge)
	case !c.modern:
		ttl = unheardAge
	}
	l.heard = l.heard && heard
	l.list, l.err, l.until = list, err, time.Now().Add(ttl)
	f := &c.fresh
	f.mu.Lock()
	defer f.mu.Unlock()
	close(l.done)
	key := freshKey{k.Method, a.to(c)}
	if f.lists[key] != l {
		return l.missed
	}
	if err != nil || list == nil || list.serial == 0 || v != l.version || ttl <= 0 {
		delete(f.lists, key)
		return l.missed
	}
	if f.bytes += list.size; f.bytes > maxFreshBytes {
		f.lists, f.bytes = map[freshKey]*freshList{key: l}, list.size
	}
	return l.missed
}

// leave says that a caller does not wait for a list any more; false if it has come.
func (f *fresh) leave(l *freshList) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.over() {
		return false
	}
	l.missed = true
	return true
}

// listNow returns a list for a caller who cannot wait longer than a hurry says: one that is known
// to hold, or else the answer of the server. What comes too late is kept, and told to have changed
// if it is news. Until then what was kept before is the answer.
func (up *upstream) listNow(ctx context.Context, c *conn, who client, k *listKind, h *hurry) (*keptList, error) {
	l, asks := c.join(k, h.audience)
	if asks && !up.ask(ctx, c, who, k, h.audience, l) {
		c.settle(k, h.audience, l, nil, 0, errMissing)
	}
	late := time.NewTimer(max(time.Until(h.until), leastPatience))
	defer late.Stop()
	select {
	case <-l.done:
		return l.list, l.err
	case <-late.C:
	case <-ctx.Done():
	}
	if !c.fresh.leave(l) {
		return l.list, l.err
	}
	if kept := up.kept.get(who, k); kept != nil && h.audience.hops == "" {
		return kept, nil
	}
	h.misses(up.name)
	return nil, nil
}

// ask has a list come, on a goroutine of its own, which the caller need not wait for. It returns
// false if the pool is closing.
func (up *upstream) ask(ctx context.Context, c *conn, who client, k *listKind, a audience, l *freshList) bool {
	before := up.kept.list(who, k)
	ctx = forward.Outlive(ctx)
	p := up.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.use(c)
	going := p.spawn(func() {
		defer p.release(c, nil, nil)
		ctx, cancel := context.WithTimeoutCause(ctx, up.g.listTimeout(), errSlow)
		defer cancel()
		defer context.AfterFunc(p.ctx, cancel)()
		var list *keptList
		var ttl time.Duration
		err := errMissing // if the code of the user ends the goroutine
		missed := false
		func() {
			defer func() { missed = c.settle(k, a, l, list, ttl, err) }()
			list, ttl, err = up.fetch(ctx, c, who, k)
		}()
		if !missed || err != nil {
			return
		}
		if after := up.kept.list(who, k); before == nil || !after.long && !after.equal(before) {
			up.g.announce(k.change)
		}
	})
	if !going {
		c.users--
	}
	return going
}

// nothing is a list of a server that has none of a kind, whatever it declares.
var nothing = &keptList{serial: lastSerial.Add(1)}
