package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A Lock is the right of a gateway to use a server of which all gateways that appear as one are users. A Lease of package cluster
// is one.
type Lock interface {
	// HeldFor says whether the lock is held now and, if it is not given back, for a time from now on.
	HeldFor(d time.Duration) bool
	// Release gives the lock back.
	Release(ctx context.Context) error
}

// lockMargin is how long a lock has to be held yet when a request is sent.
const lockMargin = time.Second

// locked is the lock under which the caller with the lease of an Exclusive server uses it.
type locked struct {
	changing chan struct{} // capacity 1: full while lock, who and left are used
	lock     Lock          // nil: none
	who      client        // who has lock
	unused   *time.Timer   // ends lock; nil: it was not used yet; guarded by mu of the lease
	left     func() bool   // no longer ends lock when the session of who ends; nil: who has none
}

// hold takes the lock of an Exclusive server for the caller that has the lease, if it has none, and sees that it is held when the
// request is sent.
func (p *pool) hold(ctx context.Context, method string) error {
	if p.g.Lock == nil || p.src.Share != Exclusive || !needsLease(ctx, method) {
		return nil
	}
	h := &p.locked
	select {
	case h.changing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.changing }()
	p.lease.mu.Lock()
	who := p.lease.who
	p.lease.mu.Unlock()
	if h.lock != nil && h.who == who && h.lock.HeldFor(lockMargin) {
		return nil
	}
	p.unlock()
	defer wait.From(ctx).Since(time.Now())
	try, stop := context.WithTimeoutCause(ctx, max(p.src.Queue, lockMargin), errLate)
	defer stop()
	lock, err := p.g.Lock(try, p.src.Name)
	switch {
	case err == nil && lock.HeldFor(lockMargin):
	case err == nil:
		h.lock = lock
		p.unlock()
		return mcp.Errorf(jsonrpc.CodeInternal, "server %q: the owner has changed: another node may use it now; try again", p.src.Name)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(context.Cause(try), errLate):
		p.mu.Lock()
		p.refusals++
		p.mu.Unlock()
		return &reworded{mcp.Errorf(jsonrpc.CodeInternal, "server %q is in use by a caller at another node. This request waited %v and did not reach it", p.src.Name, max(p.src.Queue, lockMargin)), err}
	default:
		return &reworded{mcp.Errorf(jsonrpc.CodeInternal, "server %q: whether another node uses it is not known; this request did not reach it", p.src.Name), fmt.Errorf("lock of server %q: %w", p.src.Name, err)}
	}
	h.lock, h.who = lock, who
	if who.session != nil {
		h.left = context.AfterFunc(who.session, p.unlockUnused)
	}
	return nil
}

// unlock gives the lock back, if there is one. The caller changes it.
func (p *pool) unlock() {
	h := &p.locked
	if h.lock == nil {
		return
	}
	if h.left != nil {
		h.left()
	}
	lock := h.lock
	h.lock, h.left = nil, nil
	ctx, stop := context.WithTimeout(context.WithoutCancel(p.ctx), lockMargin)
	defer stop()
	if err := lock.Release(ctx); err != nil { // it ends by itself
		p.g.log().Warn("the lock of a server was not given back", "server", p.src.Name, "err", err)
	}
}

// unlockUnused gives the lock back if its caller does not use it any more.
func (p *pool) unlockUnused() {
	h := &p.locked
	h.changing <- struct{}{}
	defer func() { <-h.changing }()
	l := &p.lease
	l.mu.Lock()
	left := time.Duration(0)
	if l.held && l.users == 0 {
		left, _ = l.left(client{}, p.leaseIdle())
	}
	unused := l.users == 0 && left <= 0
	l.mu.Unlock()
	if unused {
		p.unlock()
	}
}

// unlockLater ends the lock when it has not been used for the time of a lease. The lease has no requests any more; its mu is held.
func (p *pool) unlockLater() {
	idle, session := p.leaseIdle(), p.lease.who.session
	switch {
	case p.g.Lock == nil:
		return
	case session != nil && session.Err() != nil:
		idle = 0
	case idle < 0 && session != nil:
		return // it ends with the session
	case idle < 0:
		idle = clientIdle
	}
	if p.locked.unused == nil {
		p.locked.unused = time.AfterFunc(idle, p.unlockUnused)
		return
	}
	p.locked.unused.Reset(idle)
}

// endLock gives the lock back for good.
func (p *pool) endLock() {
	p.lease.mu.Lock()
	if p.locked.unused != nil {
		p.locked.unused.Stop()
	}
	p.lease.mu.Unlock()
	p.locked.changing <- struct{}{}
	defer func() { <-p.locked.changing }()
	p.unlock()
}

// leaseIdle is how long the lease of this server lasts that its holder does not use; negative: until the holder leaves.
func (p *pool) leaseIdle() time.Duration {
	if p.src.Idle == 0 {
		return leaseIdle
	}
	return p.src.Idle
}
