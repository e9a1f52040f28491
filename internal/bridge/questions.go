package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// A question from a legacy server names its call only if it comes on the stream of that call. On
// pipes it never does, and some HTTP servers send questions on the GET stream. The rules for such a
// question:
//
//   - A question of a task goes to the caller of that task.
//   - If only one request can have caused it, it goes to the caller of that request.
//   - If several calls of one session can have caused it, it goes to the session, and lasts as
//     long as one of the calls.
//   - If several calls of one principal can have caused it, it goes to the oldest that has no
//     open question. If that call ends first, the question goes to the next.
//   - If calls of different callers can have caused it, it is refused (errWhose). From then on
//     the calls take turns (turns.go), so that this does not happen again.
//   - If no call can have caused it, it goes to the session that the connection is for
//     (Client.Front), or else to the functions of the client.
//
// A question is never declined on behalf of a person who was not asked.

// caller identifies the person who may be asked: by principal, or without authentication by
// session. All 2026-07-28 callers without a principal count as one.
type caller struct {
	principal string
	session   *engine.Session
}

func askedOf(front *engine.Call) caller {
	if front.Peer.Principal != "" {
		return caller{principal: front.Peer.Principal}
	}
	return caller{session: front.Session()}
}

// openCalls are the calls of a session with a legacy server. The zero value is ready for use.
type openCalls struct {
	asks atomic.Bool // the server asks questions that name no call, so callers take turns

	mu     sync.Mutex
	open   []*Call            // requests without an answer, oldest first; guarded by mu
	onOver map[*Call][]func() // called with mu held when a call is over; guarded by mu
	inside []*turn            // forwarded calls at work, oldest first; guarded by mu
	queue  []*turn            // forwarded calls that wait for their turn; guarded by mu
}

// by returns the caller of a forwarded call, the zero value for a call that the program itself
// makes.
func (x *Call) by() caller {
	if x.turn == nil {
		return caller{}
	}
	return x.turn.by
}

// sent adds a request that is about to be sent.
func (o *openCalls) sent(x *Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = append(o.open, x)
}

// over removes a request that was answered or given up.
func (o *openCalls) over(x *Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.open, x); i >= 0 {
		o.open = slices.Delete(o.open, i, i+1)
	}
	if o.onOver == nil {
		return
	}
	for _, f := range o.onOver[x] {
		f()
	}
	delete(o.onOver, x)
}

// causes returns the open requests that can have caused a question that names no call, oldest
// first. These are the requests of methods that may ask (revision.Asks). If there are none and
// exactly one request of another method is open, causes returns that one, unless its caller speaks
// 2026-07-28, in which a request of such a method cannot ask.
func (o *openCalls) causes() []*Call {
	o.mu.Lock()
	defer o.mu.Unlock()
	var likely, others []*Call
	for _, x := range o.open {
		if revision.Asks(x.method) {
			likely = append(likely, x)
		} else {
			others = append(others, x)
		}
	}
	switch {
	case len(likely) > 0:
		return likely
	case len(others) == 1 && (others[0].front == nil || others[0].front.Peer.Revision.Sessions):
		return others
	}
	return nil
}

// ofTask returns the request that waits for the result of a task, or nil if there is none.
func (o *openCalls) ofTask(id string) *Call {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, x := range o.open {
		if x.method != revision.MethodTaskResult {
			continue
		}
		raw, _ := jsonx.Lookup(x.params, "taskId")
		if own, err := jsonx.Unquote(raw); err == nil && own == id {
			return x
		}
	}
	return nil
}

// ofOne reports whether all of xs, and every forwarded call that the server may still work on,
// are of one caller.
func (o *openCalls) ofOne(xs []*Call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	by := xs[0].by()
	return !slices.ContainsFunc(xs, func(x *Call) bool { return x.by() != by }) &&
		!slices.ContainsFunc(o.inside, func(t *turn) bool { return t.by != by })
}

// unasked returns those of xs whose calls have no open question.
func (o *openCalls) unasked(xs []*Call) []*Call {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(xs), func(x *Call) bool { return x.turn != nil && x.turn.open > 0 })
}

// whileMore returns a context that ends with ctx, and when at most few of xs are open.
func (o *openCalls) whileMore(ctx context.Context, few int, xs []*Call) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	left := 0
	for _, x := range o.open {
		if slices.Contains(xs, x) {
			left++
			if o.onOver == nil {
				o.onOver = map[*Call][]func(){}
			}
			o.onOver[x] = append(o.onOver[x], func() {
				if left--; left == few {
					cancel(errAnsweredUnasked)
				}
			})
		}
	}
	if left <= few {
		cancel(errAnsweredUnasked)
	}
	return ctx, cancel
}

// still returns the members of xs that are open.
func (o *openCalls) still(xs []*Call) (open []*Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, x := range o.open {
		if slices.Contains(xs, x) {
			open = append(open, x)
		}
	}
	return open
}

// gone is the error of asking the caller of a call that has ended. The question may be put to the
// caller of another call; if there is none, the fields of gone are the answer to the server.
type gone struct {
	answers []json.RawMessage
	err     error
}

func (e *gone) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return "the call has ended"
}

func (e *gone) Unwrap() error { return e.err }

// settled returns the answer for the server to a question that no other call can take.
func settled(answers []json.RawMessage, err error) ([]json.RawMessage, error) {
	var g *gone
	if errors.As(err, &g) {
		return g.answers, g.err
	}
	return answers, err
}

var errWhose = &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "cannot tell whose question this is: calls of several callers are in progress, and it names none of them; ask on the stream of the call, or one call after the other"}

// unclear marks the context of a question that may belong to several calls; the question ends none
// of them.
type unclear struct{}

// Question implements engine.Inbox, for questions that name no call.
func (r *Remote) Question(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if raw, ok := jsonx.LookupPath(params, "_meta", revision.RelatedTask, "taskId"); ok {
		id, _ := jsonx.Unquote(raw)
		if answer, ok, err := r.proxyAsk(ctx, id, method, params); ok {
			return answer, err
		}
		if x := r.calls.ofTask(id); x != nil {
			return (*callInbox)(x).Question(ctx, method, params)
		}
	}
	if method != revision.MethodRoots {
		r.TakeTurns()
	}
	causes := r.calls.causes()
	if len(causes) > 0 && !r.calls.ofOne(causes) {
		r.sawQuestion()
		if method == revision.MethodRoots { // the roots that all have in common, if any
			return r.askClient(ctx, method, params)
		}
		return nil, errWhose
	}
	if len(causes) == 1 {
		return (*callInbox)(causes[0]).Question(ctx, method, params)
	}
	r.sawQuestion()
	r.timers.pause() // it is not known which call waits for the answer
	defer r.timers.resume()
	if len(causes) == 0 || causes[0].turn == nil {
		return r.askClient(ctx, method, params)
	}
	return r.askSeveral(ctx, causes, method, params)
}

// CauseOf returns the recorded request in front that has caused a question that names no call, if
// all requests that can have caused it are for the same one.
func (r *Remote) CauseOf(params json.RawMessage) trace.Cause {
	if raw, ok := jsonx.LookupPath(params, "_meta", revision.RelatedTask, "taskId"); ok {
		if id, err := jsonx.Unquote(raw); err == nil {
			if x := r.calls.ofTask(id); x != nil {
				return engine.CauseOf(x.ctx())
			}
		}
	}
	var cause trace.Cause
	for i, x := range r.calls.causes() {
		switch c := engine.CauseOf(x.ctx()); {
		case i == 0:
			cause = c
		case c != cause:
			return trace.Cause{}
		}
	}
	return cause
}

// sawQuestion counts a question that names no call.
func (r *Remote) sawQuestion() {
	r.asked.Add(1)
	if front := r.inFront.Load(); front != nil {
		front.asked.Add(1)
	}
}

// askSeveral answers a question that belongs to one of several calls of one caller.
func (r *Remote) askSeveral(ctx context.Context, causes []*Call, method string, params json.RawMessage) (json.RawMessage, error) {
	if err := r.mayAsk(method, params); err != nil {
		return nil, err
	}
	r.expectURL(params)
	q := engine.Question{Method: method, Params: r.Rev.InnerQuestion(method, params)}
	asking, stop := r.calls.whileMore(ctx, 0, causes)
	defer stop(nil)
	for _, x := range causes {
		x.begun.Store(true)
	}
	if session := causes[0].turn.session; session == nil || !session.Reachable() {
		// One of the calls will carry the question. The call that caused it does not end before the
		// answer, but the others may.
		r.awaitFewer(ctx, r.calls.unasked(causes))
	}
	for {
		if open := r.calls.still(causes); len(open) > 0 {
			causes = open
		}
		x := append(r.calls.unasked(causes), causes...)[0]
		answers, err := x.inSession(asking, ctx, q)
		var g *gone
		if errors.As(err, &g) && ctx.Err() == nil {
			if causes = slices.DeleteFunc(causes, func(o *Call) bool { return o == x }); len(causes) > 0 {
				continue
			}
		}
		answers, err = settled(answers, err)
		if err != nil {
			return nil, err
		}
		return tied(r.Rev.Answer(method, answers[0]), params), nil
	}
}

// clearTime bounds a question's wait for the end of calls that may not have caused it.
const clearTime = 250 * time.Millisecond

// awaitFewer waits until only one of xs is open, or for clearTime.
func (r *Remote) awaitFewer(ctx context.Context, xs []*Call) {
	ctx, stop := r.calls.whileMore(ctx, 1, xs)
	defer stop(nil)
	t := time.NewTimer(clearTime)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// inSession puts a question to the session of the caller, until asking ends, or else to the call,
// until ctx or the call ends.
func (x *Call) inSession(asking, ctx context.Context, q engine.Question) ([]json.RawMessage, error) {
	t := x.turn
	x.r.calls.opened(t, 1)
	defer x.r.calls.opened(t, -1)
	if t != nil && t.session != nil {
		if session := t.front.InSession(); session != nil {
			answers, err := session.Ask(asking, q)
			var rpc *jsonrpc.Error
			if err == nil || errors.As(err, &rpc) || asking.Err() != nil {
				return answers, err
			}
			// It did not get there or cannot be asked: the call decides.
		}
	}
	return x.answer(context.WithValue(ctx, unclear{}, true), q)
}

// ownAnswer answers a question with the functions of the client. They run on a goroutine of its own,
// because they may ignore ctx: ownAnswer returns when ctx or the session ends, and the goroutine
// when the function does.
func (r *Remote) ownAnswer(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	type outcome struct {
		answer json.RawMessage
		err    error
	}
	answered := make(chan outcome, 1)
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := r.Spawn(func() {
		out := outcome{err: usercode.Failed()}
		defer func() { answered <- out }() // the function may end the goroutine
		out.answer, out.err = r.Owner.Answer(asking, method, params)
	})
	if !begun {
		return nil, ErrClosed
	}
	select {
	case out := <-answered:
		return out.answer, out.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-r.Wire.Done():
		err := r.Owner.Public(r.Wire.Err())
		cancel(err)
		return nil, err
	}
}

// askClient answers a question that belongs to no call.
func (r *Remote) askClient(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if err := r.mayAsk(method, params); err != nil {
		return nil, err
	}
	r.expectURL(params)
	rev := r.asker.Load()
	var answer json.RawMessage
	var err error
	if r.Front == nil {
		answer, err = r.ownAnswer(ctx, method, params)
	} else {
		answer, err = r.askFront(ctx, engine.Question{Method: method, Params: rev.InnerQuestion(method, params)})
	}
	if err != nil {
		return nil, err
	}
	return tied(rev.Answer(method, answer), params), nil
}

// rootsTime bounds a server's wait for roots that it asks for outside of any call.
const rootsTime = 10 * time.Second

// askFront puts a question that belongs to no call to the session that the connection is for. If
// the session cannot be reached outside of calls, the question goes to the call that the connection
// was opened for, until that call ends.
func (r *Remote) askFront(ctx context.Context, q engine.Question) (json.RawMessage, error) {
	most := holdTime
	if q.Method == revision.MethodRoots {
		most = rootsTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("the caller has not answered within %v", most))
	defer cancel()
	session := r.Front.Session()
	at := session.OutsideCalls()
	if at == nil {
		return nil, errorf(jsonrpc.CodeInternal, "the caller cannot be asked outside of a call")
	}
	if !session.Reachable() && r.Opener.Err() == nil {
		call, leave := context.WithCancelCause(ctx)
		defer leave(nil)
		defer context.AfterFunc(r.Opener, func() { leave(context.Cause(r.Opener)) })()
		answers, err := r.Front.Ask(call, q)
		var rpc *jsonrpc.Error
		switch {
		case err == nil:
			return answers[0], nil
		case ctx.Err() != nil || errors.As(err, &rpc):
			return nil, err
		}
	}
	answers, err := at.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// mayAsk refuses questions that a legacy server must not ask: those that its revision does not
// have, or that were not declared to it.
func (r *Remote) mayAsk(method string, params json.RawMessage) error {
	rev := r.asker.Load()
	if rev == nil {
		return errorf(jsonrpc.CodeInvalidRequest, "%s before the answer to initialize", text.Short(method))
	}
	if err := revision.CheckParams(method, params); err != nil {
		return errorf(jsonrpc.CodeInvalidParams, "%s: %v", text.Short(method), err)
	}
	if method == revision.MethodRoots {
		r.rooted.Store(true)
	}
	p := engine.Peer{Revision: rev, Capabilities: rev.ClientCapabilities(r.Caps)}
	if err := p.CanAnswer(engine.Question{Method: method, Params: params}); err != nil {
		if _, ok := jsonx.Lookup(p.Capabilities, "elicitation"); ok && method == revision.MethodElicit {
			return errorf(jsonrpc.CodeInvalidParams, "%s: this client did not declare the mode", method) // ELIC-25-009
		}
		return errorf(jsonrpc.CodeMethodNotFound, "%s: this client did not declare it", text.Short(method))
	}
	return nil
}
