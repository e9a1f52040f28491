package bridge

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// holdTime bounds how long a legacy server's call is kept open for a caller that
// has to come back with an answer.
const holdTime = 15 * time.Minute

const memoHeld = "forward:held:" // and a scope

// parkedCall is a call to a legacy server that may have to wait for a caller to come back. It owns
// the goroutine that waits for the server; cancel ends it.
type parkedCall struct {
	front     atomic.Pointer[engine.Call] // gets notifications; nil between two runs
	questions chan heldQuestion
	done      chan heldAnswer // capacity 1
	cancel    context.CancelCauseFunc

	asked []heldQuestion                  // being asked; owned by the goroutine that runs the call
	n     int                             // questions so far; owned by the goroutine that runs the call
	late  atomic.Pointer[json.RawMessage] // the last progress between two runs
	timer *time.Timer
}

type heldQuestion struct {
	method string
	params json.RawMessage
	reply  chan heldAnswer // capacity 1

	unclear bool // it may belong to another call
}

type heldAnswer struct {
	raw json.RawMessage
	err error
}

// hold makes a call to a legacy server. A question that the caller cannot answer within this run
// suspends the call: the server's call stays open, and the run that brings the answer continues it.
func (r *Remote) hold(ctx context.Context, call *engine.Call, x *Call) (json.RawMessage, error) {
	var p *parkedCall
	var ref json.RawMessage
	if call.Round() > 0 {
		ref, _ = call.Recall(memoHeld + x.scope())
	}
	if ref != nil {
		x.begun.Store(true)
		if p = r.unpark(string(ref)); p == nil {
			// A call that may have had effects is never silently made a second time (T-37).
			return nil, errorf(jsonrpc.CodeInvalidParams, "the state of the call has expired; start the call again")
		}
		p.front.Store(call)
		if late := p.late.Swap(nil); late != nil { // T-45
			r.forwardNote(call, revision.NoteProgress, *late)
		}
	} else {
		if err := r.enter(ctx, x.turn); err != nil {
			return nil, err
		}
		p = r.place(ctx, call, x)
	}
	for {
		if len(p.asked) > 0 {
			qs := make([]engine.Question, len(p.asked))
			for i, q := range p.asked {
				qs[i] = engine.Question{Method: q.method, Params: q.params, Key: x.scope() + "/" + strconv.Itoa(p.n-len(qs)+i+1)}
			}
			answers, err := call.Ask(ctx, qs...)
			if errors.Is(err, engine.ErrSuspended) {
				p.front.Store(nil)
				call.RememberHere(ctx, memoHeld+x.scope(), r.park(p))
				return nil, err
			}
			for i, q := range p.asked {
				if end := endsWith(call, qs[i], err); end != nil && !q.unclear {
					p.cancel(end)
					return nil, end
				}
				a := heldAnswer{err: err}
				if err == nil {
					a.raw = answers[i]
				}
				q.reply <- a
			}
			p.asked = nil
		}
		select {
		case a := <-p.done:
			p.cancel(nil)
			return a.raw, a.err
		case q := <-p.questions:
			if len(p.done) > 0 {
				continue // it belongs to another call, and goes to that when p is cancelled
			}
			p.gather(q)
		case <-ctx.Done():
			p.cancel(context.Cause(ctx))
			return nil, context.Cause(ctx)
		}
	}
}

// gatherTime is the wait for further questions from a server that asks several at once, so that
// they are asked together (T-36).
const gatherTime = 10 * time.Millisecond

// gather takes a question, and those that arrive at the same time.
func (p *parkedCall) gather(q heldQuestion) {
	t := time.NewTimer(gatherTime)
	defer t.Stop()
	p.asked = append(p.asked, q)
	for p.n++; len(p.asked) < maxGathered; p.n++ {
		select {
		case q := <-p.questions:
			p.asked = append(p.asked, q)
		case <-t.C:
			return
		}
	}
}

// maxGathered bounds the questions of one round.
const maxGathered = 16

// place starts a call to a legacy server that can outlive the caller's request.
func (r *Remote) place(ctx context.Context, call *engine.Call, x *Call) *parkedCall {
	p := &parkedCall{questions: make(chan heldQuestion), done: make(chan heldAnswer, 1)}
	var own context.Context
	own, p.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	p.front.Store(call)
	x.note = func(method string, params json.RawMessage) {
		switch front := p.front.Load(); {
		case front != nil:
			r.forwardNote(front, method, params)
		case method == revision.NoteProgress:
			p.late.Store(&params)
		}
	}
	x.ask = func(ctx context.Context, qs []engine.Question) ([]json.RawMessage, error) {
		q := heldQuestion{qs[0].Method, qs[0].Params, make(chan heldAnswer, 1), ctx.Value(unclear{}) != nil}
		select {
		case p.questions <- q:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-own.Done():
			return nil, &gone{err: context.Cause(own)}
		}
		select {
		case a := <-q.reply:
			return []json.RawMessage{a.raw}, a.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-own.Done():
			answers, err := goneAnswer(q.method, context.Cause(own))
			return nil, &gone{answers, err}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.calls.leave(x.turn, true)
		p.done <- heldAnswer{err: ErrClosed}
		return p
	}
	r.wg.Go(func() { // with mu held, so that Close waits for it
		raw, err := x.run(own)
		r.calls.leave(x.turn, answered(err))
		p.done <- heldAnswer{raw, err}
	})
	return p
}

// goneAnswer returns the answer to a question when the caller is gone (T-38).
func goneAnswer(method string, cause error) ([]json.RawMessage, error) {
	switch method {
	case revision.MethodElicit:
		return []json.RawMessage{json.RawMessage(`{"action":"cancel"}`)}, nil
	case revision.MethodSample:
		return nil, errorf(CodeDeclined, "%v", cause)
	}
	return nil, cause
}

var errNeverAnswered = errors.New("the caller did not come back with an answer")

// park keeps a call until unpark, for at most holdTime, and returns its name. The name is sealed
// into the caller's requestState, so only that caller can use it.
func (r *Remote) park(p *parkedCall) json.RawMessage {
	name := rand.Text()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		p.cancel(ErrClosed)
	}
	r.parked[name] = p
	p.timer = time.AfterFunc(holdTime, func() {
		if p := r.unpark(name); p != nil {
			p.cancel(errNeverAnswered)
		}
	})
	return jsonx.AppendString(nil, name)
}

func (r *Remote) unpark(ref string) *parkedCall {
	name, err := jsonx.Unquote([]byte(ref))
	if err != nil {
		name = ref
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.parked[name]
	delete(r.parked, name)
	if p != nil {
		p.timer.Stop()
	}
	return p
}

// dropParked ends the parked calls when the session closes.
func (r *Remote) dropParked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, p := range r.parked {
		p.timer.Stop()
		p.cancel(ErrClosed)
		delete(r.parked, name)
	}
}
