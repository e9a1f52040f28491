package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// legacyPost serves one message without evidence of the modern era. It tells whether the
// message is still used.
func (s *Server) legacyPost(p *response, r *http.Request, msg *jsonrpc.Message, version string) (kept bool) {
	if msg.Method == revision.MethodInitialize && msg.Kind() == jsonrpc.KindRequest && (s.Stateless || r.Header.Get(headerSession) == "") {
		s.initialize(p, r, msg)
		return false
	}
	sess := s.session(p.w, r, answerable(msg), version)
	if sess == nil {
		return false
	}
	defer s.done(sess)
	switch msg.Kind() {
	case jsonrpc.KindNotification: // SHTTP-25-009
		sess.note(msg, s.Logger)
		p.w.WriteHeader(http.StatusAccepted)
	case jsonrpc.KindResponse:
		sess.answer(msg)
		p.w.WriteHeader(http.StatusAccepted)
	default:
		return s.call(p, r, sess, msg)
	}
	return false
}

// session finds the session of a request and checks its version header
// (SHTTP-25-037, -038, -044). It answers itself, and returns nil, if there is none.
func (s *Server) session(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, version string) *session {
	if s.Stateless && s.legacy() {
		return s.loose(w, r, id, version)
	}
	key := r.Header.Get(headerSession)
	if key == "" || !s.legacy() {
		var e *jsonrpc.Error
		switch {
		case version == "":
			e = mismatch("MCP-Protocol-Version is missing; send it with the matching _meta, or call initialize first and send its Mcp-Session-Id")
		case revision.Find(s.Engine.Revisions, version) == nil:
			e = s.unsupported(version)
		default:
			e = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Mcp-Session-Id is missing; call initialize first and send the id of its answer"}
		}
		web.RefuseID(w, http.StatusBadRequest, id, e)
		return nil
	}
	sess := s.use(key, s.principal(r))
	if sess == nil {
		web.RefuseID(w, http.StatusNotFound, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "there is no such session (any more); call initialize again, without Mcp-Session-Id"})
		return nil
	}
	// Another legacy revision is let pass, though a client should name the one agreed
	// on (SHTTP-25-042): that one is spoken anyway, and clients that always send the
	// oldest exist.
	if t := revision.Find(s.Engine.Revisions, version); version != "" && (t == nil || t.Modern) {
		s.done(sess)
		web.RefuseID(w, http.StatusBadRequest, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "MCP-Protocol-Version is not " + sess.Peer.Revision.Name + ", which initialize agreed on"})
		return nil
	}
	return sess
}

// loose makes a session for one message of a server without sessions. Without a header
// the revision is 2025-03-26 (SHTTP-25-043).
func (s *Server) loose(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, version string) *session {
	if version == "" {
		version = "2025-03-26"
	}
	t := revision.Find(s.Engine.Revisions, version)
	if t == nil || t.Modern { // a modern message names its version itself
		web.RefuseID(w, http.StatusBadRequest, id, s.unsupported(version))
		return nil
	}
	name := "request-" + strconv.FormatInt(s.names.Add(1), 10)
	return &session{Session: s.Engine.Loose(t, s.principal(r)), name: name, users: 1, ended: true}
}

// initialize opens a session, if the server has any.
func (s *Server) initialize(p *response, r *http.Request, msg *jsonrpc.Message) {
	ctx := new(engine.Context)
	ctx.Init(r.Context(), engine.ErrNever)
	if !s.start(ctx, false) {
		s.unavailable(p.w, msg.ID)
		return
	}
	defer s.stop(ctx)
	defer ctx.Cancel(nil)
	principal := s.principal(r)
	if s.Stateless {
		reply := s.Engine.Introduce(ctx, msg, engine.Caller{Principal: principal}, r.Header)
		p.reply(reply.Status(), &reply)
		return
	}
	if wait, ok := s.reserve(); !ok {
		p.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
		web.RefuseID(p.w, http.StatusServiceUnavailable, msg.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal,
			Message: "there are " + strconv.Itoa(s.MaxSessions) + " sessions, the most that this server allows (HTTPConfig.MaxSessions)"})
		return
	}
	es, reply := s.Engine.Initialize(ctx, msg, engine.Caller{Principal: principal}, r.Header)
	if es == nil {
		s.unreserve()
		p.reply(reply.Status(), &reply)
		return
	}
	sess := s.add(es, principal)
	if s.Recorder != nil {
		s.Recorder.Session(sess.id, es.Peer)
	}
	p.w.Header().Set(headerSession, sess.id)
	err := p.reply(http.StatusOK, &reply)
	s.done(sess)
	if err != nil && s.remove(sess) { // nobody knows the id
		sess.end(ErrDisconnected)
	}
}

// call serves one request of a session. It goes on when the connection breaks
// (SHTTP-25-020). It tells whether the call is still at work.
func (s *Server) call(p *response, r *http.Request, sess *session, msg *jsonrpc.Message) (goesOn bool) {
	st := s.newStream(p, sess, true)
	if !st.primes || msg.Method != revision.MethodCall || p.detachable(r) {
		s.answer(st, r, sess, msg)
		return false
	}
	// The handler may let go of the connection while it works.
	gone, done := make(chan struct{}), make(chan struct{})
	p.left = func() { close(gone) }
	s.keep(sess)
	go func() { // it ends with the call, which Shutdown waits for
		defer close(done)
		defer s.done(sess)
		s.answer(st, r, sess, msg)
	}()
	select {
	case <-done:
		return false
	case <-gone:
		if st.isDone() {
			<-done
			return false
		}
	case <-r.Context().Done():
		st.leave(p)
	}
	return true
}

// answer runs a request and answers it on its stream.
func (s *Server) answer(st *stream, r *http.Request, sess *session, msg *jsonrpc.Message) {
	reply, ok := s.run(r, sess, msg, &legacyExchange{session: sess, out: st, stream: st})
	switch {
	case errors.Is(reply.fault, ErrShutdown):
		st.refuse(func(w http.ResponseWriter) { s.unavailable(w, msg.ID) })
	case reply.fault != nil:
		status := http.StatusBadRequest
		if errors.Is(reply.fault, ErrSessionEnded) { // just now
			status = http.StatusNotFound
		}
		st.refuse(func(w http.ResponseWriter) {
			web.RefuseID(w, status, msg.ID, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: reply.fault.Error()})
		})
	case !ok: // cancelled
		st.finish(nil)
	default:
		st.finish(&reply.Reply)
	}
}

// outcome is what became of a request of a session.
type outcome struct {
	engine.Reply
	fault error // why it was not begun
}

// run runs one request of a session; false if the client cancelled it and wants
// no answer.
func (s *Server) run(r *http.Request, sess *session, msg *jsonrpc.Message, x *legacyExchange) (outcome, bool) {
	x.ctx.Init(r.Context(), engine.ErrNever)
	defer x.ctx.Cancel(nil)
	if !s.start(&x.ctx, false) {
		return outcome{fault: ErrShutdown}, false
	}
	defer s.stop(&x.ctx)
	if err := sess.begin(msg.ID, &x.ctx); err != nil {
		return outcome{fault: err}, false
	}
	reply := s.Engine.Legacy(&x.ctx, sess.Session, msg, r.Header, x)
	sess.over(msg.ID)
	if x.ctx.Err() != nil && errors.Is(context.Cause(&x.ctx), ErrCancelled) {
		return outcome{}, false
	}
	return outcome{Reply: reply}, true
}

// legacyExchange is one call at work, and the engine's way to what it may send.
type legacyExchange struct {
	ctx     engine.Context
	session *session
	out     sender
	stream  *stream // nil for a call of a batch
}

// sender is where the messages of a call go.
type sender interface{ send(frame []byte) error }

// Notify sends a notification. A client that takes no event stream does without.
func (x *legacyExchange) Notify(method string, params json.RawMessage) error {
	if err := x.out.send(jsonrpc.AppendNotification(nil, method, params)); err != errNoEvents {
		return err
	}
	return nil
}

func (x *legacyExchange) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return x.session.ask(ctx, x.out.send, method, params)
}

// Release lets go of the connection of the call.
func (x *legacyExchange) Release() {
	if x.stream != nil {
		x.stream.release()
	}
}

// delete ends a session (SHTTP-25-038).
func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	sess := s.session(w, r, jsonrpc.ID{}, r.Header.Get(headerVersion))
	if sess == nil {
		return
	}
	defer s.done(sess)
	if s.remove(sess) {
		sess.end(ErrSessionEnded)
	}
	w.WriteHeader(http.StatusNoContent)
}
