package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// A connection caches the lists that it returned while they are valid, for callers that the server
// cannot tell apart:
//
//   - A list belongs to an audience: callers that are the same to the server.
//   - Only lists of an Upstream with the method ListVersion of a Session are cached, because other
//     upstreams may answer differently each time.
//   - A change that the server announces invalidates all lists of the kind, including those still
//     in progress. So does the end of the subscription that announces changes.
//   - While changes are announced, a list is cached for heardAge, because some servers forget an
//     announcement, or for the ttlMs of a public list if that is longer. Otherwise it is cached for
//     its ttlMs, or for unheardAge if the server is older than 2026-07-28.
//   - Concurrent requests for a list share one answer.

const (
	heardAge   = 30 * time.Second
	unheardAge = 2 * time.Second

	maxFresh      = 100 // lists of one connection
	maxFreshBytes = 16 << 20
)

// lister is an Upstream that reports versions of its lists, as a [*mcp.Session] does.
type lister interface {
	ListVersion(method string) (version uint64, heard bool)
}

// listVersion identifies the state of a list, as far as changes were announced.
type listVersion struct{ told, shared uint64 }

// version returns the state of a list, and whether a change of it would be announced.
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

// fresh is the cache of lists of one connection. The zero value is ready for use.
type fresh struct {
	mu    sync.Mutex
	lists map[freshKey]*freshList // guarded by mu
	bytes int                     // guarded by mu
}

type freshKey struct {
	method string
	audience
}

// freshList is a cached list, or one in progress.
type freshList struct {
	version listVersion // before the request
	heard   bool        // a change would have been announced then
	done    chan struct{}

	// The answer. Read it after done is closed.
	list  *keptList
	err   error
	until time.Time

	missed bool // a caller stopped waiting for it; guarded by mu of fresh
}

// over reports whether the list is complete.
func (l *freshList) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// holds reports whether a complete list is still valid.
func (l *freshList) holds(v listVersion, heard bool) bool {
	return l.version == v && (heard || !l.heard) && time.Now().Before(l.until)
}

// known returns a valid cached list, or nil.
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

// join returns the list for an audience. If asks is true, the caller must request it and call
// settle.
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

// settle completes a list and caches the list if it is still valid. The result missed reports
// whether a caller has stopped waiting for the list.
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

// leave records that a caller stops waiting for a list. It returns false if the list is complete.
func (f *fresh) leave(l *freshList) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.over() {
		return false
	}
	l.missed = true
	return true
}

// listNow returns a list within the bounds of h: a valid cached list, or the answer from the
// server. An answer that comes too late is cached and, if it differs, announced as a change. Until
// then the caller gets the previous list.
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
	if kept := up.cache.get(who, k); kept != nil && h.audience.hops == "" {
		return kept, nil
	}
	h.misses(up.name)
	return nil, nil
}

// ask requests a list on a new goroutine, which the caller need not wait for. It returns false if
// the pool is closing.
func (up *upstream) ask(ctx context.Context, c *conn, who client, k *listKind, a audience, l *freshList) bool {
	before := up.cache.list(who, k)
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
		err := errMissing // if code of the user ends the goroutine
		missed := false
		func() {
			defer func() { missed = c.settle(k, a, l, list, ttl, err) }()
			list, ttl, err = up.fetch(ctx, c, who, k)
		}()
		if !missed || err != nil {
			return
		}
		if after := up.cache.list(who, k); before == nil || !after.long && !after.equal(before) {
			up.g.announce(k.change)
		}
	})
	if !going {
		c.users--
	}
	return going
}

// nothing is the list of a server that does not support the method, whatever it declares.
var nothing = &keptList{serial: lastSerial.Add(1)}
