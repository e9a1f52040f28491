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

// legacyPost serves one message without evidence of the modern era.
func (s *Server) legacyPost(p *response, r *http.Request, msg *jsonrpc.Message, body []byte, version string) {
	if msg.Method == revision.MethodInitialize && msg.Kind() == jsonrpc.KindRequest && r.Header.Get(headerSession) == "" {
		s.initialize(p, r, msg, body)
		return
	}
	sess := s.session(p.w, r, answerable(msg), version)
	if sess == nil {
		return
	}
	defer s.done(sess)
	if p.tap = s.tap(sess.name); p.tap != nil {
		p.tap(false, body)
	}
	switch msg.Kind() {
	case jsonrpc.KindNotification: // SHTTP-25-009
		sess.note(msg)
		p.w.WriteHeader(http.StatusAccepted)
	case jsonrpc.KindResponse:
		sess.answer(msg)
		p.w.WriteHeader(http.StatusAccepted)
	default:
		s.call(p, r, sess, msg)
	}
}

// session finds the session of a request and checks its version header
// (SHTTP-25-037, -038, -044). It answers itself, and returns nil, if there is none.
func (s *Server) session(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, version string) *session {
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

// initialize opens a session.
func (s *Server) initialize(p *response, r *http.Request, msg *jsonrpc.Message, body []byte) {
	at := &run{}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	at.cancel = cancel
	if !s.start(at) {
		s.unavailable(p.w, msg.ID)
		return
	}
	defer s.stop(at)
	defer cancel(nil)
	if wait, ok := s.reserve(); !ok {
		p.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
		web.RefuseID(p.w, http.StatusServiceUnavailable, msg.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal,
			Message: "there are " + strconv.Itoa(s.MaxSessions) + " sessions, the most that this server allows (HTTPConfig.MaxSessions)"})
		return
	}
	principal := s.principal(r)
	es, reply := s.Engine.Initialize(ctx, msg, principal, r.Header)
	if es == nil {
		s.unreserve()
		p.reply(reply.Status(), &reply)
		return
	}
	sess := s.add(es, principal)
	if p.tap = s.tap(sess.name); p.tap != nil {
		p.tap(false, body)
	}
	p.w.Header().Set(headerSession, sess.id)
	err := p.reply(http.StatusOK, &reply)
	s.done(sess)
	if err != nil && s.remove(sess) { // nobody knows the id
		sess.end(ErrDisconnected)
	}
}

// call serves one request of a session. It goes on when the connection breaks
// (SHTTP-25-020).
func (s *Server) call(p *response, r *http.Request, sess *session, msg *jsonrpc.Message) {
	reply, ok := s.run(p, r, sess, msg)
	switch {
	case errors.Is(reply.fault, ErrShutdown):
		s.unavailable(p.w, msg.ID)
	case errors.Is(reply.fault, ErrSessionEnded): // just now
		web.RefuseID(p.w, http.StatusNotFound, msg.ID, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: reply.fault.Error()})
	case reply.fault != nil:
		web.RefuseID(p.w, http.StatusBadRequest, msg.ID, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: reply.fault.Error()})
	case !ok:
		p.finish(http.StatusOK, false) // cancelled: an empty stream
	default:
		// An error says that the connection is gone, and the answer with it.
		p.reply(http.StatusOK, &reply.Reply)
	}
}

// outcome is what became of a request of a session.
type outcome struct {
	engine.Reply
	fault error // why it was not begun
}

// run runs one request of a session; false if the client cancelled it and wants
// no answer.
func (s *Server) run(p *response, r *http.Request, sess *session, msg *jsonrpc.Message) (outcome, bool) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	at := &run{cancel: cancel}
	if !s.start(at) {
		return outcome{fault: ErrShutdown}, false
	}
	defer s.stop(at)
	if err := sess.begin(msg.ID, cancel); err != nil {
		return outcome{fault: err}, false
	}
	reply := s.Engine.Legacy(ctx, sess.Session, msg, r.Header, &legacyExchange{p, sess})
	sess.over(msg.ID)
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), ErrCancelled) {
		return outcome{}, false
	}
	return outcome{Reply: reply}, true
}

// legacyExchange is the engine's way to what a legacy call may send.
type legacyExchange struct {
	*response
	session *session
}

func (x *legacyExchange) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return x.session.ask(ctx, x.response, method, params)
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
