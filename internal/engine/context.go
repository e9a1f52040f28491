package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/principal"
)

// Part is a context for a call or a part of one. It ends with what it was made of, or by Cancel.
// The means to wait for that end, and to have contexts depend on it, are made when they are first
// needed; mostly they never are. The zero value is not usable before Init.
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

	asking asker // guarded by mu of Part; nil until it is needed
	over   bool  // End was called; guarded by mu of Part
}

// wholeness is a context of the standard library that stands for a Part.
type wholeness struct {
	context.Context
	cancel context.CancelCauseFunc
	unlink func() bool // may be nil
}

var _, _ context.Context = (*Part)(nil), (*Context)(nil)

// ErrNever as the second argument of [Part.Init] lets a context outlive its parent.
var ErrNever = errors.New("never")

// Init makes c a child of parent. When parent ends, gone is the cause of c's end; nil
// stands for that of parent.
func (c *Part) Init(parent context.Context, gone error) { c.parent, c.gone = parent, gone }

// Cancel ends c; the first cause counts. It or End is called at least once.
func (c *Part) Cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancelLocked(cause)
}

// End ends c when its call is answered. What the request came in may serve another after that:
// who was left behind by the handler is not let near it any more.
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

// asked returns what puts the questions of the call, nil if nothing was asked or kept.
func (c *Context) asked() asker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking
}

// asker is [Context.asked], and makes what is not there.
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

func (c *Context) round() int {
	if a := c.asked(); a != nil {
		return a.round()
	}
	return 0
}

// whole returns a context of the standard library that stands for c.
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

// Rouse has wake be sent a value, without waiting, when ctx is cancelled, and returns what ctx ends
// with besides, nil if that is all. It is Done for a goroutine that waits on a channel of its own
// anyway, and spares a [Context], and a [Part] of one, the channels that stand for their end.
// [Sleep] must follow.
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

// Sleep takes back what Rouse did: nothing is sent to wake when it has returned.
func Sleep(ctx context.Context, wake chan<- struct{}) {
	for p := partOf(ctx); p != nil; p = partOf(p.parent) {
		p.mu.Lock()
		if p.wake == wake {
			p.wake = nil
		}
		p.mu.Unlock()
	}
}

func partOf(ctx context.Context) *Part {
	switch ctx := ctx.(type) {
	case *Part:
		return ctx
	case *Context:
		return &ctx.Part
	}
	return nil
}

// rouse returns what c ends with besides its own end: a context, or else a channel.
func (c *Part) rouse(wake chan<- struct{}) (parent context.Context, end <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cause != nil:
		rouse(wake)
		return nil, nil
	case c.full != nil:
		return nil, c.full.Done()
	case c.wake != nil: // another waits for the same
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
	default: // it is awake
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
		// The key by which package context finds whom to ask for a cause, and whom to
		// add a child to, is of this type.
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
	}
	return c.Part.Value(key)
}
