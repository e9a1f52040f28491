package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/trace"
)

// Part is a context for a call or a part of one. It ends with its parent, or by Cancel. The
// channel of Done, and the links to child contexts, are made when they are first needed; most
// calls never need them. Init must be called before use.
type Part struct {
	parent context.Context
	gone   error // the cause of the end if parent ends; nil: that of parent

	mu    sync.Mutex
	full  *wholeness      // guarded by mu; nil until it is needed
	wake  chan<- struct{} // of Rouse; guarded by mu
	cause error           // of Cancel, nil before that; guarded by mu
}

// Context is the context of one call that a transport serves, with the call in it.
type Context struct {
	Part

	call Call
	peer Peer // of a modern request

	cause *trace.Cause // of what is done for the call; nil: it is not recorded
	waits wait.Clock

	asking asker // guarded by mu of Part; nil until it is needed
	over   bool  // End was called; guarded by mu of Part
}

// wholeness is a standard library context that represents a Part.
type wholeness struct {
	context.Context
	cancel context.CancelCauseFunc
	unlink func() bool // may be nil
}

var _, _ context.Context = (*Part)(nil), (*Context)(nil)

// ErrNever as the second argument of [Part.Init] lets a context outlive its parent.
var ErrNever = errors.New("never")

// ErrShutdown is the cause of contexts that end because the server shuts down.
var ErrShutdown error = shutdown{}

type shutdown struct{}

func (shutdown) Error() string { return "the server is shutting down" }

// ShutDown returns true: package outcome takes the end of the context for one that its caller did not cause.
func (shutdown) ShutDown() bool { return true }

// Init makes c a child of parent. When parent ends, gone is the cause of c's end; nil means the
// cause of parent.
func (c *Part) Init(parent context.Context, gone error) { c.parent, c.gone = parent, gone }

// Cancel ends c; the first cause counts. Cancel or End must be called at least once.
func (c *Part) Cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancelLocked(cause)
}

// End ends c when its call is answered. The bytes of the request may then be reused for another,
// so goroutines that the handler left behind cannot read them any more.
func (c *Context) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.cancelLocked(nil)
}

func (c *Part) cancelLocked(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	if c.cause == nil {
		c.cause = cause
		if c.wake != nil {
			rouse(c.wake)
		}
	}
	if c.full != nil {
		c.full.cancel(cause)
		if c.full.unlink != nil {
			c.full.unlink()
		}
	}
}

// asked returns the asker of the call, or nil if nothing was asked or remembered.
func (c *Context) asked() asker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking
}

// asker is [Context.asked], but makes the asker if there is none.
func (c *Context) asker() asker {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.asking != nil:
	case c.call.session == nil:
		c.asking = &replay{}
	default:
		c.asking = &live{}
	}
	return c.asking
}

func (c *Context) ask(ctx context.Context, call *Call, qs []Question) ([]json.RawMessage, error) {
	return c.asker().ask(ctx, call, qs)
}

func (c *Context) remember(key string, v json.RawMessage) { c.asker().remember(key, v) }

func (c *Context) recall(key string) (json.RawMessage, bool) {
	if a := c.asked(); a != nil {
		return a.recall(key)
	}
	return nil, false
}

func (c *Context) stay(node string) { c.asker().stay(node) }

func (c *Context) carry() { c.asker().carry() }

func (c *Context) carries() bool {
	a := c.asked()
	return a != nil && a.carries()
}

func (c *Context) stayed() string {
	if a := c.asked(); a != nil {
		return a.stayed()
	}
	return ""
}

func (c *Context) round() int {
	if a := c.asked(); a != nil {
		return a.round()
	}
	return 0
}

// whole returns a standard library context that represents c.
func (c *Part) whole() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wholeLocked()
}

func (c *Part) wholeLocked() *wholeness {
	if c.full != nil {
		return c.full
	}
	w := &wholeness{}
	if c.gone == nil {
		w.Context, w.cancel = context.WithCancelCause(c.parent)
	} else {
		w.Context, w.cancel = context.WithCancelCause(context.WithoutCancel(c.parent))
		switch {
		case c.cause != nil, c.gone == ErrNever:
		case c.parent.Err() != nil: // AfterFunc would do it later
			w.cancel(c.gone)
		default:
			w.unlink = context.AfterFunc(c.parent, func() { w.cancel(c.gone) })
		}
	}
	if c.cause != nil {
		w.cancel(c.cause)
	}
	c.full = w
	return w
}

// Deadline implements [context.Context].
func (c *Part) Deadline() (time.Time, bool) {
	if c.gone != nil {
		return time.Time{}, false
	}
	return c.parent.Deadline()
}

// Done implements [context.Context].
func (c *Part) Done() <-chan struct{} { return c.whole().Done() }

// Rouse arranges that wake is sent a value, without blocking, when ctx is cancelled. It returns a
// channel that is closed if ctx ends in another way, or nil if ctx cannot. Rouse replaces Done for
// a goroutine that waits on a channel of its own, so that a [Context], or a [Part] of one, needs no
// Done channel. [Sleep] must follow.
func Rouse(ctx context.Context, wake chan<- struct{}) (end <-chan struct{}) {
	for {
		p := partOf(ctx)
		if p == nil {
			return ctx.Done()
		}
		if ctx, end = p.rouse(wake); ctx == nil {
			return end
		}
	}
}

// Sleep undoes Rouse: nothing is sent to wake after it returns.
func Sleep(ctx context.Context, wake chan<- struct{}) {
	for p := partOf(ctx); p != nil; p = partOf(p.parent) {
		p.mu.Lock()
		if p.wake == wake {
			p.wake = nil
		}
		p.mu.Unlock()
	}
}

// partOf returns the Part that a context is or, beside its values, consists of; nil: it is another one. A context
// that adds nothing but values to its parent says so by a method AddsValuesTo.
func partOf(ctx context.Context) *Part {
	for {
		switch c := ctx.(type) {
		case *Part:
			return c
		case *Context:
			return &c.Part
		case *callContext:
			ctx = c.Context
		case interface{ AddsValuesTo() context.Context }:
			ctx = c.AddsValuesTo()
		default:
			return nil
		}
	}
}

// rouse returns the other end that ends c: a context, or else a channel.
func (c *Part) rouse(wake chan<- struct{}) (parent context.Context, end <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cause != nil:
		rouse(wake)
		return nil, nil
	case c.full != nil:
		return nil, c.full.Done()
	case c.wake != nil: // another goroutine waits already
		return nil, c.wholeLocked().Done()
	}
	c.wake = wake
	if c.gone == ErrNever {
		return nil, nil
	}
	return c.parent, nil
}

func rouse(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default: // it has a value already
	}
}

// Err implements [context.Context].
func (c *Part) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.full != nil:
		return c.full.Err()
	case c.cause != nil:
		return context.Canceled
	}
	switch c.gone {
	case nil:
		return c.parent.Err()
	case ErrNever:
		return nil
	}
	if c.parent.Err() != nil {
		return context.Canceled
	}
	return nil
}

// Value implements [context.Context].
func (c *Part) Value(key any) any {
	if _, ok := key.(*int); ok {
		// Package context looks up the parent for causes and children with a key of this type.
		return c.whole().Value(key)
	}
	return c.parent.Value(key)
}

// Value implements [context.Context].
func (c *Context) Value(key any) any {
	switch key.(type) {
	case callKey:
		if c.call.Msg != nil {
			return &c.call
		}
	case principal.Key:
		if c.call.Peer != nil {
			return &c.call.Peer.Principal
		}
	case causeKey:
		if c.cause != nil {
			return c.cause
		}
	case wait.Key:
		return &c.waits
	}
	return c.Part.Value(key)
}
