package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// modern serves one message of the modern era.
func (s *Server) modern(p *response, r *http.Request, msg *jsonrpc.Message) {
	x, version := s.admit(p, r, msg)
	if x == nil {
		return
	}
	defer s.stop(&x.ctx)
	defer x.ctx.Cancel(nil)
	reply := s.Engine.Modern(&x.ctx, msg, version, r.Header, x)
	if x.ctx.Err() != nil && !x.cutShort(&reply) {
		p.end() // HTTP-26-024: nothing further is sent
		return
	}
	p.reply(reply.Status(), &reply) // an error means that the client is gone
	reply.Release()
}

// admit begins a request whose headers are as they have to be. It returns nil if it has
// answered; else a stop follows.
func (s *Server) admit(p *response, r *http.Request, msg *jsonrpc.Message) (x *modernExchange, version string) {
	switch msg.Kind() {
	case jsonrpc.KindResponse: // HTTP-26-010, -011
		web.Refuse(p.w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "a client sends requests and notifications, no responses")
		return nil, ""
	case jsonrpc.KindNotification:
		// The core protocol has none over HTTP, so there is nothing to do; it needs
		// no headers either (HTTP-26-012, Q-05).
		p.w.WriteHeader(http.StatusAccepted)
		return nil, ""
	}
	// The client's going away is its way to cancel (HTTP-26-022), and the handler
	// should see that as the cause. The context of net/http has no cause to give.
	x = &modernExchange{response: p, endless: msg.Method == revision.MethodListen}
	x.ctx.Init(r.Context(), ErrDisconnected)
	version, refusal := s.Engine.Peer(&x.ctx, msg, s.principal(r))
	if refusal != nil {
		p.reply(http.StatusBadRequest, refusal)
		return nil, ""
	}
	fault := checkHeaders(r.Header, msg, version)
	if fault == nil && s.CheckHeaders != nil {
		fault = s.CheckHeaders(msg, r.Header)
	}
	if fault != nil {
		p.reply(http.StatusBadRequest, &engine.Reply{ID: msg.ID, Err: fault})
		return nil, ""
	}
	if !s.start(&x.ctx, x.endless) {
		s.unavailable(p.w, msg.ID)
		return nil, ""
	}
	return x, version
}

// cutShort deals with the reply to a request whose context has ended. It returns false if
// nobody is there any more to get it.
func (x *modernExchange) cutShort(reply *engine.Reply) bool {
	switch cause := context.Cause(&x.ctx); {
	case cause == ErrDisconnected:
		return false
	case x.endless && reply.Err != nil && !reply.Refused && cause == ErrShutdown:
		*reply = completed(reply.ID)
	}
	return true
}

// completed is the answer that ends a subscription in good order
// (basic/patterns/subscriptions, Graceful Closure; Q-01).
func completed(id jsonrpc.ID) engine.Reply {
	tag := id.AppendJSON([]byte(`{"resultType":"complete","_meta":{"` + engine.MetaSubscription + `":`))
	return engine.Reply{ID: id, Result: append(tag, '}', '}')}
}

// modernExchange is one request at work, and the engine's way to what it may send.
type modernExchange struct {
	*response
	ctx     engine.Context
	endless bool // it waits for events
}

var errNoRequests = errors.New("a server of 2026-07-28 sends no requests")

// Request fails: what it would ask travels in the result (HTTP-26-017).
func (*modernExchange) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errNoRequests
}
