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
	"github.com/patchbay-dev/patchbay/internal/stack"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/store"
)

// legacyPost serves one message without evidence of the modern era. It reports whether the
// message is still in use.
func (s *Server) legacyPost(p *posted, r *http.Request, version string) (kept bool) {
	msg := p.msg
	if msg.Method == revision.MethodInitialize && msg.Kind() == jsonrpc.KindRequest && (s.Stateless || header(r.Header, headerSession) == "") {
		s.initialize(p, r)
		return false
	}
	if msg.Kind() == jsonrpc.KindRequest {
		return s.call(p, r, version)
	}
	sess := s.session(p.w, r, jsonrpc.ID{}, version, nil)
	if sess == nil {
		return false
	}
	defer s.done(sess, nil)
	if !sess.take(msg, s) { // SHTTP-25-009
		s.pass(r.Context(), sess, msg)
	}
	p.w.WriteHeader(http.StatusAccepted)
	return false
}

// session finds the session of a request and checks its version header (SHTTP-25-037, -038,
// -044). If there is none, it answers the request and returns nil. The session is in use until
// done is called, and so is the run at, if not nil.
func (s *Server) session(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, version string, at *run) *session {
	if s.Stateless && s.legacy() {
		return s.loose(w, r, id, version, at)
	}
	key := header(r.Header, headerSession)
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
	principal := s.principal(r)
	sess, err := s.use(key, principal, at)
	if sess == nil && err == nil && s.Sessions != nil {
		if err = s.restore(r, key, principal); err == nil {
			sess, err = s.use(key, principal, at)
		}
	}
	switch {
	case errors.Is(err, ErrShutdown):
		s.unavailable(w, id)
		return nil
	case err != nil:
		w.Header().Set("Retry-After", "5")
		web.RefuseID(w, http.StatusServiceUnavailable, id, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()})
		return nil
	case sess == nil:
		web.RefuseID(w, http.StatusNotFound, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the session does not exist or has ended; call initialize again, without Mcp-Session-Id"})
		return nil
	}
	// Another legacy revision is accepted, although a client should send the negotiated one
	// (SHTTP-25-042): the negotiated one is used anyway, and some clients always send the oldest.
	if t := revision.Find(s.Engine.Revisions, version); version != "" && (t == nil || !t.Sessions) {
		s.done(sess, at)
		web.RefuseID(w, http.StatusBadRequest, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "MCP-Protocol-Version is not " + sess.Peer.Revision.Name + ", which initialize agreed on"})
		return nil
	}
	return sess
}

// loose makes a session for one message, for a server without sessions. Without a header the
// revision is 2025-03-26 (SHTTP-25-043).
func (s *Server) loose(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, version string, at *run) *session {
	if version == "" {
		version = "2025-03-26"
	}
	t := revision.Find(s.Engine.Revisions, version)
	if t == nil || !t.Sessions { // a modern message names its version itself
		web.RefuseID(w, http.StatusBadRequest, id, s.unsupported(version))
		return nil
	}
	if at != nil && !s.start(at) {
		s.unavailable(w, id)
		return nil
	}
	name := "request-" + strconv.FormatInt(s.names.Add(1), 10)
	return &session{Session: s.Engine.Loose(t, s.principal(r)), name: name, users: 1, ended: true}
}

// initialize opens a session, if the server has any.
func (s *Server) initialize(p *posted, r *http.Request) {
	msg, ctx := p.msg, &p.ctx
	p.begin(r.Context(), engine.ErrNever)
	p.ctx.Caused(s.Recorder.Conn(r.Context()), p.msg.ID)
	if !s.start(&p.run) {
		s.unavailable(p.w, msg.ID)
		return
	}
	defer s.stop(&p.run)
	defer ctx.End()
	principal := s.principal(r)
	if s.Stateless {
		reply := s.Engine.Introduce(ctx, msg, engine.Caller{Principal: principal}, r.Header)
		p.reply(reply.Status(), &reply)
		return
	}
	if wait, err := s.reserve(principal); err != nil {
		p.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
		web.RefuseID(p.w, http.StatusServiceUnavailable, msg.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()})
		return
	}
	s.open(p, r, principal)
}

// open opens a session on a reserved place and answers.
func (s *Server) open(p *posted, r *http.Request, principal string) {
	var sess *session
	var unkept error
	reply, returned := engine.Failed(p.msg.ID), false
	defer func() { // a handler may end its goroutine
		p.abrupt = !returned
		switch {
		case sess == nil:
			s.places.Leave(principal)
			p.reply(reply.Status(), &reply)
			return
		case unkept != nil:
			s.remove(sess)
			go sess.finish(ErrDisconnected) // the store that has not answered may not do so now
			s.Logger.Warn("a session was not opened, because it was not kept", "err", unkept)
			p.w.Header().Set("Retry-After", "5")
			said := errStore
			if errors.Is(unkept, store.ErrNoRoom) {
				said = unkept
			}
			web.RefuseID(p.w, http.StatusServiceUnavailable, p.msg.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: said.Error()})
			return
		}
		p.w.Header().Set(headerSession, sess.id)
		err := p.reply(http.StatusOK, &reply)
		s.done(sess, nil)
		if err != nil && s.remove(sess) { // the client does not know the id
			sess.finish(ErrDisconnected)
		}
	}()
	es, answer := s.Engine.Initialize(&p.ctx, p.msg, engine.Caller{Principal: principal}, r.Header)
	if reply = answer; es != nil {
		sess = s.add(es, principal)
		if s.Recorder != nil {
			s.Recorder.Session(sess.id, es.Peer)
		}
		if sess.keeper != nil {
			unkept = sess.keeper.put(r.Context(), sess)
		}
		if unkept == nil {
			s.Engine.Opened(es)
		}
	}
	returned = true
}

// call serves one request of a session. The request goes on when the connection breaks
// (SHTTP-25-020). It reports whether the call is still running.
func (s *Server) call(p *posted, r *http.Request, version string) (goesOn bool) {
	p.begin(r.Context(), engine.ErrNever)
	p.ctx.Caused(s.Recorder.Conn(r.Context()), p.msg.ID)
	p.ofTask = revision.OfTasks(p.msg.Method)
	sess := s.session(p.w, r, p.msg.ID, version, &p.run)
	if sess == nil {
		return false
	}
	st := s.newStream(&p.response, sess, true)
	st.call = p.msg.ID
	p.stream = st
	p.quiet.Store(&p.response)
	if !st.primes || p.msg.Method != revision.MethodCall || p.detachable(r) {
		s.answer(st, p, r)
		return false
	}
	// The handler may release the connection while it runs.
	gone, done := make(chan struct{}), make(chan struct{})
	p.left = func() { close(gone) }
	go func() { // ends with the call, for which Shutdown waits
		defer close(done)
		stack.Grow()
		s.answer(st, p, r)
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
		st.leave(&p.response)
	}
	return true
}

// answer runs a request whose stream is registered, and writes its response to the stream.
func (s *Server) answer(st *stream, p *posted, r *http.Request) {
	defer s.done(st.session, &p.run)
	var reply engine.Reply
	err := s.run(&p.work, r, st.session, st, &reply, func(wanted, returned bool) {
		p.abrupt = !returned
		if wanted {
			st.finish(&reply)
		} else { // cancelled
			st.finish(nil)
		}
	})
	if err != nil {
		st.refuse(p.msg.ID, err)
	}
}

// run runs one request of a session and calls done when the reply is there; wanted is false if
// the client cancelled the request, returned is false if the handler has ended the goroutine. The
// error is the reason why the request was not begun.
func (s *Server) run(w *work, r *http.Request, sess *session, ex engine.Exchange, reply *engine.Reply, done func(wanted, returned bool)) error {
	if err := sess.begin(w); err != nil {
		w.ctx.End()
		return err
	}
	returned := false
	defer func() {
		sess.over(w)
		wanted := true
		if w.ctx.Err() != nil {
			cause := context.Cause(&w.ctx)
			wanted = !errors.Is(cause, ErrCancelled)
			if !wanted || errors.Is(cause, ErrSessionEnded) {
				reply.Drop() // a client that lost its connection may still ask for its task, but not in these cases
			}
		}
		w.ctx.End()
		done(wanted, returned)
	}()
	s.Engine.Legacy(&w.ctx, sess.Session, w.msg, r.Header, ex, reply)
	returned = true
	return nil
}

// Notify sends a notification of the call that the stream belongs to. If there cannot be an event
// stream, it is dropped.
func (st *stream) Notify(method string, params json.RawMessage) error {
	return orWithout(st.send(jsonrpc.AppendNotification(nil, method, params)))
}

// Request asks the client on the stream of a call.
func (st *stream) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return st.session.ask(ctx, st.send, method, params)
}

// delete ends a session (SHTTP-25-038).
func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	sess := s.session(w, r, jsonrpc.ID{}, header(r.Header, headerVersion), nil)
	if sess == nil {
		return
	}
	defer s.done(sess, nil)
	if s.remove(sess) {
		sess.finish(ErrSessionEnded)
	}
	w.WriteHeader(http.StatusNoContent)
}
