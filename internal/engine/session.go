package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Session is a session that a legacy client opened with initialize. Only the transports see it: a
// handler sees only calls.
type Session struct {
	Peer *Peer

	// NoAsking reports that this transport cannot carry the server's requests.
	NoAsking bool

	level   atomic.Pointer[string] // of log messages
	opening atomic.Bool            // OnSession runs, and initialize is not answered
	loose   bool                   // made by Loose
	beside  Beside                 // nil: the client alone is asked
	keeping *Keeping               // nil: no other process may continue the session

	// Events gets the messages outside of requests. The transport sets it before the first
	// request is served. If it has the method Idle, that returns how long the client has had no
	// request and no stream open; otherwise the client counts as connected.
	Events Exchange

	opened context.Context // of the message that opened the session

	mu      sync.Mutex
	watches map[string]*watch       // by URI; guarded by mu
	askers  map[string][]*coreTask  // requests for the result of a task; the last one asks; guarded by mu
	lists   bool                    // WatchLists was called; guarded by mu
	roots   rootsNews               // guarded by mu
	stop    func()                  // ends WatchLists, or nil if closing does; guarded by mu
	closed  error                   // the cause of Close; guarded by mu
	ctx     context.Context         // made when first needed; guarded by mu
	cancel  context.CancelCauseFunc // of ctx; guarded by mu
	wg      sync.WaitGroup
}

// watch is a resource that a session is subscribed to.
type watch struct {
	stop func()
	once sync.Once
	said chan struct{} // closed when the handler has taken or refused it
	err  error         // why it was refused; read after said
}

// saidYes is a closed channel, for subscriptions that need no wait.
var saidYes = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// say sets the outcome of the subscription and wakes its waiters. The first call counts, because a
// server behind the handler may acknowledge more than once.
func (w *watch) say(err error) { w.once.Do(func() { w.err = err; close(w.said) }) }

// Caller is the client that opens a session, as the transport knows it.
type Caller struct {
	Principal string
	Alone     bool
}

// maxWatches bounds the resources one session may subscribe to.
const maxWatches = 1000

// Initialize opens a session. The reply answers the request; the session is nil if the request
// was refused.
//
// The requested version is answered if it is served, else the newest legacy one
// (INIT-25-009 to -011; 2026-07-28 is never negotiated this way, Q-12).
func (e *Engine) Initialize(ctx context.Context, msg *jsonrpc.Message, who Caller, header http.Header) (*Session, Reply) {
	return e.initialize(ctx, msg, who, header, false)
}

// Introduce answers initialize without opening a session. It leaves out capabilities that need
// one.
func (e *Engine) Introduce(ctx context.Context, msg *jsonrpc.Message, who Caller, header http.Header) Reply {
	_, reply := e.initialize(ctx, msg, who, header, true)
	return reply
}

func (e *Engine) initialize(ctx context.Context, msg *jsonrpc.Message, who Caller, header http.Header, stateless bool) (*Session, Reply) {
	latest := revision.Latest(e.Revisions, true)
	if latest == nil {
		// VER-26-008: name the supported versions.
		r := refuse(msg.ID, jsonrpc.CodeInvalidParams, "this server speaks only %s, which has no initialize", strings.Join(revision.Names(e.Revisions), ", "))
		r.Err.Data = append(append([]byte(`{"supported":`), e.versions...), '}')
		return nil, r
	}
	raw, _ := msg.Param("protocolVersion")
	version, err := jsonx.Unquote(raw)
	if err != nil {
		return nil, refuse(msg.ID, jsonrpc.CodeInvalidParams, "initialize: missing %q, a string", "protocolVersion")
	}
	t := revision.Find(e.Revisions, version)
	if t == nil || !t.Sessions {
		t = latest
	}
	// The session outlives its first message, whose bytes are reused.
	p := e.shared.of(t, who, objectParam(msg, "clientInfo"), objectParam(msg, "capabilities"))
	answer, refused := e.introduction(ctx, msg.ID, p, header, stateless)
	if refused != nil {
		return nil, *refused
	}
	if stateless {
		return nil, Reply{ID: msg.ID, Result: answer}
	}
	s := &Session{Peer: p, opened: ctx}
	if own, ok := ctx.(*Context); ok {
		s.opened = own.parent // the call itself is over soon
	}
	return s, Reply{ID: msg.ID, Result: answer}
}

// Opened calls OnSession. The transport calls it when Events of the session is set, before it answers
// initialize. Code of the user may end the goroutine in it.
func (e *Engine) Opened(s *Session) {
	if e.OnSession == nil {
		return
	}
	session := s.Context()
	s.opening.Store(true)
	defer s.opening.Store(false)
	_ = e.User.Run(session, "Server.OnSession", func() error { e.OnSession(session); return nil })
}

// objectParam returns a member of the params, or nil if it is not an object.
func objectParam(msg *jsonrpc.Message, name string) json.RawMessage {
	if raw, ok := msg.Param(name); ok && jsonx.KindOf(raw) == '{' {
		return raw
	}
	return nil
}

// Loose returns the session of a single legacy request to a stateless server: the client's
// initialize is not kept, so it cannot be asked and gets no log messages.
func (e *Engine) Loose(t *revision.Table, principal string) *Session {
	return &Session{Peer: &Peer{Revision: t, Principal: principal, Stateless: true}, NoAsking: true, loose: true, opened: context.Background()}
}

// withoutState removes the capabilities that need a session from a server's description.
func withoutState(discovered json.RawMessage) json.RawMessage {
	caps, ok := jsonx.Lookup(discovered, "capabilities")
	if !ok {
		return discovered
	}
	caps = jsonx.Without(nil, caps, "logging")
	if ext, ok := jsonx.Lookup(caps, "extensions"); ok {
		caps = jsonx.With(nil, caps, "extensions", jsonx.Without(nil, ext, revision.Tasks))
	}
	for _, name := range []string{"tools", "prompts", "resources"} {
		if c, ok := jsonx.Lookup(caps, name); ok && jsonx.KindOf(c) == '{' {
			caps = jsonx.With(nil, caps, name, jsonx.Without(nil, c, "listChanged", "subscribe"))
		}
	}
	return jsonx.With(nil, discovered, "capabilities", caps)
}

// introduction calls server/discover of the handler and converts the result to the answer to
// initialize (T-10).
func (e *Engine) introduction(ctx context.Context, id jsonrpc.ID, p *Peer, header http.Header, stateless bool) (answer json.RawMessage, refused *Reply) {
	c := &Call{Method: revision.MethodDiscover, Params: json.RawMessage(`{}`), Msg: &jsonrpc.Message{ID: id, Method: revision.MethodDiscover}, Peer: p, Header: header}
	res, err := e.run(ctx, c)
	if err == nil {
		err = e.User.Run(ctx, c.Method, func() error {
			info := res.JSON
			if res.Memo != nil {
				info = res.Memo.inner
			}
			if stateless {
				info = withoutState(info)
			}
			answer = initializeResult(p, info, e.Info)
			return nil
		})
	}
	if err != nil {
		r := e.failure(ctx, c, id, err)
		return nil, &r
	}
	return answer, nil
}

// initializeResult converts a server's description to the answer to initialize.
func initializeResult(p *Peer, discovered, own json.RawMessage) json.RawMessage {
	t := p.Revision
	caps, ok := jsonx.Lookup(discovered, "capabilities")
	if !ok {
		caps = json.RawMessage(`{}`)
	}
	info, ok := jsonx.LookupPath(discovered, "_meta", MetaServerInfo)
	if !ok {
		info = own
	}
	out := append([]byte(`{"protocolVersion":"`), t.Name...)
	out = append(out, `","capabilities":`...)
	caps = t.ServerCapabilities(caps)
	if tasks, ok := jsonx.Lookup(caps, "tasks"); ok && !p.Identified() {
		caps = jsonx.With(nil, caps, "tasks", jsonx.Without(nil, tasks, "list")) // TASK-25-059
	}
	out = append(out, caps...)
	out = append(out, `,"serverInfo":`...)
	out = append(out, t.Implementation(info)...)
	if text, ok := jsonx.Lookup(discovered, "instructions"); ok {
		out = append(append(out, `,"instructions":`...), text...)
	}
	return append(out, '}')
}

// LogLevel returns the minimum level of log messages for the client: the level it set, or before
// that info, the server's choice (LOG). Empty means none.
func (s *Session) LogLevel() string {
	if s.loose {
		return ""
	}
	if l := s.level.Load(); l != nil {
		return *l
	}
	return "info"
}

func (s *Session) setLevel(ctx context.Context, msg *jsonrpc.Message) Reply {
	raw, _ := msg.Param("level")
	level, err := jsonx.Unquote(raw)
	if err != nil || LevelIndex(level) < 0 {
		return refuse(msg.ID, jsonrpc.CodeInvalidParams, "level must be one of %s", strings.Join(levels, ", "))
	}
	s.level.Store(&level)
	s.stateChanged(ctx)
	return Reply{ID: msg.ID, Result: json.RawMessage(`{}`)}
}

// Listen runs one subscriptions/listen of the inner form for the session and sends
// what it emits to ex. It returns when ctx ends or the handler is done.
func (s *Session) Listen(ctx context.Context, e *Engine, filter json.RawMessage, ex Exchange, ready func()) error {
	params := append(append([]byte(`{"notifications":`), filter...), '}')
	msg := &jsonrpc.Message{Method: revision.MethodListen, Params: params}
	c := &Call{Method: msg.Method, Params: params, Msg: msg, Peer: s.Peer, ex: &eventsOnly{ex, ready}, session: s}
	_, err := e.run(ctx, c)
	return err
}

// ListChanges is the filter of the notifications that legacy clients get without a subscription.
var ListChanges = json.RawMessage(`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`)

// WatchLists sends changes of lists to Events from now on, until the session is closed; a
// notification under way then may still arrive. A server without list changes may still have
// updates of single resources.
func (s *Session) WatchLists(e *Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil || s.lists {
		return
	}
	s.lists = true
	if e.Watch != nil {
		s.stop = e.Watch("", s.tell)
		return
	}
	ctx := s.context()
	s.wg.Go(func() { _ = s.Listen(ctx, e, ListChanges, s.Events, nil) })
}

// tell sends a notification of a watch to Events.
func (s *Session) tell(method string, params json.RawMessage) error {
	return s.Events.Notify(method, s.Peer.Revision.Notification(method, params))
}

// eventsOnly is an Exchange for a listen of a legacy session: the acknowledgement,
// which such clients do not know, is turned into a call of ready.
type eventsOnly struct {
	Exchange
	ready func()
}

func (x *eventsOnly) Notify(method string, params json.RawMessage) error {
	if method == revision.NoteAcknowledged {
		if x.ready != nil {
			x.ready()
		}
		return nil
	}
	return x.Exchange.Notify(method, params)
}

// subscription answers resources/subscribe and resources/unsubscribe: each
// subscribed URI is a listen of its own.
func (s *Session) subscription(ctx context.Context, e *Engine, msg *jsonrpc.Message) Reply {
	raw, _ := msg.Param("uri")
	uri, err := jsonx.Unquote(raw)
	if err != nil {
		return refuse(msg.ID, jsonrpc.CodeInvalidParams, "%s: missing %q, a string", msg.Method, "uri")
	}
	done := Reply{ID: msg.ID, Result: json.RawMessage(`{}`)}
	s.mu.Lock()
	w, watched := s.watches[uri]
	if msg.Method == revision.MethodUnsubscribe {
		delete(s.watches, uri)
		s.mu.Unlock()
		if watched {
			w.stop()
			s.stateChanged(ctx)
		}
		return done
	}
	switch {
	case s.closed != nil:
		s.mu.Unlock()
		return refuse(msg.ID, jsonrpc.CodeInternal, "the session is closed")
	case watched:
	case len(s.watches) >= maxWatches:
		s.mu.Unlock()
		return refuse(msg.ID, jsonrpc.CodeInternal, "a session may subscribe to at most %d resources", maxWatches)
	default:
		w = s.watch(e, uri, raw)
	}
	s.mu.Unlock()
	// The subscription is in effect when the client has the answer.
	select {
	case <-w.said:
		if w.err != nil {
			return e.failure(ctx, &Call{Method: msg.Method, Peer: s.Peer}, msg.ID, fmt.Errorf("subscribe to %q: %w", text.Short(uri), w.err))
		}
		if !watched {
			s.stateChanged(ctx)
		}
		return done
	case <-ctx.Done():
		if !watched {
			s.forget(uri, w)
			w.stop()
		}
		return e.failure(ctx, &Call{Method: msg.Method, Peer: s.Peer}, msg.ID, ctx.Err())
	}
}

// watch begins to watch a resource; raw is its URI as JSON. It is called with mu held, so that
// Close waits for its goroutine.
func (s *Session) watch(e *Engine, uri string, raw json.RawMessage) *watch {
	if s.watches == nil {
		s.watches = map[string]*watch{}
	}
	if e.Watch != nil {
		w := &watch{stop: e.Watch(uri, s.tell), said: saidYes}
		s.watches[uri] = w
		return w
	}
	own, stop := context.WithCancel(s.context())
	w := &watch{stop: stop, said: make(chan struct{})}
	s.watches[uri] = w
	filter := append([]byte(`{"resourceSubscriptions":[`), raw...)
	filter = append(filter, `]}`...)
	s.wg.Go(func() {
		ended := errors.New("the subscription has ended")
		defer func() { // the handler may end the goroutine
			stop()
			s.forget(uri, w)
			w.say(ended)
		}()
		if err := s.Listen(own, e, filter, s.Events, func() { w.say(nil) }); err != nil {
			ended = err
		}
	})
	return w
}

// forget drops a subscription, unless another has taken its place.
func (s *Session) forget(uri string, w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[uri] == w {
		delete(s.watches, uri)
	}
}

// Context has the values of the message that opened the session, and ends when the session is
// closed. It belongs to a call that the client did not make: its notifications go to Events, and
// it may only ask for roots.
func (s *Session) Context() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.context()
}

// context is Context with mu held. Most sessions never need one.
func (s *Session) context() context.Context {
	if s.ctx == nil {
		var ctx context.Context
		ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(s.opened))
		s.ctx = &sessionContext{ctx, s}
		if s.closed != nil {
			s.cancel(s.closed)
		}
	}
	return s.ctx
}

// Idle returns how long the client has had no request and no stream open; 0 while it has.
func (s *Session) Idle() time.Duration {
	if e, ok := s.Events.(interface{ Idle() time.Duration }); ok {
		return e.Idle()
	}
	return 0
}

// Close ends the session's goroutines and waits for them. The cause must not be nil.
func (s *Session) Close(cause error) {
	s.mu.Lock()
	if s.closed == nil {
		s.closed = cause
	}
	if s.cancel != nil {
		s.cancel(cause)
	}
	if s.stop != nil {
		s.stop()
	}
	for _, w := range s.watches {
		w.stop()
	}
	s.mu.Unlock()
	s.wg.Wait()
}
