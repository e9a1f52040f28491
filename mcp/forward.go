package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Handle forwards a request to the server, and its questions, progress and log messages to the
// caller of ctx, whatever revisions the two speak. Ids, progress tokens, and the _meta members of
// one hop are created anew for each hop (T-01, T-04 of the translation rules).
//
// Each forwarded request carries the list of its forwarders, in _meta as dev.patchbay/hops and in
// the HTTP header Patchbay-Hops. Handle refuses a request that this session, or the gateway it
// belongs to, has already forwarded, because it is in a loop, and a request that 8 others have
// forwarded.
//
// Of the results that the server allows clients to cache, only public ones are cached here: a
// result that is private to one caller is never given to another.
//
// If the server asks in requests of its own, and the caller gets questions in results, the call to
// the server stays open until the caller comes back with the answer, for at most 15 minutes.
//
// A question from a legacy server that names no call goes to the session of the caller. If it could
// belong to several callers it is refused; from then on the calls of different callers take turns.
// A call waits for its turn at most 5 minutes, and at most 2 seconds for calls of its own
// principal.
func (s *Session) Handle(ctx context.Context, req *Request) (Result, error) {
	params, err := req.exact()
	if err != nil {
		return nil, err
	}
	if len(params) != len(req.Params) { // there was white space
		req = &Request{Method: req.Method, Params: params}
	}
	if s.local != nil {
		return s.local.forward(ctx, req)
	}
	call := engine.From(ctx)
	hops, err := s.remote.Hops(call, req.Params)
	if err != nil {
		return nil, err
	}
	switch req.Method {
	case revision.MethodDiscover:
		return s.forwardInfo(), nil
	case revision.MethodListen:
		return s.forwardListen(ctx, call, req)
	case revision.NoteRootsChanged:
		if s.client.Roots == nil {
			return RawResult(`{}`), nil
		}
		return RawResult(`{}`), s.remote.RootsChanged(ctx)
	}
	answer, err := s.remote.Forward(ctx, call, bridge.Request{Method: req.Method, Params: req.Params, Hops: hops})
	var failure *bridge.ToolFailure
	switch {
	case errors.As(err, &failure):
		return &ToolResult{Content: []Content{Text(failure.Text)}, IsError: true}, nil
	case err != nil:
		return nil, err
	case answer.Task:
		return &CreateTaskResult{Task: answer.JSON, drop: answer.Drop}, nil
	}
	return RawResult(answer.JSON), nil
}

// forwardInfo returns the server's description of itself, with the tasks of 2025-11-25 in the inner
// form.
func (s *Session) forwardInfo() *ServerInfo {
	said := s.Server()
	if !said.Capabilities.Has("tasks") {
		return said
	}
	info := *said
	info.Capabilities = maps.Clone(info.Capabilities)
	delete(info.Capabilities, "tasks")
	if s.remote.CoreTasks() {
		info.Capabilities["extensions"] = jsonx.With(nil, info.Capabilities["extensions"], revision.Tasks, []byte(`{}`))
	}
	return &info
}

// forwardListen answers subscriptions/listen from a caller in front.
func (s *Session) forwardListen(ctx context.Context, call *engine.Call, req *Request) (Result, error) {
	if call == nil {
		return nil, ErrNoCall
	}
	f, err := filterOf(req)
	if err != nil {
		return nil, err
	}
	asked := len(f.URIs)
	f.Tasks = slices.DeleteFunc(f.Tasks, func(id string) bool { return !s.remote.MayWatch(call, id) })
	// A server that does not acknowledge in time is given up, like one that does not answer. After
	// the acknowledgement there is no time limit.
	within, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	heard := func() {}
	if idle := s.remote.IdleLimit(req.Method); idle > 0 {
		late := time.AfterFunc(idle, func() { giveUp(&LimitError{Limit: idle}) })
		defer late.Stop()
		heard = func() { late.Stop() }
	}
	ack := func(honoured filter) error {
		heard()
		if len(honoured.URIs) < asked && call.Peer.Revision.Sessions {
			return Errorf(jsonrpc.CodeInvalidParams, "the server does not accept a subscription to this resource") // T-50
		}
		return call.Emit(revision.NoteAcknowledged, encode(map[string]filter{"notifications": honoured}))
	}
	emit := func(method string, params json.RawMessage) error {
		heard()
		return call.Emit(method, bridge.WithoutMeta(params, engine.MetaSubscription))
	}
	err = s.listen(within, f, traceOf(req), bridge.EnvelopeOf(call, len(f.Tasks) > 0), ack, emit)
	var limit *LimitError
	switch {
	case ctx.Err() != nil:
	case errors.As(context.Cause(within), &limit):
		return nil, limit
	case err != nil:
		return nil, err
	}
	return RawResult(`{}`), nil
}
