package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// lease says which caller has an Exclusive server. The zero value is free.
type lease struct {
	mu      sync.Mutex
	held    bool          // guarded by mu
	who     client        // the holder: a session, or a principal without one; guarded by mu
	users   int           // its requests in progress; guarded by mu
	last    time.Time     // when users became 0; guarded by mu
	refused error         // why the holder did not get the lock of other gateways; nil: it did; guarded by mu
	changed chan struct{} // closed at the next change; nil if nobody waits; guarded by mu
}

// leaseIdle is how long a lease lasts that its holder does not use, if the source does not say it.
const leaseIdle = time.Minute

// needsLease reports whether a request needs the lease: not the lists, which all callers may read, and
// not those about the connection.
func needsLease(ctx context.Context, method string) bool {
	switch method {
	case revision.MethodInitialize, revision.MethodPing, revision.MethodDiscover, revision.MethodListen:
		return false
	}
	_, lists := feature.Of(method)
	return !lists && !note.Probing(ctx)
}

// acquire waits until the caller of a request has the lease of an Exclusive server, for at most
// Source.Queue. The request ends with a call of the function that acquire returns.
func (p *pool) acquire(ctx context.Context, method string) (end func(), err error) {
	if p.src.Share != Exclusive || !needsLease(ctx, method) {
		return func() {}, nil
	}
	who, idle := clientOf(ctx).alone(), p.leaseIdle()
	if who.session == nil {
		who = client{principal: who.principal}
	}
	l := &p.lease
	var late <-chan time.Time
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		left, free := l.left(who, idle)
		if free {
			if l.who != who {
				l.refused = nil
			}
			l.held, l.who = true, who
			l.users++
			return p.leave, nil
		}
		if p.src.Queue < 0 {
			return nil, p.leased(idle)
		}
		if late == nil {
			late = time.After(p.src.Queue)
			defer wait.From(ctx).Since(time.Now())
		}
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		var ended <-chan struct{}
		if l.who.session != nil && l.users == 0 {
			ended = l.who.session.Done()
		}
		var unused <-chan time.Time
		if left > 0 {
			unused = time.After(left)
		}
		l.mu.Unlock()
		fail := error(nil)
		select {
		case <-changed:
		case <-ended:
		case <-unused:
		case <-late:
			fail = errLate
		case <-ctx.Done():
			fail = context.Cause(ctx)
		case <-p.ctx.Done():
			fail = &UnavailableError{Stopped, mcp.Errorf(jsonrpc.CodeInternal, "server %q is %s", p.src.Name, Stopped)}
		}
		l.mu.Lock()
		switch fail {
		case nil:
		case errLate:
			return nil, p.leased(idle)
		default:
			return nil, fail
		}
	}
}

var errLate = fmt.Errorf("the wait has ended")

// left reports whether a caller may have the lease now, and else for how long the holder may leave it
// unused from now on; 0: not known. mu is held.
func (l *lease) left(who client, idle time.Duration) (left time.Duration, free bool) {
	if !l.held || l.who == who {
		return 0, true
	}
	if l.users > 0 {
		return 0, false
	}
	if idle < 0 && l.who.session == nil {
		idle = clientIdle // a caller without a session cannot say that it leaves
	}
	if l.who.session != nil && l.who.session.Err() != nil {
		return 0, true
	}
	if idle < 0 {
		return 0, false
	}
	left = time.Until(l.last.Add(idle))
	return left, left <= 0
}

// leave ends a request of the holder. A holder to which other gateways have refused the server does not keep the lease, nor does one
// without a session, whose next request may come to another gateway.
func (p *pool) leave() {
	l := &p.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	l.last, l.held = time.Now(), p.g.Lock == nil || l.refused == nil && l.who.session != nil
	p.unlockLater()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// leased counts and returns the error for a request that did not get the lease; mu of the lease is held.
func (p *pool) leased(idle time.Duration) error {
	p.mu.Lock()
	p.refusals++
	p.mu.Unlock()
	of, when := "session", "when that session ends"
	if p.lease.who.session == nil {
		of, when = "caller", "when that caller leaves"
	}
	if idle > 0 {
		when += fmt.Sprintf(" or has not used it for %v", idle)
	}
	return mcp.Errorf(jsonrpc.CodeInternal, "server %q is in use by another %s; it is free again %s. This request waited %v and did not reach it", p.src.Name, of, when, max(p.src.Queue, 0))
}
