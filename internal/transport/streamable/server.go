package streamable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/store"
)

// Causes of the end of a handler's context.
var (
	ErrDisconnected = errors.New("the client closed the connection")
	ErrCancelled    = errors.New("the client cancelled the call")
	ErrSessionEnded = errors.New("the session was ended")
	ErrShutdown     = engine.ErrShutdown
)

// Server serves both eras on one endpoint. Its fields are set before use and not changed
// afterwards. A middleware in front of it authenticates callers.
//
// A write to a client may take 30 seconds, except for a single answer of at most 2 KiB, which the
// http.Server writes (WriteTimeout). The http.Server bounds the time for the header of a request
// (ReadHeaderTimeout), and [web.ReadBody] the time for its body.
type Server struct {
	Engine *engine.Engine

	// AllowedHosts and AllowedOrigins are as in [web.Guard].
	AllowedHosts, AllowedOrigins []string

	MaxBody  int64 // bytes of a request; more is answered with 413
	MaxDepth int   // of JSON

	// SessionIdle is the time after which a legacy session without a request, a running call or
	// an open stream ends. Zero means no limit.
	SessionIdle time.Duration

	// MaxSessions bounds the legacy sessions, of which one principal has at most a quarter
	// ([web.Places]). A further one replaces the caller's longest idle session in which only
	// reads have happened; if there is none, the request is answered with 503. Zero means no
	// bound.
	MaxSessions int

	// Concurrent bounds the calls in progress in one legacy session, which go on when their
	// connections break, and likewise the questions to its client. A further call is answered
	// with 429. Zero means no bound.
	Concurrent int

	// KeepAlive is the time after which a quiet event stream gets a comment. A call without an
	// answer becomes an event stream within this time, so that proxies do not give it up. Zero or
	// less means never.
	KeepAlive time.Duration

	// Stateless serves legacy clients without sessions.
	Stateless bool

	// Events keeps the messages of legacy calls for clients that resume a stream; it must be set
	// if a revision with sessions is served. Retry is the time after which they may resume.
	Events store.Events
	Retry  time.Duration

	// Sessions keeps legacy sessions for another process that continues them. It may be nil.
	Sessions store.Sessions

	// Principal returns the authenticated caller of a request, or "". If nil, no caller is
	// authenticated.
	Principal func(*http.Request) string

	// CheckHeaders checks more headers of a modern request, after those of the
	// protocol and before a handler runs. It may be nil.
	CheckHeaders func(msg *jsonrpc.Message, h http.Header) *jsonrpc.Error

	// Recorder records the exchanges. It may be nil.
	Recorder *web.Recorder

	Logger *slog.Logger

	pacer    web.Pacer
	places   web.Places   // of sessions
	buffered sync.Once    // guards the log line about middleware that buffers event streams
	names    atomic.Int64 // of connections, for the log

	restoring onePerID // sessions of other processes

	mu       sync.Mutex
	down     bool          // Shutdown was called; guarded by mu
	running  *run          // the newest run, which links to the others; guarded by mu
	holds    int           // tasks at work; guarded by mu
	drained  chan struct{} // closed when the last run and the last task end after Shutdown; guarded by mu
	sessions sessionTable  // guarded by mu
	watcher  watcher       // guarded by mu
}

// run is the entry of one exchange in the server's list of running exchanges, which Shutdown ends.
// An exchange is a request whose handler is running (work) or an open GET stream (listener); each
// embeds its run.
type run struct {
	of      interface{ Cancel(cause error) } // the exchange
	endless bool                             // it waits for events and does not end by itself
	ofTask  bool                             // it is about a task, and may start after Shutdown while one is at work
	since   uint32                           // looks of the watcher when it started; guarded by mu of the server
	quiet   atomic.Pointer[response]         // of a call, which stayOpen may open; nil: of no call

	older, newer *run // guarded by mu of the server
}

// work is a run of a handler for a request, with the handler's context. Goroutines that the
// handler left behind may still refer to it.
type work struct {
	run
	id  jsonrpc.ID
	msg *jsonrpc.Message // has id; may be used for another request after this one
	ctx engine.Context
}

// begin makes the context a child of parent; gone is as in [engine.Context.Init].
func (w *work) begin(parent context.Context, gone error) {
	w.of = &w.ctx
	w.ctx.Init(parent, gone)
}

// start registers a run. It returns false if the server is shutting down. Each start that
// returned true is followed by a stop.
func (s *Server) start(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startLocked(r)
}

func (s *Server) startLocked(r *run) bool {
	if s.down && !(r.ofTask && s.holds > 0) {
		return false
	}
	if r.older = s.running; r.older != nil {
		r.older.newer = r
	}
	s.running = r
	s.watchLocked(r)
	return true
}

func (s *Server) stop(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopLocked(r)
}

func (s *Server) stopLocked(r *run) {
	if r.older != nil {
		r.older.newer = r.newer
	}
	if r.newer != nil {
		r.newer.older = r.older
	} else {
		s.running = r.older
	}
	r.older, r.newer = nil, nil // goroutines of a handler may still refer to r
	s.drainLocked()
}

// drainLocked closes drained when nothing is left after Shutdown. Nothing starts from then on.
func (s *Server) drainLocked() {
	if s.down && s.running == nil && s.holds == 0 {
		close(s.drained)
	}
}

// Hold makes Shutdown wait for a task as it does for a call, until release is called. It returns nil if there is nothing left for
// which Shutdown waits.
func (s *Server) Hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down && s.running == nil && s.holds == 0 {
		return nil
	}
	s.holds++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.holds--
		s.drainLocked()
	}
}

// ServeHTTP serves one request of either era.
//
// The order of the checks is that of 2026-07-28: Host and Origin, content type and size,
// parsing, and then the checks of the era.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Recorder != nil {
		var end func()
		w, r, end = s.Recorder.Record(w, r)
		defer end()
	}
	pace := s.pacer.Begin(w, r)
	defer pace.End()
	guard := web.Guard{AllowedHosts: s.AllowedHosts, AllowedOrigins: s.AllowedOrigins}
	if !guard.Admit(w, r, "GET, POST, DELETE") {
		return
	}
	switch {
	case r.Method == http.MethodPost:
		s.post(w, r, pace)
	case r.Method == http.MethodGet && s.sessionful() && header(r.Header, headerSession) != "":
		s.get(w, r)
	case r.Method == http.MethodDelete && s.sessionful() && header(r.Header, headerSession) != "":
		s.delete(w, r)
	default:
		allow := "POST"
		if s.sessionful() {
			allow = "POST, GET, DELETE"
		}
		w.Header().Set("Allow", allow)
		text := r.Method + " is not served here; send messages by POST"
		if allow != "POST" && (r.Method == http.MethodGet || r.Method == http.MethodDelete) {
			text = r.Method + " needs the Mcp-Session-Id of a session that initialize opened"
		}
		web.Refuse(w, http.StatusMethodNotAllowed, jsonrpc.CodeInvalidRequest, text)
	}
}

// legacy reports whether any revision with sessions is served.
func (s *Server) legacy() bool { return revision.Latest(s.Engine.Revisions, true) != nil }

// sessionful reports whether a session can be opened.
func (s *Server) sessionful() bool { return s.legacy() && !s.Stateless }

func (s *Server) principal(r *http.Request) string {
	if s.Principal == nil {
		return ""
	}
	return s.Principal(r)
}

func (s *Server) limits() jsonrpc.Limits { return jsonrpc.Limits{MaxDepth: s.MaxDepth} }

// post reads a POST and passes it to its era.
func (s *Server) post(w http.ResponseWriter, r *http.Request, pace *web.Pace) {
	in := incomings.Get().(*incoming)
	kept := false // beyond the exchange
	switch p, kind, version := s.receive(in, w, r, pace); {
	case s.Sessions != nil && kind != ofNothing && node.ReadsOnly(r.Context()) && !reads(kind, &in.msg):
		w.Header().Set("Retry-After", "1")
		web.RefuseID(w, http.StatusServiceUnavailable, answerable(p.msg), &jsonrpc.Error{Code: jsonrpc.CodeInternal,
			Message: "this node is cut off from the others, one of which may have the session: only lists and reads are answered; try again"})
	case kind == ofModern:
		s.modern(p, r, in.body)
	case kind == ofLegacy:
		kept = s.legacyPost(p, r, version)
	case kind == ofBatch:
		kept = true
		s.batch(&p.response, r, in.body, version)
	}
	if !kept {
		in.free()
	}
}

// reads reports whether a POST of a session is a request that only reads.
func reads(kind posting, msg *jsonrpc.Message) bool {
	return kind == ofLegacy && msg.Kind() == jsonrpc.KindRequest && msg.Method != revision.MethodInitialize && revision.Reads(msg.Method)
}

// incoming is a body and its message. They have the same lifetime: the values of the message are
// slices of the body.
type incoming struct {
	body []byte
	msg  jsonrpc.Message
}

var incomings = sync.Pool{New: func() any { return new(incoming) }}

func (in *incoming) free() {
	*in = incoming{body: buffer.Small(in.body)}
	incomings.Put(in)
}

// The kinds of POST.
type posting int

const (
	ofNothing posting = iota // nothing to serve; it was answered
	ofModern
	ofLegacy
	ofBatch
)

// receive reads a POST. It is a function of its own so that its large frame is not on the stack
// while a handler runs.
func (s *Server) receive(in *incoming, w http.ResponseWriter, r *http.Request, pace *web.Pace) (p *posted, kind posting, version string) {
	if !web.IsJSON(r.Header) {
		web.Refuse(w, http.StatusUnsupportedMediaType, jsonrpc.CodeInvalidRequest, "Content-Type must be application/json, sent once, and the body not compressed")
		return nil, ofNothing, ""
	}
	asJSON, asEvents := web.Accepts(r.Header)
	if !asJSON && !asEvents {
		web.Refuse(w, http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest, "Accept must list "+web.AcceptBoth)
		return nil, ofNothing, ""
	}
	body, err := web.ReadBody(in.body, w, r, pace, s.MaxBody)
	in.body = body
	switch {
	case err == web.ErrTooLarge:
		web.Refuse(w, http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the body is over the limit of %d bytes (Limits.Message)", s.MaxBody))
		return nil, ofNothing, ""
	case err == web.ErrSlow:
		web.Refuse(w, http.StatusRequestTimeout, jsonrpc.CodeInvalidRequest, web.TooSlow)
		return nil, ofNothing, ""
	case err != nil:
		web.Refuse(w, http.StatusBadRequest, jsonrpc.CodeParse, "the body broke off")
		return nil, ofNothing, ""
	}
	p = &posted{work: work{msg: &in.msg}, response: response{server: s, w: w, client: r.Context(), noJSON: !asJSON, noEvents: checkEvents(w, asEvents)}}
	version = trim(header(r.Header, headerVersion))
	named := revision.Find(s.Engine.Revisions, version)
	modern := named != nil && !named.Sessions
	if jsonrpc.IsBatch(body) {
		if modern {
			web.Refuse(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "a body is one message; revision "+version+" has no batches")
			return nil, ofNothing, ""
		}
		return p, ofBatch, version
	}
	if in.msg, err = jsonrpc.Decode(body, s.limits()); err != nil {
		var bad *jsonrpc.DecodeError
		if errors.As(err, &bad) {
			id := bad.ID
			if bad.Response {
				id = jsonrpc.ID{}
			}
			web.RefuseID(w, http.StatusBadRequest, id, bad.Err)
		}
		return nil, ofNothing, ""
	}
	msg := p.msg
	p.id = msg.ID
	opening := msg.Method == revision.MethodInitialize && !engine.IsModern(msg)
	if opening || !modern && !engine.IsModern(msg) {
		return p, ofLegacy, version
	}
	if !asJSON || !asEvents {
		web.RefuseID(w, http.StatusNotAcceptable, answerable(msg), &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Accept must list " + web.AcceptBoth})
		return nil, ofNothing, ""
	}
	return p, ofModern, version
}

// answerable returns the id for the answer to a refused message: that of a request.
func answerable(msg *jsonrpc.Message) jsonrpc.ID {
	if msg.Kind() == jsonrpc.KindRequest {
		return msg.ID
	}
	return jsonrpc.ID{}
}

func (s *Server) unavailable(w http.ResponseWriter, id jsonrpc.ID) {
	w.Header().Set("Retry-After", "5")
	web.RefuseID(w, http.StatusServiceUnavailable, id, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: ErrShutdown.Error()})
}

// shutdownGrace bounds how long Shutdown waits for handlers that it cancelled.
const shutdownGrace = 5 * time.Second

// Shutdown ends the service: it refuses new requests with 503, ends the streams that only wait
// for events (a modern one gets its completion result), waits for the running calls and tasks, and ends all
// sessions. Requests about tasks are served while one is at work. If ctx ends first, it cancels the remaining calls and waits at most 5 seconds more.
// It does not close connections; the http.Server does.
//
// Meanwhile it accepts answers from clients to questions of running calls.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.down {
		s.down = true
		s.drained = make(chan struct{})
		s.drainLocked()
	}
	drained := s.drained
	s.mu.Unlock()

	s.cancelRuns(true)
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		s.cancelRuns(false)
		err = waitFor(drained, "handlers")
	}
	ended := make(chan struct{})
	go func() { // ends with the handlers of the sessions' listens
		defer close(ended)
		for _, sess := range s.takeSessions() {
			sess.end(ErrShutdown)
		}
	}()
	if e := waitFor(ended, "sessions"); err == nil {
		err = e
	}
	return err
}

// cancelRuns ends the runs; if onlyEndless is set, only those that do not end by themselves.
func (s *Server) cancelRuns(onlyEndless bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := s.running; r != nil; r = r.older {
		if r.endless || !onlyEndless {
			r.of.Cancel(ErrShutdown)
		}
	}
}

func waitFor(done <-chan struct{}, what string) error {
	t := time.NewTimer(shutdownGrace)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
		return fmt.Errorf("shutdown: %s did not end within %v of being cancelled", what, shutdownGrace)
	}
}
