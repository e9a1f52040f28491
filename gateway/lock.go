package gateway

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A Lock is held by one of several gateways while it uses an [Exclusive] server. A Lease of package cluster is one.
type Lock interface {
	// HeldFor says whether the lock is held now and, if it is not given back, for a time from now on.
	HeldFor(d time.Duration) bool
	// Lost is closed when the lock is no longer held.
	Lost() <-chan struct{}
	// Release gives the lock back.
	Release(ctx context.Context) error
}

// ErrInUse is wrapped by the error of [Gateway.Lock] if another gateway has the server.
var ErrInUse = errors.New("gateway: the server is in use by another gateway")

// lockMargin is how long a lock has to be held yet when a request is sent.
const lockMargin = time.Second

// locked is the lock under which the caller with the lease of an Exclusive server uses it.
type locked struct {
	changing chan struct{} // capacity 1: full while lock, who and forget are used
	lock     Lock          // nil: none
	who      client        // who has lock
	unused   *time.Timer   // ends lock; nil: it was not used yet; guarded by mu of the lease
	forget   func() bool   // no longer ends lock when the session of who ends; nil: who has none
}

// turn waits until the caller of a request may use the server, and returns the lock under which it does; nil: it needs none. The request
// ends with a call of end.
func (p *pool) turn(ctx context.Context, method string) (lock Lock, end func(), err error) {
	if end, err = p.acquire(ctx, method); err != nil {
		return nil, nil, err
	}
	if lock, err = p.hold(ctx, method); err != nil {
		end()
		return nil, nil, err
	}
	return lock, end, nil
}

// hold takes the lock of an Exclusive server for the caller that has the lease, if it has none, and returns it; nil: the request needs none.
func (p *pool) hold(ctx context.Context, method string) (Lock, error) {
	if p.g.Lock == nil || p.src.Share != Exclusive || !needsLease(ctx, method) {
		return nil, nil
	}
	try, stop := context.WithTimeoutCause(ctx, max(p.src.Queue, lockMargin), errLate)
	defer stop()
	defer context.AfterFunc(p.ctx, stop)()
	h := &p.locked
	select {
	case h.changing <- struct{}{}:
	case <-try.Done():
		return nil, p.notHeld(ctx, cmp.Or(p.refusedBefore(), context.Cause(try)))
	}
	defer func() { <-h.changing }()
	p.lease.mu.Lock()
	who := p.lease.who
	p.lease.mu.Unlock()
	if h.lock != nil && h.who == who {
		if renewed(try, h.lock) {
			return h.lock, nil
		}
		if try.Err() != nil {
			return nil, p.notHeld(ctx, context.Cause(try))
		}
	}
	p.unlock()
	defer wait.From(ctx).Since(time.Now())
	lock, err := p.g.Lock(try, p.src.Name)
	p.lease.mu.Lock()
	p.lease.refused = err
	p.lease.mu.Unlock()
	if err != nil {
		return nil, p.notHeld(ctx, err)
	}
	h.lock, h.who = lock, who
	if who.session != nil {
		h.forget = context.AfterFunc(who.session, p.unlockUnused)
	}
	return lock, nil
}

// refusedBefore returns why the caller of a request, which has waited for another one of the same caller, does not get the lock; nil: it
// is not known.
func (p *pool) refusedBefore() error {
	select {
	case p.locked.changing <- struct{}{}: // the other one ends at about the same time
		<-p.locked.changing
	case <-time.After(lockMargin / 2):
	}
	p.lease.mu.Lock()
	defer p.lease.mu.Unlock()
	return p.lease.refused
}

// renewed waits until a lock that is held is held for a while yet. A renewal may be late while the nodes choose another leader.
func renewed(ctx context.Context, lock Lock) bool {
	for !lock.HeldFor(lockMargin) {
		if !lock.HeldFor(0) {
			return false
		}
		select {
		case <-time.After(lockMargin / 50):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// notHeld returns the error for a request that did not get the lock.
func (p *pool) notHeld(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p.ctx.Err() != nil:
		return &UnavailableError{Stopped, mcp.Errorf(jsonrpc.CodeInternal, "server %q is %s", p.src.Name, Stopped)}
	case errors.Is(err, ErrInUse):
		p.mu.Lock()
		p.refusals++
		p.mu.Unlock()
		return mcp.Errorf(jsonrpc.CodeInternal, "server %q is in use by a caller at another node. This request waited %v and did not reach it", p.src.Name, max(p.src.Queue, lockMargin))
	}
	p.g.log().Warn("an exclusive server is not used, because the other nodes do not answer", "server", p.src.Name, "err", err)
	return mcp.Errorf(jsonrpc.CodeInternal, "server %q: whether another node uses it is not known; this request did not reach it", p.src.Name)
}

// errLockLost is the cause of the end of a call whose gateway has lost the lock.
var errLockLost = errors.New("the lock of the server was lost")

// under returns a context that ends when a lock is lost. Call stop afterwards: it returns the error for the caller in place of err.
func (p *pool) under(ctx context.Context, lock Lock) (_ context.Context, stop func(err error) error) {
	if lock == nil {
		return ctx, func(err error) error { return err }
	}
	held, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-lock.Lost():
			cancel(errLockLost)
		case <-held.Done():
		}
	}()
	return held, func(err error) error {
		cancel(nil)
		if err == nil || context.Cause(held) != errLockLost {
			return err
		}
		return &reworded{mcp.Errorf(jsonrpc.CodeInternal, "server %q: the owner has changed: this node is cut off from the others, one of which may use it now; the call was cancelled, and may have had an effect", p.src.Name), err}
	}
}

// unlock gives the lock back, if there is one. The caller has changing.
func (p *pool) unlock() {
	h := &p.locked
	if h.lock == nil {
		return
	}
	if h.forget != nil {
		h.forget()
	}
	lock := h.lock
	h.lock, h.forget = nil, nil
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
	p.lease.mu.Lock()
	unused := p.lease.users == 0 && p.unused() <= 0
	p.lease.mu.Unlock()
	if unused {
		p.unlock()
	}
}

// unused returns for how long the lock stays if its caller, who has no request in progress, does not use it from now on; mu of the lease is held.
func (p *pool) unused() time.Duration {
	idle, session := p.leaseIdle(), p.lease.who.session
	switch {
	case session == nil: // its next request may come to another node
		return 0
	case session.Err() != nil:
		return 0
	case idle < 0:
		return forever
	}
	return time.Until(p.lease.last.Add(idle))
}

const forever = time.Duration(1<<63 - 1)

// unlockLater ends the lock when it has not been used for a while. The lease has no requests any more; its mu is held.
func (p *pool) unlockLater() {
	if p.g.Lock == nil {
		return
	}
	switch left := p.unused(); {
	case left == forever: // it ends with the session
	case p.locked.unused == nil:
		p.locked.unused = time.AfterFunc(left, p.unlockUnused)
	default:
		p.locked.unused.Reset(left)
	}
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
