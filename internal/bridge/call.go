package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// Call is one request to a server, over all its rounds: a request from the client itself, which
// Begin begins, or a forwarded one. The zero value is ready for Begin.
type Call struct {
	r        *Remote
	method   string
	params   json.RawMessage
	caps     json.RawMessage // capabilities to declare
	self     json.RawMessage // Implementation to name, nil for the client's own
	hops     json.RawMessage // the forwarders of the request, this process last; nil for a request from the client itself
	logLevel string
	memo     *engine.Call // keeps data between the runs of a forwarded call; nil for others
	header   http.Header  // of Options

	ours  bool        // a request from the client itself; its timer begins before run
	waits bool        // wait for a task
	hit   bool        // the result came from the cache
	told  bool        // no more notifications; guarded by noteMu
	begun atomic.Bool // the server has asked a question in it, maybe in an earlier run, or made a task of it

	tokenID  int64 // of progress; 0: none
	tokenRaw [20]byte
	tokenLen uint8
	cache    cacheUse

	out engine.Outgoing // the current round

	timer    idleTimer
	listener Listener
	asked    int64 // Remote.asked when the request began

	front  *engine.Call    // the call that is forwarded; nil for one of the client itself
	turn   *turn           // of a call forwarded to a legacy server, nil for others
	handle json.RawMessage // of the task that a forwarded call became

	// ask answers questions. If nil, the call in front does, or else the functions of the client.
	ask func(context.Context, []engine.Question) ([]json.RawMessage, error)

	// note receives the notifications of the call. If nil, the call in front does, or else the
	// listener.
	note func(method string, params json.RawMessage)

	// onTask turns the handle of a task into the result. If nil, the handle of a forwarded call is
	// kept, a task is waited for if waits is set, and otherwise a task is an error.
	onTask func(ctx context.Context, handle json.RawMessage) (json.RawMessage, error)

	noteMu sync.Mutex // orders notifications from several streams

	late late // notifications from outside of the request's own stream
}

// Listener receives the notifications of a call, one at a time and before the call returns.
type Listener interface {
	Note(method string, params json.RawMessage)
}

// Options are the options of a call of the client itself.
type Options struct {
	Idle     time.Duration // without a message from the server; zero or less: no bound
	Listener Listener      // nil: notifications of the call go to the Remote
	Progress bool          // ask for progress in any case
	Fresh    bool          // do not read from the cache
	Header   http.Header   // sent with the request over HTTP, with names in canonical form
}

// Request sends a request from the client itself and returns its result, in the inner form. The
// functions of the client answer questions. If the server makes a task of the request, Request
// waits for it.
func (r *Remote) Request(ctx context.Context, method string, params json.RawMessage) (raw json.RawMessage, err error) {
	x := new(Call)
	x.Begin(ctx, r, method, params, Options{Idle: r.Limits.Idle})
	defer func() { err = x.End(err) }() // a notification's function may end the goroutine
	return x.Wait()
}

// Begin prepares a request from the client itself, and starts its timer. The params are an object
// in the inner form. End must follow.
func (x *Call) Begin(ctx context.Context, r *Remote, method string, params json.RawMessage, o Options) {
	x.r, x.method, x.params, x.caps, x.cache, x.asked = r, method, params, r.Caps, cacheOwn, r.asked.Load()
	x.listener, x.header, x.ours = o.Listener, o.Header, true
	switch {
	case o.Header != nil: // the result may depend on it
		x.cache = cacheNone
	case o.Fresh:
		x.cache = cacheFill
	}
	x.timer.idle, x.timer.total = o.Idle, r.Limits.CallLimit
	x.begin(ctx)
	x.logLevel = r.Owner.LogLevel()
	// Without a progress token, a server that works for long and reports progress could not be
	// distinguished from one that is stuck.
	if revision.Asks(method) && (o.Progress || o.Idle > 0) {
		x.setToken()
	}
}

// Wait sends the request and waits for its result, in the inner form. If the server makes a task of
// it, Wait waits for the task.
func (x *Call) Wait() (json.RawMessage, error) {
	x.waits = true
	return x.run(x.ctx())
}

// Once is Wait for a request that cannot become a task.
func (x *Call) Once() (json.RawMessage, error) { return x.run(x.ctx()) }

// Remote returns the Remote that the call was begun with.
func (x *Call) Remote() *Remote { return x.r }

// Cached reports whether the result came from the cache.
func (x *Call) Cached() bool { return x.hit }

// End finishes a request from the client itself and turns its error into one for the user. It may
// be called more than once.
func (x *Call) End(err error) error {
	if err != nil && x.timer.Err() != nil && errors.Is(err, x.timer.Err()) {
		err = context.Cause(x.ctx())
	}
	x.over()
	return x.fail(err)
}

// fail turns an error of the call into one for the user, nil into nil.
func (x *Call) fail(err error) error { return x.markBegun(x.r.Owner.Public(err)) }

// markBegun makes the error of a call that the server had begun a begunError. It returns other
// errors, nil, and engine.ErrSuspended unchanged.
func (x *Call) markBegun(err error) error {
	if err == nil || errors.Is(err, engine.ErrSuspended) || !x.begun.Load() && (!revision.Asks(x.method) || x.asked == x.r.asked.Load()) {
		return err
	}
	return &begunError{err}
}

// begunError is the error of a call that the server had begun: the server had asked a question in
// it or made a task of it. The call may therefore have had an effect. Callers detect the error by
// its method Begun.
type begunError struct{ error }

func (e *begunError) Unwrap() error { return e.error }
func (e *begunError) Begun() bool   { return true }

// begin starts the timer of the call. Over must follow.
func (x *Call) begin(ctx context.Context) {
	x.timer.Init(ctx, nil)
	x.r.timers.begin(&x.timer)
}

// ctx returns the context of the call, after begin.
func (x *Call) ctx() context.Context { return &x.timer.Part }

// over stops the timer and releases the call's resources. It may be called more than once.
func (x *Call) over() {
	x.timer.end()
	x.timer.Cancel(nil)
}

func (x *Call) setToken() {
	x.tokenID = x.r.nextToken.Add(1)
	x.tokenLen = uint8(len(strconv.AppendInt(x.tokenRaw[:0], x.tokenID, 10)))
}

// token returns tokenID in its wire form, nil for none.
func (x *Call) token() json.RawMessage {
	if x.tokenID == 0 {
		return nil
	}
	return x.tokenRaw[:x.tokenLen]
}

// listen routes notifications with the token of the call to it, until Forget.
func (x *Call) listen() {
	x.r.mu.Lock()
	defer x.r.mu.Unlock()
	x.r.tokens[x.tokenID] = x
}

// Forget stops routing notifications with the token of the call, which arrive on another stream.
func (x *Call) Forget() {
	x.r.mu.Lock()
	defer x.r.mu.Unlock()
	delete(x.r.tokens, x.tokenID)
}

// answer answers questions from the server.
func (x *Call) answer(ctx context.Context, qs ...engine.Question) ([]json.RawMessage, error) {
	x.timer.pause()
	defer x.timer.resume()
	if x.ask != nil || x.front != nil {
		return x.askFront(ctx, qs)
	}
	if x.ours {
		ctx = withValues{ctx, x.ctx()}
	}
	answers := make([]json.RawMessage, len(qs))
	for i, q := range qs {
		var err error
		if answers[i], err = x.r.ownAnswer(ctx, q.Method, q.Params); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// askFront asks the caller in front.
func (x *Call) askFront(ctx context.Context, qs []engine.Question) (answers []json.RawMessage, err error) {
	if x.ask != nil {
		answers, err = x.ask(ctx, qs)
	} else {
		answers, err = x.front.Ask(ctx, qs...)
	}
	if lacks := (*engine.LacksError)(nil); x.turn != nil && errors.As(err, &lacks) {
		x.turn.lacks.Store(lacks)
	}
	return answers, err
}

// withValues is a context with the values of a second context too.
type withValues struct {
	context.Context
	values context.Context
}

func (c withValues) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

// notify passes on a notification of the call.
func (x *Call) notify(method string, params json.RawMessage) {
	x.noteMu.Lock()
	defer x.noteMu.Unlock()
	x.timer.touch()
	switch {
	case x.told:
	case x.note != nil:
		x.note(method, params)
	case x.front != nil:
		x.r.forwardNote(x.front, method, params)
	case x.listener != nil:
		x.listener.Note(method, params)
	case method != revision.NoteProgress: // nobody has asked for it
		x.r.Note(method, params)
	}
}

// callInbox is a call as its wire's inbox.
type callInbox Call

// LogLevel returns the minimum level of log messages for the call, for a server in this process.
func (i *callInbox) LogLevel() string { return i.logLevel }

// Note implements engine.Inbox.
func (i *callInbox) Note(method string, params json.RawMessage) {
	(*Call)(i).notify(method, params)
}

// Question implements engine.Inbox.
func (i *callInbox) Question(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	x := (*Call)(i)
	x.begun.Store(true)
	if err := x.r.mayAsk(method, params); err != nil {
		return nil, err
	}
	x.r.expectURL(params)
	x.r.calls.opened(x.turn, 1)
	defer x.r.calls.opened(x.turn, -1)
	answers, err := settled(x.answer(ctx, engine.Question{Method: method, Params: x.r.Rev.InnerQuestion(method, params)}))
	if err != nil {
		return nil, err
	}
	return tied(x.r.Rev.Answer(method, answers[0]), params), nil
}

func (x *Call) run(ctx context.Context) (json.RawMessage, error) {
	if x.r.SendsHeaders() {
		if err := x.r.mustNotCall(x.method, x.params); err != nil {
			return nil, err
		}
	}
	if !x.ours {
		x.begin(ctx)
		defer x.over()
		ctx = x.ctx()
	}
	if x.tokenID != 0 {
		x.listen()
		defer func() {
			x.Forget()
			x.late.close()
			x.noteMu.Lock()
			x.told = true
			x.noteMu.Unlock()
		}()
	}
	if x.r.Local { // a middleware may pass on questions that name no call
		x.r.calls.sent(x)
		defer x.r.calls.over(x)
	}
	if !x.r.Rev.Sessions {
		return x.rounds(ctx)
	}
	if x.requiresTask(ctx, nil) {
		return x.asTask(ctx)
	}
	raw, err := x.withRequiredURLs(ctx)
	if err != nil && !x.begun.Load() && x.requiresTask(ctx, err) {
		return x.asTask(ctx)
	}
	return raw, err
}

// asTask makes a call that must be a task at a server that speaks 2025-11-25, and waits for the
// task (T-104).
func (x *Call) asTask(ctx context.Context) (json.RawMessage, error) {
	d, ok := x.r.cancels.add(ctx)
	if !ok {
		return nil, ErrClosed
	}
	raw, err := x.create(d)
	if err != nil {
		return nil, err
	}
	handle := coreHandle(raw)
	if handle == nil {
		d.done()
		return raw, nil
	}
	x.begun.Store(true)
	return x.finishPending(d, handle)
}

// bare returns a further request on behalf of the call: its questions and notifications belong to
// the call.
func (x *Call) bare() *Call {
	return &Call{r: x.r, turn: x.turn, caps: x.caps, self: x.self, hops: x.hops, logLevel: x.logLevel, note: x.notify,
		ask: func(ctx context.Context, qs []engine.Question) ([]json.RawMessage, error) {
			return x.answer(ctx, qs...)
		}}
}

// plain makes one request to a legacy server.
func (x *Call) plain(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	if x.tokenID != 0 || x.hops != nil {
		buf := buffer.Get()
		defer buffer.Put(buf)
		*buf = appendLegacy(*buf, params, x.token(), x.hops)
		params = *buf
	}
	x.r.calls.sent(x)
	defer x.r.calls.over(x)
	x.out = engine.Outgoing{
		Method: x.method, Params: x.r.Rev.Params(x.method, params),
		Token: x.token(), Inbox: (*callInbox)(x),
		Logs:   revision.Asks(x.method), // if anything does: the level is that of the session
		Header: x.requestHeader(nil),
	}
	return object(x.r.Send(ctx, &x.out))
}

// tied ties the answer to a question of a task to the task, as the question is (TASK-25-034).
func tied(answer, params json.RawMessage) json.RawMessage {
	raw, ok := jsonx.LookupPath(params, "_meta", revision.RelatedTask, "taskId")
	id, err := jsonx.Unquote(raw)
	if !ok || err != nil {
		return answer
	}
	return revision.WithRelatedTask(answer, id)
}
