package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Open opens a session with a [Handler] of this process: a [Server], a gateway, another Session, or
// a function. Nothing is sent before the first call, and nothing is written to a wire. The handler
// sees calls in the form of the newest revision, from a caller with a session that waits for the
// answers to its questions, so the handler runs once per call. The principal of a call is that of
// its context. Errors from the handler are [*Error] values, as from any server, and wrap the error
// that the handler returned.
//
// A call ends with its context even if the handler does not return; the handler then goes on by
// itself. Close ends the contexts of the calls, and of the requests of [Session.Handle], but does
// not end h. Handle then fails with [ErrClosed].
func (c *Client) Open(ctx context.Context, h Handler) (*Session, error) {
	if v := reflect.ValueOf(h); !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
		return nil, fmt.Errorf("open: the Handler is nil (%T); give a Server, a Session or a function", h)
	}
	s := c.newSession()
	if _, _, err := s.eras(); err != nil {
		return nil, err
	}
	h, err := c.chain(checked(h))
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	s.openLocal(ctx, h)
	return s.begin()
}

// Use adds middleware around every request of the sessions that the client opens; the first added
// is the outermost. Each poll of a task and each page of a list is a request of its own; an answer
// from the session's cache is not a request. The middleware gets requests in the form of the newest
// revision, whatever the server speaks, and [CallFrom] describes this client. States of tasks have
// that form too: a task whose tool has failed is "completed", where 2025-11-25 says "failed". Use
// panics if a session has been opened, because its requests would bypass the middleware, and if a
// middleware is nil.
func (c *Client) Use(mw ...Middleware) {
	for i, m := range mw {
		if m == nil {
			panic(fmt.Errorf("mcp: Client.Use: middleware %d is nil; give the function that wraps a Handler", i))
		}
	}
	if c.begun.Load() {
		panic(errors.New("mcp: Client.Use: a session has been opened, and its requests would not pass through this middleware; add it before"))
	}
	c.middleware = append(c.middleware, mw...)
}

// chain puts the middleware of the client in front of a handler.
func (c *Client) chain(h Handler) (Handler, error) {
	user := c.userCode()
	err := user.Run(context.Background(), "a middleware", func() error {
		for i := len(c.middleware) - 1; i >= 0; i-- {
			if h = c.middleware[i](guarded{user, h}); h == nil {
				return fmt.Errorf("mcp: Client.Use: middleware %d returned no Handler; return the next one if there is nothing to wrap", i)
			}
		}
		return nil
	})
	return h, err
}

// guarded is a handler behind the middleware of a client. Panics become errors.
type guarded struct {
	user *usercode.Runner
	next Handler
}

// Handle implements [Handler].
func (g guarded) Handle(ctx context.Context, req *Request) (res Result, err error) {
	if _, err = req.exact(); err != nil {
		return nil, err
	}
	err = g.user.Run(ctx, req.Method, func() (err error) {
		if res, err = g.next.Handle(ctx, req); err == nil {
			usable(res)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// Foreign tells package policy whether text from another program may come from behind g.
func (g guarded) Foreign() bool {
	switch next := g.next.(type) {
	case *Server:
		return next.foreign()
	case interface{ Foreign() bool }:
		return next.Foreign()
	}
	return true
}

// inFront returns a session whose requests pass through the middleware of the client on their way
// to s.
func (c *Client) inFront(s *Session) (*Session, error) {
	h, err := c.chain(s)
	if err != nil {
		return nil, err
	}
	f := c.newSession()
	f.remote.Caps, f.remote.Self, f.behind, f.remote.ID = s.remote.Caps, s.remote.Self, s, s.remote.ID
	f.openLocal(context.Background(), h)
	s.remote.Behind(&f.remote, f.local.session)
	return f, nil
}

// openLocal connects the session to a handler.
func (s *Session) openLocal(ctx context.Context, h Handler) {
	s.remote.Rev, s.how = revision.Newest, "a Handler of this process"
	s.remote.MayAsk(s.remote.Rev)
	w := &localWire{s: s, h: h, done: make(chan struct{})}
	w.eng = engine.Engine{Handler: w.serve, User: s.user, Revisions: []*revision.Table{s.remote.Rev}, Info: s.remote.Self, Logger: s.log}
	w.eng.Init()
	w.session = engine.NewLocal(ctx, s.remote.Self, s.remote.Caps, &localExchange{inbox: &s.remote})
	s.local, s.remote.Wire, s.remote.Local = w, w, true
}

// localWire is the wire to a handler of this process.
type localWire struct {
	s       *Session
	h       Handler
	eng     engine.Engine
	session *engine.Session

	done chan struct{} // closed by end
	err  error         // why; set before done is closed
	once sync.Once

	asking atomic.Int32 // calls of info in progress
	direct direct
}

// forward passes a request that was not made with Call to the handler. Its context ends with the
// session.
func (w *localWire) forward(ctx context.Context, req *Request) (res Result, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	part := new(engine.Part)
	part.Init(ctx, nil)
	if !w.direct.enter(part, req.Method) {
		return nil, publicError(w.err)
	}
	defer w.direct.leave(part)
	err = w.s.user.Run(part, req.Method, func() (err error) { res, err = w.h.Handle(part, req); return err })
	if err != nil && w.Err() != nil {
		err = publicError(w.err) // as for a session over a wire
	}
	return res, err
}

// serve is the engine's handler.
func (w *localWire) serve(ctx context.Context, c *engine.Call) (engine.Result, error) {
	res, err := w.h.Handle(ctx, &Request{Method: c.Method, Params: c.Params, msg: c.Msg})
	if err != nil {
		return engine.Result{}, err
	}
	usable(res)
	out := encodeResult(res)
	switch {
	case out.Memo != nil:
		out.JSON = out.Memo.Inner()
		fallthrough
	case out.Uses == revision.Unknown: // others may have the same bytes
		out.JSON = bytes.Clone(out.JSON)
	}
	return out, nil
}

// Call implements [engine.Wire].
func (w *localWire) Call(ctx context.Context, out *engine.Outgoing) (json.RawMessage, error) {
	select {
	case <-w.done:
		return nil, w.err
	default:
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	x := &localCall{w: w, header: out.Header, answered: make(chan struct{}), err: usercode.Failed()}
	x.exchange.inbox = out.Inbox
	if call, ok := out.Inbox.(interface{ LogLevel() string }); ok {
		x.level = call.LogLevel()
	}
	x.ctx.Init(ctx, nil)
	x.params = buffer.Get()
	*x.params = append(*x.params, out.Params...) // the bytes of out are reused when this returns
	x.msg = jsonrpc.Message{Method: out.Method, Params: *x.params}
	go x.run()
	select {
	case <-x.answered:
		return x.res.JSON, x.err
	case <-ctx.Done():
		return nil, x.leave(context.Cause(ctx))
	case <-w.done:
		return nil, x.leave(w.err)
	}
}

// localCall is one call in progress. It owns a goroutine, which ends with the handler.
type localCall struct {
	w        *localWire
	ctx      engine.Context
	msg      jsonrpc.Message
	params   *[]byte
	level    string // of the log messages that the caller wants
	header   http.Header
	exchange localExchange

	answered chan struct{} // closed when res and err are set
	res      engine.Result
	err      error

	mu   sync.Mutex
	left bool // the caller does not wait for the answer; guarded by mu
	over bool // res and err are set; guarded by mu
}

// run calls the handler.
func (x *localCall) run() {
	defer func() { // the handler may end the goroutine with runtime.Goexit
		x.ctx.End()
		x.exchange.close()
		x.mu.Lock()
		x.over = true
		left := x.left
		x.mu.Unlock()
		close(x.answered)
		buffer.Put(x.params)
		if left {
			x.drop()
		}
	}()
	x.res, x.err = x.w.eng.Local(&x.ctx, x.w.session, &x.msg, x.level, x.header, &x.exchange)
	if local := (*engine.LocalError)(nil); errors.As(x.err, &local) {
		local.RPC.Code = x.w.s.server().remote.Rev.Code(local.RPC.Code) // as without middleware
	}
	if x.err == nil && x.res.Task {
		x.res.JSON = jsonx.With(nil, x.res.JSON, "resultType", []byte(`"task"`))
	}
}

func init() {
	engine.Standing = func(session any) (context.Context, func()) { return session.(*Session).local.standing() }
}

// standing returns the context of a call that no handler serves. Its questions go to the functions
// of the client until end is called.
func (w *localWire) standing() (ctx context.Context, end func()) {
	x := &localCall{w: w, msg: jsonrpc.Message{Method: revision.MethodCall, Params: json.RawMessage(`{}`)}}
	x.exchange.inbox = &w.s.remote
	x.ctx.Init(context.Background(), nil)
	w.eng.Stand(&x.ctx, w.session, &x.msg, &x.exchange)
	return &x.ctx, func() { x.ctx.End(); x.exchange.close() }
}

// leave ends the call for its caller and returns the cause.
func (x *localCall) leave(cause error) error {
	x.ctx.Cancel(cause)
	x.exchange.close()
	x.mu.Lock()
	x.left = true
	over := x.over
	x.mu.Unlock()
	if over {
		x.drop()
	}
	return cause
}

// drop cancels a task that no caller knows of.
func (x *localCall) drop() {
	if x.err == nil && x.res.Drop != nil {
		x.res.Drop()
	}
}

// localExchange carries the handler's questions and notifications, until it is closed.
type localExchange struct {
	inbox engine.Inbox // may be nil

	mu     sync.Mutex
	closed bool // guarded by mu
}

func (x *localExchange) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
}

// Notify implements [engine.Exchange].
func (x *localExchange) Notify(method string, params json.RawMessage) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return engine.ErrOver
	}
	if x.inbox != nil {
		x.inbox.Note(method, bytes.Clone(params))
	}
	return nil
}

// Request implements [engine.Exchange].
func (x *localExchange) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	x.mu.Lock()
	closed := x.closed
	x.mu.Unlock()
	if closed {
		return nil, engine.ErrOver
	}
	if x.inbox == nil {
		return nil, ErrNoCall
	}
	return x.inbox.Question(ctx, method, params)
}

// Notify implements [engine.Wire]. In the newest revision a client does not send notifications to
// handlers.
func (w *localWire) Notify(context.Context, string, json.RawMessage) error { return nil }

// Negotiated implements [engine.Wire].
func (w *localWire) Negotiated(*revision.Table) {}

// Done implements [engine.Wire].
func (w *localWire) Done() <-chan struct{} { return w.done }

// Err implements [engine.Wire].
func (w *localWire) Err() error {
	select {
	case <-w.done:
		return w.err
	default:
		return nil
	}
}

// end ends the calls in progress and refuses new ones.
func (w *localWire) end(err error) {
	w.once.Do(func() {
		w.err = err
		close(w.done)
		w.direct.drain(err, true)
	})
}

// Close implements [engine.Wire].
func (w *localWire) Close() error {
	w.end(ErrClosed)
	ended := make(chan struct{})
	go func() { defer close(ended); w.session.Close(ErrClosed) }()
	t := time.NewTimer(closeGrace)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
	}
	return nil
}

// Bounds of asking a handler for its ServerInfo.
const (
	infoTime  = 10 * time.Second
	maxAsking = 64 // at a time; more means that a handler asks its own session
)

// info asks the handler for its ServerInfo. It is empty if the handler does not give one.
func (w *localWire) info() *ServerInfo {
	defer w.asking.Add(-1)
	err := errAsksItself
	if w.asking.Add(1) <= maxAsking {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.session.Context()), infoTime)
		defer cancel()
		var raw json.RawMessage
		if raw, err = w.Call(ctx, &engine.Outgoing{Method: revision.MethodDiscover, Params: json.RawMessage(`{}`)}); err == nil {
			var info *ServerInfo
			if info, err = decodeServerInfo(raw); err == nil {
				w.s.info.CompareAndSwap(nil, info)
				return w.s.info.Load()
			}
		}
	}
	w.s.log.Debug("a Handler has no server info", "err", err)
	return &ServerInfo{}
}

var errAsksItself = errors.New("it calls Server of its own session")
