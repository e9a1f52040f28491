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
	switch msg.Kind() {
	case jsonrpc.KindResponse: // HTTP-26-010, -011
		web.Refuse(p.w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "a client sends requests and notifications, no responses")
		return
	case jsonrpc.KindNotification:
		// The core protocol has none over HTTP, so there is nothing to do; it needs
		// no headers either (HTTP-26-012, Q-05).
		p.w.WriteHeader(http.StatusAccepted)
		return
	}
	// The client's going away is its way to cancel (HTTP-26-022), and the handler
	// should see that as the cause. The context of net/http has no cause to give.
	x := &modernExchange{response: p}
	endless := msg.Method == revision.MethodListen
	x.ctx.Init(r.Context(), ErrDisconnected)
	version, refusal := s.Engine.Peer(&x.ctx, msg, s.principal(r))
	if refusal != nil {
		p.reply(http.StatusBadRequest, refusal)
		return
	}
	fault := checkHeaders(r.Header, msg, version)
	if fault == nil && s.CheckHeaders != nil {
		fault = s.CheckHeaders(msg, r.Header)
	}
	if fault != nil {
		p.reply(http.StatusBadRequest, &engine.Reply{ID: msg.ID, Err: fault})
		return
	}
	if !s.start(&x.ctx, endless) {
		s.unavailable(p.w, msg.ID)
		return
	}
	defer s.stop(&x.ctx)
	defer x.ctx.Cancel(nil)

	reply := s.Engine.Modern(&x.ctx, msg, version, r.Header, x)
	if x.ctx.Err() != nil {
		switch cause := context.Cause(&x.ctx); {
		case cause == ErrDisconnected:
			p.end() // HTTP-26-024: nothing further is sent
			return
		case endless && reply.Err != nil && !reply.Refused && cause == ErrShutdown:
			reply = completed(msg.ID)
		}
	}
	p.reply(reply.Status(), &reply) // an error means that the client is gone
	reply.Release()
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
	ctx engine.Context
}

var errNoRequests = errors.New("a server of 2026-07-28 sends no requests")

// Request fails: what it would ask travels in the result (HTTP-26-017).
func (*modernExchange) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errNoRequests
}
