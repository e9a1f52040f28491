package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Turns at a legacy server whose questions name no call: forwarded calls of different callers, and
// those of 2026-07-28 callers, run one after the other, so that a question belongs to the only call
// in progress. Calls of one session need no turns, because its questions go to the session.
//
//   - The queue is fair: a call that could run waits behind those that came before it.
//   - A call waits at most sameTime for calls of its own principal, because these may take long,
//     and none of their questions can reach anybody else.
//   - While a call has an open question, other calls of its principal do not wait for it, because
//     the answer may need them.
//   - A call that was given up keeps its turn for goneTime, unless the next call is of the same
//     caller, because the server may still ask on its behalf.

const (
	// turnTime bounds a call's wait for its turn.
	turnTime = 5 * time.Minute

	// sameTime bounds a call's wait for calls of its own principal.
	sameTime = 2 * time.Second

	// goneTime is the time for a server to stop work on a call that was given up.
	goneTime = 5 * time.Second
)

// turn is the place of a forwarded call in the order. Its fields except by, session and front are
// guarded by mu of openCalls.
type turn struct {
	by      caller
	session *engine.Session // nil for a caller without one
	front   *engine.Call    // the call that may be asked

	lacks atomic.Pointer[engine.LacksError] // why front could not be asked; nil: it could, or was not

	open   int           // its open questions
	asked  time.Time     // when the first of them was asked; zero: none is open
	same   bool          // the call has waited sameTime for calls of its principal
	gone   bool          // the call was given up
	inside bool          // the call is in progress
	comes  chan struct{} // closed when the turn of a waiting call comes
}

// fits reports whether a call can run beside those in progress; mu is held.
func (o *openCalls) fits(t *turn) bool {
	return !slices.ContainsFunc(o.inside, func(in *turn) bool {
		sameSession := t.session != nil && in.session == t.session
		return !sameSession && !(in.by == t.by && (in.open > 0 || in.gone || t.same))
	})
}

// nested reports whether an open question's answer may need a call; mu is held.
func (o *openCalls) nested(t *turn) bool {
	return slices.ContainsFunc(o.inside, func(in *turn) bool { return in.by == t.by && in.open > 0 })
}

// enter waits for the turn of a call. On success, leave must follow. An error is a [*wait.Error].
func (r *Remote) enter(ctx context.Context, t *turn) error {
	o := &r.calls
	o.mu.Lock()
	if !o.asks.Load() || o.fits(t) && (len(o.queue) == 0 || o.nested(t)) {
		t.inside = true
		o.inside = append(o.inside, t)
		o.mu.Unlock()
		return nil
	}
	t.comes = make(chan struct{})
	o.queue = append(o.queue, t)
	o.mu.Unlock()
	defer wait.From(ctx).Since(time.Now())
	late := time.NewTimer(turnTime)
	defer late.Stop()
	same := time.AfterFunc(sameTime, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		t.same = true
		o.advance()
	})
	defer same.Stop()
	failed := new(wait.Error)
	select {
	case <-t.comes:
		return nil
	case <-ctx.Done():
		failed.Err = context.Cause(ctx)
	case <-r.Wire.Done():
		failed.Err = r.Owner.Public(cmp.Or(r.Wire.Err(), error(jsonrpc.ErrClosed)))
	case <-late.C:
		failed.Late = true
		behind := "calls of others were in progress"
		if _, asked, who := o.turns(); !asked.IsZero() {
			behind = fmt.Sprintf("a question to %s has been open for %v", cmp.Or(text.Short(who), "another caller"), time.Since(asked).Round(time.Second))
		}
		failed.Err = errorf(jsonrpc.CodeInternal, "this call was not sent: it has waited for its turn for %v, and %s. The server asks questions that name no call, "+
			"so callers that share its connection take turns. Try again later, or give each client a connection of its own (share)", turnTime, behind)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if t.inside {
		o.remove(t)
	} else {
		o.queue = slices.DeleteFunc(o.queue, func(in *turn) bool { return in == t })
	}
	o.advance()
	return failed
}

// answered reports whether a server has answered a call that ended with err, so that it does not
// work on it any more.
func answered(err error) bool {
	var rpc *jsonrpc.Error
	return err == nil || errors.As(err, &rpc)
}

// leave ends the turn of a call. If answered is set, the server does not work on the call any more.
func (o *openCalls) leave(t *turn, answered bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !answered {
		t.gone = true
		time.AfterFunc(goneTime, func() { o.leave(t, true) })
	} else {
		o.remove(t)
	}
	o.advance()
}

// remove removes a call from those in progress; mu is held.
func (o *openCalls) remove(t *turn) {
	t.inside = false
	o.inside = slices.DeleteFunc(o.inside, func(in *turn) bool { return in == t })
}

// advance starts the waiting calls whose turn it is; mu is held.
func (o *openCalls) advance() {
	for i := 0; i < len(o.queue); {
		t := o.queue[i]
		if !o.fits(t) || i > 0 && !o.nested(t) {
			i++
			continue
		}
		o.queue = slices.Delete(o.queue, i, i+1)
		t.inside = true
		o.inside = append(o.inside, t)
		close(t.comes)
		i = 0
	}
}

// opened adds n to the open questions of a call.
func (o *openCalls) opened(t *turn, n int) {
	if t == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if t.open == 0 {
		t.asked = time.Now()
	}
	if t.open += n; t.open == 0 {
		t.asked = time.Time{}
	}
	o.advance()
}

// turns returns how many calls wait for their turn, and, if a call in progress has an open question,
// when the oldest was asked and the principal who has to answer it.
func (o *openCalls) turns() (waiting int, asked time.Time, principal string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, in := range o.inside {
		if in.open > 0 && (asked.IsZero() || in.asked.Before(asked)) {
			asked, principal = in.asked, in.by.principal
		}
	}
	return len(o.queue), asked, principal
}

// Turns returns how many forwarded calls wait for their turn, and, if a call in progress has an open
// question, when the oldest was asked, and the principal who has to answer it, if known.
func (r *Remote) Turns() (waiting int, asked time.Time, principal string) {
	waiting, asked, principal = r.calls.turns()
	if front := r.inFront.Load(); front != nil {
		before, _, _ := front.calls.turns()
		waiting += before
	}
	return waiting, asked, principal
}

// Asks reports whether the server asks questions that do not name their call, so that forwarded
// calls of different callers take turns. It is always false for a server that speaks 2026-07-28.
func (r *Remote) Asks() bool { return r.calls.asks.Load() }

// TakeTurns makes r behave as if Asks were true. Use it for a server that is known from an earlier
// session. Calls on behalf of callers take turns in front of the middleware of the client, because
// behind it all of them are calls of the client itself.
func (r *Remote) TakeTurns() {
	r.calls.asks.Store(true)
	if front := r.inFront.Load(); front != nil {
		front.TakeTurns()
	}
}
