package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/eventmemory"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/duplex"
	"github.com/patchbay-dev/patchbay/internal/transport/stdio"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/store"
	"github.com/patchbay-dev/patchbay/trace"
)

// A Server offers tools, prompts and resources. The zero value with a Name works. Its fields are
// read when serving starts and not after. Features may be added and removed at any time, and
// subscribed clients are notified.
//
// A Server is an [http.Handler] that serves Streamable HTTP of every revision, with
// and without sessions, on one endpoint; [Server.ServeStdio], [Server.SSE],
// [Server.WebSocket], [Server.ServeListener] and [Server.Serve] serve other transports. It is a [Handler] too: Handle answers one request in memory.
type Server struct {
	Name, Title, Version string

	// Instructions tell a model how to use the server.
	Instructions string

	// Extensions holds the settings of each extension that the server declares, by identifier
	// ("com.example/audit"). The settings are a JSON object, {} for none. Register the methods of
	// an extension with [Server.HandleMethod].
	Extensions map[string]json.RawMessage

	// Handler answers requests in place of the server's own registry. It puts a gateway or a
	// [Session] behind a transport. A server with a Handler has no features: to add one fails, and a
	// Handler that is set after one is a fault that Check returns.
	//
	// If the Handler answers server/discover with [jsonrpc.CodeMethodNotFound], the server answers for
	// it, and for initialize: with its own fields, and the capabilities tools, prompts and resources
	// as far as the Handler answers their lists, which it is asked for with empty params. A Handler
	// with more capabilities answers server/discover itself. It is also called with the method
	// "notifications/roots/list_changed" when the client of a session before 2026-07-28 sends that
	// notification; its result is then ignored.
	Handler Handler

	Revisions []Revision // nil: all
	HTTP      HTTPConfig
	State     StateConfig
	Tasks     TaskConfig
	Limits    Limits

	// Shared is what several processes that serve the same have together, as Share of a cluster.Node returns it: sessions, events,
	// tasks, the keys of requestState, and updates of resources, which ResourceUpdated tells subscribers at all of them. Changes of lists
	// are not shared: each process has its own features, and announces when they change. HTTP.Sessions, HTTP.Events, Tasks.Store and
	// State.Keys come before it. Nil: this process is alone.
	Shared store.Shared

	// Visible reports whether the caller of ctx may see and use a feature. It filters lists and
	// calls alike. If nil, all features are visible.
	Visible func(ctx context.Context, f Feature) bool

	// OnStart is called before the first request is served, for instance to open a database. If it
	// fails, requests are answered with its error, and the next request calls it again. Shutdown
	// calls OnShutdown once, after the last request has ended, unless OnStart is set and has not
	// succeeded.
	OnStart    func(ctx context.Context) error
	OnShutdown func(ctx context.Context) error

	// Lenient accepts a string with a number or a boolean in it ("3", "true") for an argument of a
	// tool of [AddTool] that is a number or a boolean, because some models write them so. Input schemas
	// do not mention it, and a tool with an InputSchema of its own is not affected.
	Lenient bool

	// Cache says how long clients that speak 2026-07-28 may cache the lists and the description of
	// this server, unless a result says so itself ([ReadResult.Cache]). Set Public only if all
	// callers see the same. Public has no effect if Visible is set.
	Cache CacheHint

	// OnPanic is called with the value and the stack of each panic in a handler, in middleware and
	// in the functions and stores that are set here. The call is answered with an internal error
	// without detail. A handler that calls runtime.Goexit, as testing.T.FailNow does, and an error
	// that cannot be used, such as a nil [*Error], count as panics. If nil, Logger gets them.
	OnPanic func(ctx context.Context, v any, stack []byte)

	// OnSession is called when a client before 2026-07-28 has opened a session. The client's answer
	// to initialize waits until OnSession returns. Its argument is the context that [Call.Session]
	// returns in the calls of the session. This context ends with the session, so
	// [context.AfterFunc] can run code at the end; [CallFrom] describes the client, without a
	// Header. A client can be asked only after initialize, so [Roots] fails in OnSession: ask in the
	// first call. OnSession is not called for sessions of [Client.Open] or for callers that speak 2026-07-28, which have no
	// session. If nil, nothing is called.
	OnSession func(session context.Context)

	// OnFrame is called, before anything else, with each message on the wire, with each HTTP
	// exchange, and with the opening and the end of connections; [trace.Writer.Record] records
	// them. It may be called by several goroutines at once, must not block for long, and must not
	// keep or change the data that a frame refers to. Nothing is redacted. If nil, nothing is called.
	OnFrame func(trace.Frame)

	// Watched switches OnFrame: while it is false, frames are not made, which costs nothing, and
	// OnFrame is not called. [trace.Tee] has one. If nil, OnFrame is always called.
	Watched *atomic.Bool

	// Logger gets errors that the server cannot return to a caller. If nil, they are discarded, except
	// panics, which go to the standard logger of package log, as in net/http.
	Logger *slog.Logger

	middleware []Middleware

	tools     set[*toolEntry]
	prompts   set[*promptEntry]
	resources set[*resourceEntry]
	templates set[*templateEntry]
	methods   sync.Map // HandlerFunc by method of an extension
	feed      changeFeed
	jobs      *tasks // set by init

	introduced atomic.Pointer[introduction] // nil before the first request for it

	begun    atomic.Bool // init was called
	once     sync.Once
	eng      *engine.Engine
	engErr   error
	limits   Limits
	http     *streamable.Server
	chain    Handler
	started  atomic.Bool
	startMu  sync.Mutex
	startErr atomic.Pointer[error] // nil unless OnStart has failed the last time
	stopped  chan struct{}         // closed by Shutdown
	stopOnce sync.Once

	connMu sync.Mutex
	conns  map[*serving]struct{} // guarded by connMu
	direct direct
}

// serving is one connection being served.
type serving struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// HTTPConfig configures the HTTP side of a [Server]. The zero value is safe.
type HTTPConfig struct {
	// AllowedHosts are the host names, other than those of loopback, that requests to a server on
	// loopback may use, such as "mcp.example.com" behind a proxy. If set, they are enforced on
	// every address.
	AllowedHosts []string

	// AllowedOrigins are the web origins, besides the server's own, whose pages may use the server:
	// "https://app.example.com", or "*" for all.
	AllowedOrigins []string

	// SessionIdle ends a legacy session without requests for this time. Zero: 30 minutes.
	SessionIdle time.Duration

	// MaxSessions bounds legacy sessions, and the connections of [Server.SSE] and
	// [Server.WebSocket]. One principal has at most a quarter of them. Zero: 10,000.
	MaxSessions int

	// Stateless serves clients that speak revisions before 2026-07-28 without sessions, for servers
	// that run on many nodes. Each request stands alone, and GET and DELETE are refused. Features
	// that need a session are not available: questions fail, and there are no log messages,
	// subscriptions and list changes.
	Stateless bool

	// KeepAlive is the interval of comments on quiet event streams, so that proxies do not close them.
	// A call that has no answer after this time becomes an event stream too, if its client accepts one:
	// set KeepAlive below the shortest timeout of a proxy. Zero: 15 seconds. Negative: there are no comments.
	KeepAlive time.Duration

	// Events keeps the messages that calls of legacy sessions send on event streams, so that a
	// client can resume a broken stream with Last-Event-ID; with [store.SharedEvents] also at another process that has Sessions. Nil: in
	// memory, at most 64 MiB and 5 minutes.
	Events store.Events

	// Sessions keeps sessions of revisions before 2026-07-28, so that another process with the same store can continue them: one
	// that takes the place of this one, or another node (package cluster). A session that cannot be kept is not opened. Nil: sessions
	// end with the process.
	Sessions store.Sessions

	// Retry is how long a client that speaks 2025-11-25 waits before it reconnects to a closed
	// stream. Zero: 1 second.
	Retry time.Duration

	// Principal names the caller of a request, for programs that authenticate callers by other
	// means than an auth.Guard in front of the server. Sessions, streams, tasks, subscriptions and
	// requestState belong to that principal. Nil, or an empty result: the principal of the Guard,
	// if there is one, else nobody.
	Principal func(*http.Request) string
}

// StateConfig configures how the state of a call travels between rounds of questions ([Elicit] and
// others) toward callers that speak 2026-07-28.
type StateConfig struct {
	// Keys seal requestState: the first seals, all open. Give all nodes of a server the same keys,
	// of 32 random bytes each, unless they have [Server.Shared]. Nil: those of Shared, else a key made by this process.
	Keys [][]byte

	// TTL is how long a caller may take to answer. Zero: 15 minutes.
	TTL time.Duration

	// Store keeps states on the server, so that each works once. If nil, they travel sealed with the
	// caller, which can send one again until TTL has passed.
	Store store.States
}

// errShutdown is the cause of contexts that Shutdown cancels.
var errShutdown = engine.ErrShutdown

// Use adds middleware around the server's handling of requests; the first added is the outermost.
// Use panics if serving has started, because requests would bypass the middleware, and if a
// middleware is nil.
func (s *Server) Use(mw ...Middleware) {
	for i, m := range mw {
		if m == nil {
			panic(fmt.Errorf("mcp: Server.Use: middleware %d is nil; give the function that wraps a Handler", i))
		}
	}
	if s.begun.Load() {
		panic(errors.New("mcp: Server.Use: serving has started, and requests would not pass through this middleware; add it before Check, Handle and the Serve methods"))
	}
	s.middleware = append(s.middleware, mw...)
}

// Check returns the first fault in the fields of the server. It reads them as the start of serving
// does: later changes have no effect. A server with faults does not serve: the Serve methods,
// Handle and Shutdown return the error, and HTTP requests get it as the text of a 500.
//
// After Shutdown, the error is [ErrClosed]. If OnStart has failed, Check calls it again, as the next
// request would, and returns its error.
func (s *Server) Check() error {
	if err := s.init(); err != nil {
		return err
	}
	select {
	case <-s.stopped:
		return s.errStopped()
	default:
	}
	last := s.startErr.Load()
	switch {
	case last == nil:
		return nil
	case s.startMu.TryLock():
		s.startMu.Unlock()
		return s.start(context.Background())
	}
	return *last // OnStart runs at this moment, or calls Check
}

// errStopped returns the error of calls after Shutdown.
func (s *Server) errStopped() error {
	return fmt.Errorf("server %q is shut down: %w", s.Name, ErrClosed)
}

// init resolves the configuration, once.
func (s *Server) init() error {
	s.once.Do(func() {
		s.begun.Store(true)
		s.started.Store(s.OnStart == nil)
		s.limits = s.Limits.withDefaults()
		s.stopped = make(chan struct{})
		s.conns = map[*serving]struct{}{}
		logger := s.Logger
		if logger == nil {
			logger = slog.New(slog.DiscardHandler)
		}
		defer func() {
			if s.engErr != nil {
				logger.Error("the server cannot start", "server", s.Name, "err", s.engErr)
			}
		}()
		if s.engErr = s.checkFields(); s.engErr != nil {
			return
		}
		var states store.States
		user := s.userCode()
		if s.State.Store != nil {
			states = containedStates{user, s.State.Store}
		}
		kept, err := s.stores(user)
		if err != nil {
			s.engErr = err
			return
		}
		s.eng = &engine.Engine{
			Handler:   s.serveCall,
			Revisions: tables(s.Revisions),
			Info:      encode(s.implementation()),
			Sealer:    engine.NewSealer(s.Name, kept.keys, s.State.TTL, states),
			Lists:     engine.Hint{TTL: s.Cache.TTL, Public: s.Cache.Public && s.Visible == nil},
			Limits:    engine.Limits{Rounds: s.limits.Rounds, CallTimeout: s.limits.CallTimeout},
			Logger:    logger,
			User:      user,
			TellRoots: s.Handler != nil,
			OnSession: s.OnSession,
		}
		if s.Handler == nil && len(s.middleware) == 0 {
			s.eng.Watch = s.feed.watch // as listen does, without a goroutine each
		}
		s.eng.Init()
		s.engErr = s.build()
		if s.engErr != nil {
			return
		}
		s.jobs = s.newTasks(kept.tasks)
		s.http = &streamable.Server{
			Engine:         s.eng,
			AllowedHosts:   s.HTTP.AllowedHosts,
			AllowedOrigins: s.HTTP.AllowedOrigins,
			MaxBody:        int64(orDefault(s.limits.Message, 4<<20)),
			MaxDepth:       s.limits.Depth,
			SessionIdle:    orDefault(s.HTTP.SessionIdle, 30*time.Minute),
			Concurrent:     s.limits.Concurrent,
			MaxSessions:    orDefault(s.HTTP.MaxSessions, 10_000),
			KeepAlive:      orDefault(s.HTTP.KeepAlive, 15*time.Second),
			Stateless:      s.HTTP.Stateless,
			Events:         new(eventmemory.Store),
			Retry:          orDefault(s.HTTP.Retry, time.Second),
			Principal:      s.principalOf,
			CheckHeaders:   s.checkHeaders,
			Logger:         logger,
		}
		if kept.events != nil {
			s.http.Events = containEvents(user, kept.events)
		}
		if kept.sessions != nil {
			s.http.Sessions = containSessions(user, kept.sessions)
			s.http.Sessions.OnTaken(s.http.Taken)
			if shared, ok := s.http.Sessions.(store.SharedSessions); ok {
				shared.OnPassed(s.http.Passed)
			}
		}
		if s.OnFrame != nil {
			s.http.Recorder = s.recorder("http")
		}
	})
	return s.engErr
}

// build chains the middleware in front of the handler.
func (s *Server) build() error {
	s.chain = dispatcher{s}
	if s.Handler != nil {
		s.chain = s.introducing(checked(s.Handler))
	}
	return s.eng.User.Run(context.Background(), "a middleware", func() error {
		for i := len(s.middleware) - 1; i >= 0; i-- {
			if s.chain = s.middleware[i](contained{s, s.chain}); s.chain == nil {
				return fmt.Errorf("mcp: Server.Use: middleware %d returned no Handler; return the next one if there is nothing to wrap", i)
			}
		}
		if s.Handler != nil || len(s.middleware) > 0 {
			s.chain = exactNames(s.chain)
		}
		return nil
	})
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

func (s *Server) implementation() Implementation {
	return Implementation{Name: s.Name, Title: s.Title, Version: s.Version}
}

// ServeStdio serves the process's own standard streams until the client closes them (the error is
// nil), ctx ends or Shutdown is called; then it shuts the server down, within 5 seconds. While it
// serves, os.Stdout is os.Stderr, so that a stray print cannot corrupt the stream.
//
// Specification: 2026-07-28, basic/transports/stdio.
func (s *Server) ServeStdio(ctx context.Context) error {
	conn, restore, err := stdio.Own(s.Limits.Message)
	if err != nil {
		return err
	}
	defer restore()
	who := callerOf(ctx)
	who.Alone = true
	// The end of ctx shuts the server down, and is the cause of the end of its calls.
	serving, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(errShutdown) })()
	if err = s.serve(serving, conn, who, s.tap("stdio")); errors.Is(err, ErrClosed) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, s.Shutdown(end))
}

// Serve serves one connection until the client closes it, ctx ends or Shutdown is
// called. It closes conn. The caller is the principal of ctx (auth.With), if it has one.
func (s *Server) Serve(ctx context.Context, conn jsonrpc.Conn) error {
	return s.serve(ctx, conn, callerOf(ctx), s.tap(transportOf(conn)))
}

// serve serves one connection of a caller. The tap may be nil.
func (s *Server) serve(ctx context.Context, conn jsonrpc.Conn, who engine.Caller, tap *engine.Tap) error {
	if err := s.init(); err != nil {
		conn.Close()
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v := &serving{cancel, make(chan struct{})}
	defer close(v.done)
	s.connMu.Lock()
	select {
	case <-s.stopped:
		s.connMu.Unlock()
		conn.Close()
		return ErrClosed
	default:
	}
	s.conns[v] = struct{}{}
	s.connMu.Unlock()
	defer func() {
		s.connMu.Lock()
		delete(s.conns, v)
		s.connMu.Unlock()
	}()
	d := &duplex.Server{Engine: s.eng, MaxDepth: s.limits.Depth, Concurrent: s.limits.Concurrent, Principal: who.Principal, Alone: who.Alone, Tap: tap, Logger: s.eng.Logger, Drain: s.stopped}
	err := d.Serve(ctx, conn)
	if errors.Is(err, errShutdown) {
		return ErrClosed
	}
	return err
}

// ServeHTTP serves Streamable HTTP: stateless requests of 2026-07-28 and legacy sessions, on one
// endpoint. By default a server on loopback accepts only requests addressed to loopback names, and
// none from other web origins; see [HTTPConfig].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.init(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.serveWeb(s.http, w, r)
}

// Handle answers one request through the server's middleware. Without a transport or [Client.Open]
// in front, questions and forward.Notify fail with [ErrNoCall], progress and log messages are
// dropped, and only ctx cancels the request: Shutdown waits for it. After Shutdown the error is
// [ErrClosed].
func (s *Server) Handle(ctx context.Context, req *Request) (Result, error) {
	if err := s.init(); err != nil {
		return nil, err
	}
	if req == nil {
		return nil, errNilRequest
	}
	var part *engine.Part
	if engine.From(ctx) != nil { // a bare request must not allocate, and cannot be a subscription
		part = new(engine.Part)
		part.Init(ctx, nil)
		ctx = part
	}
	if !s.direct.enter(part, req.Method) {
		return nil, s.errStopped()
	}
	defer s.direct.leave(part)
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return contained{s, s.chain}.Handle(ctx, req)
}

// serveCall is the engine's handler.
func (s *Server) serveCall(ctx context.Context, c *engine.Call) (engine.Result, error) {
	if err := s.start(ctx); err != nil {
		return engine.Result{}, err
	}
	res, err := s.chain.Handle(ctx, &Request{Method: c.Method, Params: c.Params, msg: c.Msg})
	if err != nil {
		return engine.Result{}, err
	}
	if r, ok := res.(*ToolResult); ok {
		pooled := buffer.Get()
		out := r.encode(*pooled)
		*pooled, out.Pooled = out.JSON, pooled
		return out, nil
	}
	if res == nil && c.Method == revision.NoteRootsChanged { // a notification needs no result
		return engine.Result{}, nil
	}
	return encodeResult(res), nil
}

// start runs OnStart once.
func (s *Server) start(ctx context.Context) error {
	if s.OnStart == nil || s.started.Load() {
		return nil
	}
	s.startMu.Lock()
	defer s.startMu.Unlock()
	if s.started.Load() {
		return nil
	}
	select {
	case <-s.stopped:
		return ErrClosed // OnShutdown would not be called for a server that starts now
	default:
	}
	err := s.eng.User.Run(ctx, "Server.OnStart", func() error { return s.OnStart(context.WithoutCancel(ctx)) })
	if err != nil {
		err = fmt.Errorf("start %q: %w", s.Name, err)
		s.startErr.Store(&err)
		return err
	}
	s.startErr.Store(nil)
	s.started.Store(true)
	return nil
}

// Shutdown ends serving. New requests are refused and subscriptions end; requests in progress and tasks at work may
// finish until ctx ends and are cancelled then. Requests about tasks are served over HTTP
// while a task is at work, and for two polls more, in which its caller gets the result. After the last request, Shutdown calls OnShutdown.
// It does not close listeners; they are the caller's. The same holds for requests of [Client.Open]
// and of [Server.Handle].
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.init(); err != nil {
		return err
	}
	s.connMu.Lock()
	s.stopOnce.Do(func() { close(s.stopped) })
	open := slices.Collect(maps.Keys(s.conns))
	s.connMu.Unlock()
	over := s.direct.drain(errShutdown, false)
	defer s.jobs.endWith(ctx)()
	err := s.http.Shutdown(ctx) // which waits for tasks too
	late := s.direct.wait(ctx, over)
	for _, v := range open {
		select {
		case <-v.done:
			continue
		case <-ctx.Done():
			select {
			case <-v.done:
				continue
			default:
			}
			late = true
			v.cancel(errShutdown)
		}
	}
	if late {
		for _, v := range open {
			<-v.done // Serve ends soon after its context
		}
		err = errors.Join(err, context.Cause(ctx))
	}
	err = errors.Join(err, s.jobs.close(ctx))
	if s.OnShutdown != nil && s.started.Swap(false) {
		err = errors.Join(err, s.eng.User.Run(ctx, "Server.OnShutdown", func() error { return s.OnShutdown(context.WithoutCancel(ctx)) }))
	}
	return err
}

// dispatch answers requests from the registry.
func (s *Server) dispatch(ctx context.Context, req *Request) (Result, error) {
	switch req.Method {
	case revision.MethodDiscover:
		return s.discover(), nil
	case revision.MethodTools:
		return s.listTools(ctx, req)
	case revision.MethodCall:
		return s.callTool(ctx, req)
	case revision.MethodPrompts:
		return s.listPrompts(ctx, req)
	case revision.MethodPrompt:
		return s.getPrompt(ctx, req)
	case revision.MethodResources:
		return s.listResources(ctx, req)
	case revision.MethodTemplates:
		return s.listTemplates(ctx, req)
	case revision.MethodRead:
		return s.readResource(ctx, req)
	case revision.MethodComplete:
		return s.complete(ctx, req)
	case revision.MethodListen:
		return s.listen(ctx, req)
	}
	if h := s.extension(req.Method); h != nil {
		return h(ctx, req)
	}
	if revision.OfTasks(req.Method) {
		return s.jobs.serve(ctx, req)
	}
	return nil, Errorf(jsonrpc.CodeMethodNotFound, "no method %q", text.Short(req.Method))
}

// offered is the part of a server's state that its ServerInfo depends on: while it is unchanged, so
// is the ServerInfo.
type offered struct {
	tools                         *snapshot[*toolEntry]
	prompts, resources, templates bool
}

// introduction is a server's ServerInfo with its encodings.
type introduction struct {
	of   offered
	info *ServerInfo
}

// discover returns the ServerInfo: a capability is declared when the server has, or had, a feature
// of that kind.
func (s *Server) discover() *ServerInfo {
	now := offered{s.tools.snapshot(), s.prompts.used(), s.resources.used(), s.templates.used()}
	if last := s.introduced.Load(); last != nil && last.of == now {
		return last.info
	}
	caps := Capabilities{"logging": json.RawMessage(`{}`)}
	if s.tools.used() {
		caps["tools"] = json.RawMessage(`{"listChanged":true}`)
	}
	if now.prompts {
		caps["prompts"] = json.RawMessage(`{"listChanged":true}`)
	}
	if now.resources || now.templates {
		caps["resources"] = json.RawMessage(`{"listChanged":true,"subscribe":true}`)
	}
	if now.prompts || now.templates {
		caps["completions"] = json.RawMessage(`{}`)
	}
	info := s.describe(caps)
	info.memo = engine.NewMemo(info, info.encode())
	s.introduced.Store(&introduction{now, info})
	return info
}

// visible reports whether the caller may use a feature.
func (s *Server) visible(ctx context.Context, kind Kind, name string) bool {
	return s.Visible == nil || s.Visible(ctx, Feature{kind, name})
}

var _ interface {
	Handler
	http.Handler
} = (*Server)(nil)
