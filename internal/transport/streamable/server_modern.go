package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// modern serves one message of the modern era.
func (s *Server) modern(p *posted, r *http.Request, body []byte) {
	if s.sent(p, r, body) {
		return
	}
	version, ok := s.admit(p, r)
	if !ok {
		return
	}
	defer s.stop(&p.run)
	defer p.ctx.End()
	var reply engine.Reply
	returned := false
	defer func() { // a handler may end its goroutine
		p.abrupt = !returned
		if p.ctx.Err() != nil && !p.cutShort(&reply) {
			p.end() // HTTP-26-024: nothing further is sent
			reply.Drop()
			return
		}
		if p.reply(reply.Status(), &reply) != nil { // the client has disconnected
			reply.Drop()
		}
		reply.Release()
	}()
	s.Engine.Modern(&p.ctx, p.msg, version, r.Header, modernExchange{p}, &reply)
	returned = true
}

// sent lets another process serve a request that goes on with what that process has.
func (s *Server) sent(p *posted, r *http.Request, body []byte) bool {
	here := node.From(r.Context())
	if here == nil {
		return false
	}
	name := s.Engine.Node(p.msg, s.principal(r))
	return name != "" && name != here.NodeName() && here.SendTo(name, p.w, r, body)
}

// admit checks the headers of a request and begins it. It returns false if it has refused the
// request; else a stop must follow.
func (s *Server) admit(p *posted, r *http.Request) (version string, ok bool) {
	msg := p.msg
	switch msg.Kind() {
	case jsonrpc.KindResponse: // HTTP-26-010, -011
		web.Refuse(p.w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "a client sends requests and notifications, not responses")
		return "", false
	case jsonrpc.KindNotification:
		// The core protocol has no notifications over HTTP, so there is nothing to do; headers
		// are not checked either (HTTP-26-012, Q-05).
		p.w.WriteHeader(http.StatusAccepted)
		return "", false
	}
	// A client cancels by disconnecting (HTTP-26-022), and the handler should see that as the
	// cause; the context of net/http has no cause.
	p.begin(r.Context(), ErrDisconnected)
	p.ctx.Caused(s.Recorder.Conn(r.Context()), msg.ID)
	p.endless, p.ofTask = msg.Method == revision.MethodListen, revision.OfTasks(msg.Method)
	p.last = p.endless && ends(r)
	p.quiet.Store(&p.response)
	version, refusal := s.Engine.Peer(&p.ctx, msg, s.principal(r))
	if refusal != nil {
		p.reply(http.StatusBadRequest, refusal)
		return "", false
	}
	fault := checkHeaders(r.Header, msg, version)
	if fault == nil && s.CheckHeaders != nil {
		fault = s.CheckHeaders(msg, r.Header)
	}
	if fault != nil {
		p.reply(http.StatusBadRequest, &engine.Reply{ID: msg.ID, Err: fault})
		return "", false
	}
	if p.endless && p.noEvents != nil {
		fault := &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: p.refuseEvents().Error()}
		p.reply(http.StatusInternalServerError, &engine.Reply{ID: msg.ID, Err: fault})
		return "", false
	}
	if !s.start(&p.run) {
		s.unavailable(p.w, msg.ID)
		return "", false
	}
	return version, true
}

// cutShort sets the reply to a request whose context has ended. It returns false if the client
// has disconnected.
func (w *work) cutShort(reply *engine.Reply) bool {
	switch cause := context.Cause(&w.ctx); {
	case cause == ErrDisconnected:
		return false
	case w.endless && reply.Err != nil && !reply.Refused && cause == ErrShutdown:
		*reply = completed(reply.ID)
	}
	return true
}

// completed returns the answer that ends a subscription in order (basic/patterns/subscriptions,
// Graceful Closure; Q-01).
func completed(id jsonrpc.ID) engine.Reply {
	tag := id.AppendJSON([]byte(`{"resultType":"complete","_meta":{"` + engine.MetaSubscription + `":`))
	return engine.Reply{ID: id, Result: append(tag, '}', '}')}
}

// modernExchange is the engine.Exchange of a modern request.
type modernExchange struct{ *posted }

var errNoRequests = errors.New("a server of 2026-07-28 does not send requests")

// Request fails: questions travel in the result (HTTP-26-017).
func (modernExchange) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errNoRequests
}
