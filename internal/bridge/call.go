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

// Call is one request on its way to a server, over all its rounds: one of the client itself, which
// Begin begins, or one that is forwarded. The zero value is ready for Begin.
type Call struct {
	r        *Remote
	method   string
	params   json.RawMessage
	caps     json.RawMessage // capabilities to declare
	self     json.RawMessage // Implementation to name, nil for the client's own
	hops     json.RawMessage // who has forwarded it, this process last; nil for a request of the client itself
	logLevel string
	memo     *engine.Call // keeps what outlives a run of a forwarded call; nil for others
	header   http.Header  // of Options

	ours  bool        // it is a request of the client itself, whose timer begins before run
	waits bool        // a task is waited for
	hit   bool        // the result came from the cache
	told  bool        // nothing more is; guarded by noteMu
	begun atomic.Bool // the server has asked something in it, or made a task of it

	tokenID  int64 // of progress; 0: none
	tokenRaw [20]byte
	tokenLen uint8
	cache    cacheUse

	out engine.Outgoing // the round under way

	timer    idleTimer
	listener Listener
	asked    int64 // Remote.asked as the request began

	front  *engine.Call    // the call that is forwarded, nil for one of the client itself
	turn   *turn           // of a call that is forwarded to a legacy server, else nil
	handle json.RawMessage // of the task that a forwarded call became

	// ask has questions answered. Nil: by the call in front, or else by the functions of
	// the client.
	ask func(context.Context, []engine.Question) ([]json.RawMessage, error)

	// note gets what belongs to the call. Nil: the call in front does, or else the listener.
	note func(method string, params json.RawMessage)

	// onTask turns the handle of a task into the result. Nil: the handle of a forwarded
	// call is kept, a task is waited for if waits is set, or else is an error.
	onTask func(ctx context.Context, handle json.RawMessage) (json.RawMessage, error)

	noteMu sync.Mutex // orders what arrives on several streams

	late late // what came outside of the request's own stream
}

// Listener gets the notifications that belong to a call, one after the other and before the call
// returns.
type Listener interface {
	Note(method string, params json.RawMessage)
}

// Options are those of a call of the client itself.
type Options struct {
	Idle     time.Duration // without a word of the server; zero or less: no bound
	Listener Listener      // nil: the Remote has what belongs to the call
	Progress bool          // progress is asked for in any case
	Fresh    bool          // nothing is taken from the cache
	Header   http.Header   // sent with the request over HTTP, with names in canonical form
}

// Request sends a request of the client itself and returns its result, in the inner form. Questions
// are answered by the functions of the client. A task that the server makes of it is waited for.
func (r *Remote) Request(ctx context.Context, method string, params json.RawMessage) (raw json.RawMessage, err error) {
	x := new(Call)
	x.Begin(ctx, r, method, params, Options{Idle: r.Limits.Idle})
	defer func() { err = x.End(err) }() // what the call tells may end the goroutine
	return x.Wait()
}

// Begin prepares a request of the client itself, and starts its timer. Params are an object in the
// inner form. End must follow.
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
	// Without a token a server that works hard and says so could not be told
	// from one that is stuck.
	if revision.Asks(method) && (o.Progress || o.Idle > 0) {
		x.setToken()
	}
}

// Wait sends the request and waits for its result, in the inner form. A task that the server makes
// of it is waited for.
func (x *Call) Wait() (json.RawMessage, error) {
	x.waits = true
	return x.run(x.ctx())
}

// Once is Wait for a request that becomes no task.
func (x *Call) Once() (json.RawMessage, error) { return x.run(x.ctx()) }

// Remote is the Remote that the call was begun with.
func (x *Call) Remote() *Remote { return x.r }

// Cached tells whether the result came from the cache.
func (x *Call) Cached() bool { return x.hit }

// End finishes a request of the client itself and turns its error into one for the user. It may be
// called more than once.
func (x *Call) End(err error) error {
	if err != nil && x.timer.Err() != nil && errors.Is(err, x.timer.Err()) {
		err = context.Cause(x.ctx())
	}
	x.over()
	return x.fail(err)
}

// fail turns an error of the call into one for the user, nil into nil.
func (x *Call) fail(err error) error {
	if err = x.r.Owner.Public(err); err != nil && (x.begun.Load() || revision.Asks(x.method) && x.asked != x.r.asked.Load()) {
		return &begunError{err}
	}
	return err
}

// begunError is the error of a call that its server had begun with: it has asked something or
// made a task of it before. Whatever the error is, the call may have had an effect. Callers tell by
// the method.
type begunError struct{ error }

func (e *begunError) Unwrap() error { return e.error }
func (e *begunError) Begun() bool   { return true }

// begin starts the timer of the call. Over must follow.
func (x *Call) begin(ctx context.Context) {
	x.timer.Init(ctx, nil)
	x.r.timers.begin(&x.timer)
}

// ctx is the context of the call, after begin.
func (x *Call) ctx() context.Context { return &x.timer.Part }

// over stops the timer, and ends what is left of the call. It may be called more than once.
func (x *Call) over() {
	x.timer.end()
	x.timer.Cancel(nil)
}

func (x *Call) setToken() {
	x.tokenID = x.r.nextToken.Add(1)
	x.tokenLen = uint8(len(strconv.AppendInt(x.tokenRaw[:0], x.tokenID, 10)))
}

// token is tokenID as it is sent, nil for none.
func (x *Call) token() json.RawMessage {
	if x.tokenID == 0 {
		return nil
	}
	return x.tokenRaw[:x.tokenLen]
}

// listen has notifications with the token of the call reach it, until Forget.
func (x *Call) listen() {
	x.r.mu.Lock()
	defer x.r.mu.Unlock()
	x.r.tokens[x.tokenID] = x
}

// Forget stops notifications with the token of the call, which come on another stream, from reaching it.
func (x *Call) Forget() {
	x.r.mu.Lock()
	defer x.r.mu.Unlock()
	delete(x.r.tokens, x.tokenID)
}

// answer has questions answered.
func (x *Call) answer(ctx context.Context, qs ...engine.Question) ([]json.RawMessage, error) {
	x.timer.pause()
	defer x.timer.resume()
	if x.ask != nil {
		return x.ask(ctx, qs)
	}
	if x.front != nil {
		return x.front.Ask(ctx, qs...)
	}
	if x.ours {
		ctx = withValues{ctx, x.ctx()}
	}
	answers := make([]json.RawMessage, len(qs))
	for i, q := range qs {
		var err error
		if answers[i], err = x.r.Owner.Answer(ctx, q.Method, q.Params); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// withValues is a context that has the values of another one too.
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

// callInbox is a call as the wire sees it.
type callInbox Call

// LogLevel is the least level of log messages that the call wants, for a server in this process.
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

// asTask makes a call to a server of 2025-11-25 that has to be a task, and waits for it
// (T-104).
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

// bare is a further request on behalf of the call: what is asked and told meanwhile
// belongs to the call.
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

// tied ties the answer to a question of a task to it, as the question is (TASK-25-034).
func tied(answer, params json.RawMessage) json.RawMessage {
	raw, ok := jsonx.LookupPath(params, "_meta", revision.RelatedTask, "taskId")
	id, err := jsonx.Unquote(raw)
	if !ok || err != nil {
		return answer
	}
	return revision.WithRelatedTask(answer, id)
}
