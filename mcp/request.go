package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// request sends a request of the API: questions are answered by the client's own
// functions. Params are an object in the inner form; so is the result. A server that
// makes a task of it is waited for.
func (s *Session) request(ctx context.Context, method string, params json.RawMessage, opts []CallOption) (raw json.RawMessage, err error) {
	x := s.outgoing(ctx, method, params, opts)
	x.waits = true
	defer func() { err = x.end(err) }() // what the call tells may end the goroutine
	return x.run(x.ctx())
}

// outgoing prepares a request of the API, whose context is ctx of what it returns. End
// must follow.
func (s *Session) outgoing(ctx context.Context, method string, params json.RawMessage, opts []CallOption) *outgoingCall {
	x := &outgoingCall{s: s, method: method, caps: s.caps, cache: cacheOwn, asked: s.asked.Load()}
	x.opts.idle = s.idle
	for _, f := range opts {
		f(&x.opts)
	}
	x.clock.silent, x.clock.total = x.opts.idle, s.limits.CallLimit
	x.ours = true
	x.begin(ctx)
	if x.opts.fresh {
		x.cache = cacheFill
	}
	x.params, x.fault = x.opts.meta.with(params)
	if s.client.LogLevel != nil {
		x.logLevel = logLevel(s.client.LogLevel.Level())
	}
	// Without a token a server that works hard and says so could not be told
	// from one that is stuck.
	if revision.Asks(method) && (x.opts.progress != nil || x.opts.idle > 0) {
		x.setToken()
	}
	return x
}

// end finishes a request of the API and turns its error into one for the caller. It may
// be called more than once.
func (x *outgoingCall) end(err error) error {
	if err != nil && x.clock.Err() != nil && errors.Is(err, x.clock.Err()) {
		err = context.Cause(x.ctx())
	}
	x.over()
	if err = publicError(err); err != nil && (x.begun.Load() || revision.Asks(x.method) && x.asked != x.s.asked.Load()) {
		return &begunError{err}
	}
	return err
}

// begin starts the clock of the call. Over must follow.
func (x *outgoingCall) begin(ctx context.Context) {
	x.clock.Init(ctx, nil)
	x.s.clocks.begin(&x.clock)
}

// ctx is the context of the call, after begin.
func (x *outgoingCall) ctx() context.Context { return &x.clock.Part }

// over stops the clock, and ends what is left of the call. It may be called more than once.
func (x *outgoingCall) over() {
	x.clock.end()
	x.clock.Cancel(nil)
}

func (o *callOptions) note(s *Session, method string, params json.RawMessage) {
	switch {
	case method == revision.NoteProgress:
		if o.progress == nil {
			return
		}
		var w struct {
			Done    float64 `json:"progress"`
			Total   float64 `json:"total"`
			Message string  `json:"message"`
		}
		if jsonx.Unmarshal(params, &w) != nil || o.told && w.Done <= o.done { // PROG-26-003
			s.log.Debug("progress that does not grow ignored", "params", clip(string(params)))
			return
		}
		o.told, o.done = true, w.Done
		_ = s.user.Run(context.Background(), "OnProgress", func() error { o.progress(ProgressEvent{w.Done, w.Total, w.Message}); return nil })
	case method == revision.NoteMessage && o.log != nil:
		if e := newEvent(method, params); e.Log != nil {
			_ = s.user.Run(context.Background(), "OnLog", func() error { o.log(*e.Log); return nil })
		}
	default:
		(*inbox)(s).Note(method, params)
	}
}

// outgoingCall is one request on its way to the server, over all its rounds. One of the
// API has options, and one that is forwarded a call in front.
type outgoingCall struct {
	s        *Session
	method   string
	params   json.RawMessage
	caps     json.RawMessage // capabilities to declare
	self     json.RawMessage // Implementation to name, nil for the client's own
	hops     json.RawMessage // who has forwarded it, this process last; nil for a request of the API
	logLevel string
	memo     memo  // of the call in front, nil if there is none
	fault    error // of the caller; nothing is sent
	cache    cacheUse

	ours  bool        // it is a request of the API, whose clock begins before run
	waits bool        // a task is waited for
	hit   bool        // the result came from the cache
	told  bool        // nothing more is; guarded by noteMu
	begun atomic.Bool // the server has asked something in it, or made a task of it

	tokenID  int64 // of progress; 0: none
	tokenRaw [20]byte
	tokenLen uint8

	out engine.Outgoing // the round under way

	clock clock
	opts  callOptions
	asked int64 // Session.asked as the request began

	front  *engine.Call    // the call that is forwarded, nil for one of the API
	turn   *turn           // of a call that is forwarded to a legacy server, else nil
	handle json.RawMessage // of the task that a forwarded call became

	// ask has questions answered. Nil: by the call in front, or else by the functions of
	// the client.
	ask func(context.Context, []engine.Question) ([]json.RawMessage, error)

	// note gets what belongs to the call. Nil: the call in front does, or else the options.
	note func(method string, params json.RawMessage)

	// onTask turns the handle of a task into the result. Nil: the handle of a forwarded
	// call is kept, a task is waited for if waits is set, or else is no answer.
	onTask func(ctx context.Context, handle json.RawMessage) (json.RawMessage, error)

	noteMu sync.Mutex // orders what arrives on several streams

	late late // what came outside of the request's own stream
}

func (x *outgoingCall) setToken() {
	x.tokenID = x.s.nextToken.Add(1)
	x.tokenLen = uint8(len(strconv.AppendInt(x.tokenRaw[:0], x.tokenID, 10)))
}

// token is tokenID as it is sent, nil for none.
func (x *outgoingCall) token() json.RawMessage {
	if x.tokenID == 0 {
		return nil
	}
	return x.tokenRaw[:x.tokenLen]
}

// listen has what is told of the call by its token reach it, until listenNoMore.
func (x *outgoingCall) listen() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.tokens[x.tokenID] = x
}

func (x *outgoingCall) listenNoMore() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	delete(x.s.tokens, x.tokenID)
}

// answer has questions answered.
func (x *outgoingCall) answer(ctx context.Context, qs ...engine.Question) ([]json.RawMessage, error) {
	x.clock.pause()
	defer x.clock.resume()
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
		if answers[i], err = x.s.client.answer(ctx, q.Method, q.Params); err != nil {
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

// late holds notifications that somebody else than the goroutine of the call has read,
// and who must go on reading. It owns a goroutine while there are some, which ends
// before the call does.
type late struct {
	mu      sync.Mutex
	notes   *engine.Notes // nil before the first; guarded by mu
	telling bool          // the goroutine runs; guarded by mu
	closed  bool          // guarded by mu
	wg      sync.WaitGroup
}

// notifyLate passes on a notification of the call without waiting for that.
func (x *outgoingCall) notifyLate(method string, params json.RawMessage) {
	l := &x.late
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.notes == nil {
		l.notes = new(engine.Notes)
	}
	l.notes.Put(engine.Note{Method: method, Params: params})
	if !l.telling {
		l.telling = true
		l.wg.Go(x.tellLate)
	}
}

// tellLate passes on what notifyLate holds.
func (x *outgoingCall) tellLate() {
	l := &x.late
	returned := false
	defer func() {
		if !returned { // a function of the user has ended the goroutine
			l.mu.Lock()
			defer l.mu.Unlock()
			l.telling = false
		}
	}()
	for {
		l.mu.Lock()
		notes, dropped := l.notes.Take()
		l.telling = len(notes) > 0
		l.mu.Unlock()
		if dropped > 0 {
			x.s.log.Warn("notifications dropped", "method", x.method, "count", dropped)
		}
		if len(notes) == 0 {
			returned = true
			return
		}
		for _, n := range notes {
			x.notify(n.Method, n.Params)
		}
	}
}

// close waits until everything is told, and takes no more.
func (l *late) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wg.Wait()
}

// notify passes on a notification of the call.
func (x *outgoingCall) notify(method string, params json.RawMessage) {
	x.noteMu.Lock()
	defer x.noteMu.Unlock()
	x.clock.touch()
	switch {
	case x.told:
	case x.note != nil:
		x.note(method, params)
	case x.front != nil:
		x.s.forwardNote(x.front, method, params)
	default:
		x.opts.note(x.s, method, params)
	}
}

// callInbox is a call as the wire sees it.
type callInbox outgoingCall

// Note implements engine.Inbox.
func (i *callInbox) Note(method string, params json.RawMessage) {
	(*outgoingCall)(i).notify(method, params)
}

// Question implements engine.Inbox.
func (i *callInbox) Question(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	x := (*outgoingCall)(i)
	x.begun.Store(true)
	if err := x.s.mayAsk(method, params); err != nil {
		return nil, err
	}
	x.s.expectVisit(params)
	x.s.calls.opened(x.turn, 1)
	defer x.s.calls.opened(x.turn, -1)
	answers, err := settled(x.answer(ctx, engine.Question{Method: method, Params: x.s.rev.InnerQuestion(method, params)}))
	if err != nil {
		return nil, err
	}
	return tied(x.s.rev.Answer(method, answers[0]), params), nil
}

// memo is what outlives a run of a forwarded call.
type memo interface {
	Round() int
	Remember(key string, v json.RawMessage)
	Recall(key string) (json.RawMessage, bool)
}

func (x *outgoingCall) run(ctx context.Context) (json.RawMessage, error) {
	if x.fault != nil {
		return nil, x.fault
	}
	if x.s.sendsHeaders() {
		if err := x.s.mustNotCall(x.method, x.params); err != nil {
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
			x.listenNoMore()
			x.late.close()
			x.noteMu.Lock()
			x.told = true
			x.noteMu.Unlock()
		}()
	}
	if !x.s.rev.Sessions {
		return x.rounds(ctx)
	}
	if x.requiresTask(ctx, nil) {
		return x.asTask(ctx)
	}
	raw, err := x.visiting(ctx)
	if err != nil && !x.begun.Load() && x.requiresTask(ctx, err) {
		return x.asTask(ctx)
	}
	return raw, err
}

// asTask makes a call to a server of 2025-11-25 that has to be a task, and waits for it
// (T-104).
func (x *outgoingCall) asTask(ctx context.Context) (json.RawMessage, error) {
	d, ok := x.s.farewells.owe(ctx)
	if !ok {
		return nil, ErrClosed
	}
	raw, err := x.create(d)
	if err != nil {
		return nil, err
	}
	handle := coreHandle(raw)
	if handle == nil {
		d.pay()
		return raw, nil
	}
	x.begun.Store(true)
	return x.finishOwed(d, handle)
}

// bare is a further request on behalf of the call: what is asked and told meanwhile
// belongs to the call.
func (x *outgoingCall) bare() *outgoingCall {
	return &outgoingCall{s: x.s, turn: x.turn, caps: x.caps, self: x.self, hops: x.hops, logLevel: x.logLevel, note: x.notify,
		ask: func(ctx context.Context, qs []engine.Question) ([]json.RawMessage, error) {
			return x.answer(ctx, qs...)
		}}
}

// plain makes one request to a legacy server.
func (x *outgoingCall) plain(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	if x.tokenID != 0 || x.hops != nil {
		buf := buffer.Get()
		defer buffer.Put(buf)
		*buf = appendLegacy(*buf, params, x.token(), x.hops)
		params = *buf
	}
	x.s.calls.sent(x)
	defer x.s.calls.over(x)
	x.out = engine.Outgoing{
		Method: x.method, Params: x.s.rev.Params(x.method, params),
		Token: x.token(), Inbox: (*callInbox)(x),
		Logs:   revision.Asks(x.method), // if anything does: the level is that of the session
		Header: x.hopHeader(nil),
	}
	return object(x.s.call(ctx, &x.out))
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

// object refuses a result that is no object; every result of the protocol is one.
func object(raw json.RawMessage, err error) (json.RawMessage, error) {
	if err == nil && jsonx.KindOf(raw) != '{' {
		return nil, errors.New("the server's result is no object")
	}
	return raw, err
}

// keptRound is what a forwarded call keeps between two runs: the questions of the
// server's last round and the state to give back.
type keptRound struct {
	Round     int             `json:"round"`
	State     json.RawMessage `json:"state,omitzero"`
	Questions []keptQuestion  `json:"questions"`
}

type keptQuestion struct {
	Key    string          `json:"key"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitzero"`
}

const memoRound = "forward:round:" // and a scope

// scope names a call to a server among all that the call in front becomes: a gateway
// may ask several servers, a handler may forward more than once. What is kept of one, and
// the answers to its questions, must reach no other. It is the same in each run.
func (x *outgoingCall) scope() string {
	h := sha256.New()
	server := orDefault(x.s.id, x.s.Server().Name)
	fmt.Fprintf(h, "%d %s %d %s ", len(server), server, len(x.method), x.method)
	h.Write(jsonx.Canonical(jsonx.Without(nil, x.params, "_meta")))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

// rounds drives a call of the modern era: as long as the server requires input,
// the questions are answered and the call is sent again (2026-07-28,
// basic/patterns/mrtr).
func (x *outgoingCall) rounds(ctx context.Context) (json.RawMessage, error) {
	kept, err := x.recall()
	if err != nil {
		return nil, err
	}
	// CACHE-26-004: a retry with answers is neither taken from the cache nor kept.
	caching := x.s.rev.Cacheable(x.method) && kept.Round == 0 && x.cache != cacheNone
	var t ticket
	if caching {
		t = x.s.cache.ticket(x.method, x.params, x.caps)
		if raw, ok := x.s.cache.get(t, x.cache); ok {
			x.hit = true
			return raw, nil
		}
	}
	for {
		params := x.params
		if kept.Round > 0 {
			responses, err := x.answers(ctx, kept)
			if err != nil {
				return nil, err
			}
			if responses != nil {
				params = jsonx.With(nil, params, "inputResponses", responses)
			}
			if kept.State != nil {
				params = jsonx.With(nil, params, "requestState", kept.State)
			}
		}
		raw, err := x.send(ctx, params)
		if x.s.relearn(ctx, x.method, err) {
			raw, err = x.send(ctx, params)
		}
		if err != nil {
			return nil, err
		}
		kind, err := resultType(raw)
		if err != nil {
			return nil, err
		}
		switch kind {
		case "complete":
			raw = inner(raw)
			if caching && kept.Round == 0 {
				x.s.cache.put(t, x.cache, raw)
			}
			return raw, nil
		case "input_required":
			x.begun.Store(true)
			x.clock.touch()
			if !revision.Asks(x.method) {
				return nil, fmt.Errorf("the server asked for input on %q, where that is not allowed", x.method)
			}
			if kept, err = kept.next(raw, x.s.limits.Rounds); err != nil {
				return nil, err
			}
			if x.memo != nil {
				x.memo.Remember(memoRound+x.scope(), encode(kept))
			}
		case "task":
			x.begun.Store(true)
			switch {
			case x.method != revision.MethodCall: // XTASK-26-003
			case x.onTask != nil:
				return x.onTask(ctx, inner(raw))
			case x.front != nil:
				x.handle = inner(raw)
				return x.handle, nil
			case x.waits:
				return x.finishTask(ctx, inner(raw))
			}
			return nil, fmt.Errorf("the server made a task of %q, where that is not allowed", x.method)
		default:
			return nil, fmt.Errorf("the server's result has the unknown type %q", clip(kind)) // BASE-26: invalid
		}
	}
}

// recall returns what was kept of the call in an earlier run.
func (x *outgoingCall) recall() (keptRound, error) {
	if x.memo == nil || x.memo.Round() == 0 || !revision.Asks(x.method) {
		return keptRound{}, nil
	}
	raw, ok := x.memo.Recall(memoRound + x.scope())
	if !ok {
		return keptRound{}, nil
	}
	kept := new(keptRound)
	err := jsonx.Unmarshal(raw, kept)
	return *kept, err
}

// resultType tells what kind of result the answer to a request is.
func resultType(raw json.RawMessage) (string, error) {
	t, ok := jsonx.Lookup(raw, "resultType")
	if !ok || string(t) == `"complete"` {
		return "complete", nil
	}
	kind, err := jsonx.Unquote(t)
	if err != nil {
		return "", errors.New("the server's resultType is no string")
	}
	return kind, nil
}

// send sends one round.
func (x *outgoingCall) send(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	buf := buffer.Get()
	defer buffer.Put(buf)
	*buf = x.s.appendModern(*buf, params, envelope{x.self, x.caps, x.logLevel, x.token(), x.hops})
	x.out = engine.Outgoing{
		Method: x.method, Params: *buf, Token: x.token(), Inbox: (*callInbox)(x), Logs: x.logLevel != "",
		Header: x.hopHeader(x.s.headersOf(x.method, params)),
	}
	return object(x.s.call(ctx, &x.out))
}

// next reads an input_required result.
func (k keptRound) next(raw json.RawMessage, limit int) (keptRound, error) {
	round := keptRound{Round: k.Round + 1}
	if round.Round > limit {
		return k, fmt.Errorf("the server asked for input more than %d times (Limits.Rounds)", limit)
	}
	if state, ok := jsonx.Lookup(raw, "requestState"); ok && string(state) != "null" {
		round.State = state
	}
	requests, _ := jsonx.Lookup(raw, "inputRequests")
	for name, q := range jsonx.Members(orObject(requests)) {
		kq := keptQuestion{Key: string(name)}
		if m, ok := jsonx.Lookup(q, "method"); ok {
			kq.Method, _ = jsonx.Unquote(m)
		}
		if kq.Method == "" {
			return k, fmt.Errorf("the server's input request %q has no method", clip(kq.Key))
		}
		kq.Params, _ = jsonx.Lookup(q, "params")
		if err := revision.CheckParams(kq.Method, kq.Params); err != nil {
			return k, fmt.Errorf("the server's input request %q: %w", clip(kq.Key), err)
		}
		round.Questions = append(round.Questions, kq)
	}
	if round.State == nil && len(round.Questions) == 0 {
		return k, errors.New("the server requires input but names neither questions nor a state")
	}
	return round, nil
}

// answers has the questions of a round answered and returns inputResponses, nil
// if nothing was asked.
func (x *outgoingCall) answers(ctx context.Context, k keptRound) (json.RawMessage, error) {
	if len(k.Questions) == 0 {
		// Load shedding: the server wants the call again later.
		t := time.NewTimer(min(time.Duration(k.Round)*100*time.Millisecond, 2*time.Second))
		defer t.Stop()
		select {
		case <-t.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	// A key may come again in a later round, or of another server, and mean
	// something else.
	prefix := x.scope() + "/" + strconv.Itoa(k.Round) + "/"
	qs := make([]engine.Question, len(k.Questions))
	for i, q := range k.Questions {
		qs[i] = engine.Question{Method: q.Method, Params: q.Params, Key: prefix + q.Key}
	}
	got, err := x.answer(ctx, qs...)
	if err != nil && x.memo != nil {
		got, err = x.excuse(ctx, qs, err)
	}
	if err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for i, a := range got {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsonx.AppendString(out, k.Questions[i].Key), ':')
		out = append(out, a...)
	}
	return append(out, '}'), nil
}

// excuse answers the questions of a modern server that a caller in front could not be asked, or
// has answered with an error: in that era a question has no error for an answer. Who cannot be
// asked declines (T-23, T-73), and a user interface that failed dismisses (T-24). Without a
// model's answer or roots there is no going on.
func (x *outgoingCall) excuse(ctx context.Context, qs []engine.Question, err error) ([]json.RawMessage, error) {
	var rpc *Error
	var lacks *engine.LacksError
	refused := errors.As(err, &rpc)
	if !refused && (!errors.As(err, &lacks) || x.front == nil || !x.front.Peer.Revision.Sessions) {
		return nil, err
	}
	if len(qs) > 1 && !refused { // nobody was asked yet, and some of them may be
		var answers []json.RawMessage
		for _, q := range qs {
			one, err := x.answer(ctx, q)
			if err != nil {
				one, err = x.excuse(ctx, []engine.Question{q}, err)
			}
			if err != nil {
				return nil, err
			}
			answers = append(answers, one...)
		}
		return answers, nil
	}
	switch {
	case len(qs) == 1 && qs[0].Method == revision.MethodElicit && refused:
		return []json.RawMessage{json.RawMessage(`{"action":"cancel"}`)}, nil
	case len(qs) == 1 && qs[0].Method == revision.MethodElicit:
		return []json.RawMessage{json.RawMessage(`{"action":"decline"}`)}, nil
	}
	return nil, &noAnswer{qs[0].Method, err}
}

// noAnswer ends a forwarded call of a modern server that does not get what it has asked for.
type noAnswer struct {
	method string
	err    error
}

func (e *noAnswer) Error() string {
	return fmt.Sprintf("the server asked for %s, and there is no answer: %s", e.method, clip(e.err.Error()))
}
