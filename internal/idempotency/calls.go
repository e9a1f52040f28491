package idempotency

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/mcp"
)

// maxShared bounds the executions that are shared at a time.
const maxShared = 4096

// Calls is the calls in progress that may be shared. The zero value has none. It may be used by several goroutines at once.
type Calls struct {
	mu     sync.Mutex
	shared map[any]*execution // guarded by mu
}

// execution is one call that its callers wait for. It owns the goroutine of run, which ends when the handler returns; the last
// caller that leaves cancels it and waits for it.
type execution struct {
	calls  *Calls
	key    any
	id     string // of the first caller
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when result, err and usable are set
	apart  chan struct{} // closed when the other callers must have executions of their own

	// Guarded by mu of calls.
	waiting []*waiter
	first   *waiter // that is asked questions; nil: it has left
	alone   bool    // apart is closed

	result mcp.Result
	err    error
	usable bool // others may have the outcome
}

// waiter is one caller.
type waiter struct {
	call *engine.Call // nil: none

	mu   sync.Mutex
	left bool // nothing may reach the caller any more; guarded by mu
}

// errLeft is the error of a question to a caller that has left.
var errLeft = errors.New("the caller that could be asked has left")

// Do passes a request on, or waits for the execution of an equal one: key is what makes them equal, and id names the caller.
// It returns the id of the caller whose execution is shared; empty: this one's own.
func (c *Calls) Do(ctx context.Context, key any, id string, req *mcp.Request, next mcp.Handler) (res mcp.Result, of string, err error) {
	w := &waiter{call: engine.From(ctx)}
	c.mu.Lock()
	x := c.shared[key]
	switch {
	case x != nil:
		x.waiting = append(x.waiting, w)
		c.mu.Unlock()
		return x.join(ctx, w, req, next)
	case len(c.shared) >= maxShared:
		c.mu.Unlock()
		res, err = next.Handle(ctx, req)
		return res, "", err
	}
	x = &execution{calls: c, key: key, id: id, first: w, waiting: []*waiter{w}, done: make(chan struct{}), apart: make(chan struct{})}
	if c.shared == nil {
		c.shared = map[any]*execution{}
	}
	c.shared[key] = x
	c.mu.Unlock()
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // the limits of a call are behind
	x.cancel = cancel
	if w.call != nil {
		own = engine.With(own, w.call.Apart(x.tell, x.asks))
	}
	// The caller may leave, and its bytes be used for another request.
	go x.run(own, &mcp.Request{Method: req.Method, Params: bytes.Clone(req.Params)}, next)
	select {
	case <-x.done:
		c.leave(x, w, nil)
	case <-ctx.Done():
		if !c.leave(x, w, context.Cause(ctx)) {
			return nil, "", context.Cause(ctx)
		}
		<-x.done
	}
	return x.result, "", x.err
}

// join waits for the execution of another caller.
func (x *execution) join(ctx context.Context, w *waiter, req *mcp.Request, next mcp.Handler) (mcp.Result, string, error) {
	select {
	case <-x.done:
	case <-x.apart:
	case <-ctx.Done():
		if x.calls.leave(x, w, context.Cause(ctx)) {
			<-x.done
		}
		return nil, x.id, context.Cause(ctx)
	}
	x.calls.leave(x, w, nil)
	select {
	case <-x.done:
		if x.usable {
			return x.result, x.id, x.err
		}
	default:
	}
	res, err := next.Handle(ctx, req)
	return res, "", err
}

// leave removes a caller. Without others that wait, or if it alone is asked, a caller that leaves with a cause cancels the
// execution, and leave returns true.
func (c *Calls) leave(x *execution, w *waiter, cause error) (ends bool) {
	c.mu.Lock()
	for i, other := range x.waiting {
		if other == w {
			x.waiting = append(x.waiting[:i:i], x.waiting[i+1:]...)
			break
		}
	}
	if ends = cause != nil && (len(x.waiting) == 0 || x.alone && x.first == w); ends {
		x.over()
	}
	if x.first == w {
		x.first = nil
	}
	c.mu.Unlock()
	w.mu.Lock()
	w.left = true
	w.mu.Unlock()
	if ends {
		x.cancel(cause)
	}
	return ends
}

// over lets no more callers join; mu of calls is held.
func (x *execution) over() {
	if x.calls.shared[x.key] == x {
		delete(x.calls.shared, x.key)
	}
}

// run executes the call.
func (x *execution) run(ctx context.Context, req *mcp.Request, next mcp.Handler) {
	defer x.cancel(nil)
	defer close(x.done)
	defer func() {
		if x.result == nil && x.err == nil { // the handler has ended the goroutine
			x.err = usercode.Failed()
		}
		x.calls.mu.Lock()
		defer x.calls.mu.Unlock()
		x.usable = x.usable && !x.alone && ctx.Err() == nil
		x.over()
	}()
	var user *usercode.Runner
	if call := engine.From(ctx); call != nil {
		user = call.User()
	}
	x.err = user.Run(ctx, req.Method, func() (err error) { x.result, err = next.Handle(ctx, req); return err })
	if x.err != nil {
		x.usable = !errors.Is(x.err, mcp.ErrPending)
		return
	}
	if _, task := x.result.(*mcp.CreateTaskResult); task || x.result == nil {
		return
	}
	raw := x.result.JSON()
	kind, typed := jsonx.Lookup(raw, "resultType")
	if x.usable = !typed || string(kind) == `"complete"`; x.usable {
		x.result = mcp.RawResult(bytes.Clone(raw)) // the memory of a message may be used again
	}
}

// asks is called before a question to the first caller. The others have executions of their own from now on.
func (x *execution) asks() error {
	x.calls.mu.Lock()
	defer x.calls.mu.Unlock()
	if !x.alone {
		x.alone = true
		close(x.apart)
	}
	x.over()
	if x.first == nil {
		x.cancel(errLeft)
		return errLeft
	}
	return nil
}

// tell passes a notification on. Others than the first caller get what is about all: progress and log messages.
func (x *execution) tell(method string, params json.RawMessage) error {
	x.calls.mu.Lock()
	first, all := x.first, []*waiter(nil)
	switch {
	case method == revision.NoteProgress || method == revision.NoteMessage:
		all = append(all, x.waiting...)
	case first != nil:
		all = []*waiter{first}
	}
	x.calls.mu.Unlock()
	var err error
	for _, w := range all {
		if told := w.tell(method, params); w == first {
			err = told
		}
	}
	return err
}

// tell sends a notification to the caller unless it has left. The lock is held meanwhile, so that the answer comes after
// it; the wire bounds how long that takes.
func (w *waiter) tell(method string, params json.RawMessage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left || w.call == nil {
		return nil
	}
	return w.call.Pass(method, params)
}
