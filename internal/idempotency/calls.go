package idempotency

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
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
	// Logger gets the number of notifications that a slow caller has missed. It may be nil.
	Logger *slog.Logger

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

// waiter is one caller. Its notifications wait for the goroutine of the caller, so that a slow one delays no other.
type waiter struct {
	call *engine.Call  // nil: none
	wake chan struct{} // capacity 1: notifications wait

	passing sync.Mutex // held while notifications are passed on

	mu    sync.Mutex
	notes engine.Notes // guarded by mu
	left  bool         // nothing may reach the caller any more; guarded by mu
}

// errLeft is the error of a question to a caller that has left.
var errLeft = errors.New("the caller that could be asked has left")

// Do passes a request on, or waits for the execution of an equal one: key is what makes them equal, and id names the caller.
// It returns the id of the caller whose execution is shared; empty: this one's own.
func (c *Calls) Do(ctx context.Context, key any, id string, req *mcp.Request, next mcp.Handler) (res mcp.Result, of string, err error) {
	w := &waiter{call: engine.From(ctx), wake: make(chan struct{}, 1)}
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
	if err = x.await(ctx, w, nil); !c.leave(x, w, err) && err != nil {
		return nil, "", err
	}
	<-x.done
	return x.result, "", x.err
}

// join waits for the execution of another caller.
func (x *execution) join(ctx context.Context, w *waiter, req *mcp.Request, next mcp.Handler) (mcp.Result, string, error) {
	err := x.await(ctx, w, x.apart)
	if ends := x.calls.leave(x, w, err); err != nil {
		if ends {
			<-x.done
		}
		return nil, x.id, err
	}
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

// await passes notifications on to a caller until the execution has ended or apart is closed. Its error says why the caller
// has left before.
func (x *execution) await(ctx context.Context, w *waiter, apart <-chan struct{}) error {
	for {
		select {
		case <-w.wake:
			w.pass(ctx, x.calls.Logger)
			continue
		case <-x.done:
		case <-apart:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		w.pass(ctx, x.calls.Logger)
		return nil
	}
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
	w.leave()
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

// asks is called before a question to the first caller, which gets its notifications before that. The others have executions
// of their own from now on.
func (x *execution) asks(ctx context.Context) error {
	x.calls.mu.Lock()
	if !x.alone {
		x.alone = true
		close(x.apart)
	}
	x.over()
	first := x.first
	x.calls.mu.Unlock()
	if first == nil {
		x.cancel(errLeft)
		return errLeft
	}
	first.pass(ctx, x.calls.Logger)
	return nil
}

// tell queues a notification. Others than the first caller get what is about all: progress and log messages.
func (x *execution) tell(method string, params json.RawMessage) error {
	note := engine.Note{Method: method, Params: bytes.Clone(params)} // its memory may be used again
	x.calls.mu.Lock()
	defer x.calls.mu.Unlock()
	for _, w := range x.waiting {
		if w == x.first || method == revision.NoteProgress || method == revision.NoteMessage {
			w.tell(note)
		}
	}
	return nil
}

// tell queues a notification to the caller unless it has left.
func (w *waiter) tell(n engine.Note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left || w.call == nil {
		return
	}
	w.notes.Put(n)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// pass passes on the notifications that wait. The wire bounds how long that takes.
func (w *waiter) pass(ctx context.Context, log *slog.Logger) {
	w.passing.Lock()
	defer w.passing.Unlock()
	for {
		w.mu.Lock()
		notes, dropped := w.notes.Take()
		w.mu.Unlock()
		if dropped > 0 && log != nil {
			log.WarnContext(ctx, "notifications dropped", "method", revision.MethodCall, "count", dropped)
		}
		if len(notes) == 0 {
			return
		}
		for _, n := range notes {
			w.mu.Lock()
			left := w.left
			w.mu.Unlock()
			if left {
				return
			}
			_ = w.call.Pass(n.Method, n.Params) // the transport notices that the caller is away
		}
	}
}

// leave lets nothing reach the caller any more.
func (w *waiter) leave() {
	w.mu.Lock()
	w.left = true
	w.mu.Unlock()
	w.passing.Lock() // after the one that is on its way
	defer w.passing.Unlock()
}
