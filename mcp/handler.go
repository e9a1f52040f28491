package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// A Handler answers MCP requests. A [Server] is one, a [Session] is one, a
// gateway is one made of many, and a [Middleware] turns one into another.
//
// Handle is called by several goroutines at once. An error that is (or wraps)
// an [*Error] is answered as that JSON-RPC error; any other error as an internal
// error with its text. While Handle runs, the context gives access to the call:
// [CallFrom], [Elicit], [Progress], [Log].
type Handler interface {
	Handle(ctx context.Context, req *Request) (Result, error)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, req *Request) (Result, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, req *Request) (Result, error) { return f(ctx, req) }

// Middleware makes a Handler that does something before or after another.
type Middleware func(next Handler) Handler

// Request is one request in the form of revision 2026-07-28, whatever revision the caller speaks.
// Session methods of older revisions arrive in their newest form: "initialize" as server/discover,
// resources/subscribe as subscriptions/listen.
//
// A Request and its Params must not be kept after Handle returns, because their memory is reused
// for other requests.
type Request struct {
	// Method is the request's method, for instance "tools/call".
	Method string

	// Params is the params object as received, or nil if there was none. It must not be modified. A
	// [Server.Handler] or a [Middleware] never gets a member that a reader ignoring case could take
	// for one of the protocol, such as "Name" for "name", nor two members of one name in any object,
	// nor invalid JSON. Such a request is refused with CodeInvalidParams at each of them, wherever it
	// comes from: a wire, a Session of [Client.Open], or a middleware that has made it. So all
	// readers of a request agree. The names of a tool's arguments are not compared without case.
	Params json.RawMessage

	msg *jsonrpc.Message // the message of these Method and Params, whose JSON was checked; nil, or of others, in a request that was not
}

// Param returns the raw value of one member of Params, or nil if there is none.
func (r *Request) Param(name string) json.RawMessage {
	if r.checked() {
		v, _ := r.msg.Param(name)
		return v
	}
	v, _ := jsonx.Lookup(r.Params, name)
	return v
}

// exactNames refuses requests that a lax reader reads differently from an exact one. Otherwise
// middleware could decide about another request than the one that the handler reads.
func exactNames(next Handler) Handler {
	return HandlerFunc(func(ctx context.Context, req *Request) (Result, error) {
		if err := req.checkNames(); err != nil {
			return nil, Errorf(jsonrpc.CodeInvalidParams, "%s: %v", text.Short(req.Method), err)
		}
		return next.Handle(ctx, req)
	})
}

// checkNames is revision.CheckParams; it does not parse the params of a decoded message again.
func (r *Request) checkNames() error {
	if !r.checked() || r.Method == revision.MethodComplete {
		return revision.CheckParams(r.Method, r.Params)
	}
	known := revision.ParamNames(r.Method)
	for name := range r.msg.ParamNames() {
		if err := known.Check(name); err != nil {
			return err
		}
	}
	return nil
}

// checked reports whether msg is the message of the request. It is not if a middleware has made the
// request, or has copied one and changed the copy.
func (r *Request) checked() bool {
	m := r.msg
	return m != nil && m.Method == r.Method && len(m.Params) == len(r.Params) && (len(m.Params) == 0 || &m.Params[0] == &r.Params[0])
}

// exact checks the request for code of the user, if it was not checked yet, and returns its params
// without white space around them. The error is for params that two readers could read differently,
// or that are not an object.
func (r *Request) exact() (json.RawMessage, error) {
	switch {
	case r == nil:
		return nil, errNilRequest
	case r.checked():
		return r.Params, nil
	}
	params, err := r.validParams()
	if err == nil {
		err = revision.CheckParams(r.Method, params)
	}
	if err != nil {
		return nil, Errorf(jsonrpc.CodeInvalidParams, "%s: %v", text.Short(r.Method), err)
	}
	return params, nil
}

// validParams returns the params, nil for null, if they are valid JSON without two members of one name.
func (r *Request) validParams() (json.RawMessage, error) {
	if len(r.Params) == 0 {
		return r.Params, nil
	}
	if err := jsonx.Valid(r.Params, maxOwnDepth); err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	switch jsonx.KindOf(r.Params) {
	case '{':
		return bytes.TrimSpace(r.Params), nil
	case 'n':
		return nil, nil
	}
	return nil, errors.New("params must be a JSON object")
}

var errNilRequest = errors.New("mcp: the Request is nil; give one with a Method")

// paramString returns a member of Params that must be a string.
func (r *Request) paramString(name string) (string, error) {
	raw := r.Param(name)
	if raw == nil {
		return "", Errorf(jsonrpc.CodeInvalidParams, "%s: missing %q", r.Method, name)
	}
	s, err := jsonx.Unquote(raw)
	if err != nil {
		return "", Errorf(jsonrpc.CodeInvalidParams, "%s: %q must be a string", r.Method, name)
	}
	return s, nil
}

// A Result is what a [Handler] answers: one of this package's result types by
// pointer ([ToolResult], [CreateTaskResult], [PromptResult], [ReadResult], [CompleteResult],
// [ServerInfo], [List]), or a [RawResult].
//
// A result must not be modified once it has been returned. Only this package implements Result.
type Result interface {
	// JSON returns the result encoded as a JSON object, in the form that [RawResult] holds.
	JSON() json.RawMessage

	inner() engine.Result // in its inner form
}

// RawResult is the JSON of a result object. It must be valid JSON. That is checked for a
// [HandlerFunc] that [Server.HandleMethod], Server.Handler or [Client.Open] calls; Keep, middleware
// and other types of Handler must see to it themselves. It has no resultType: the server adds that
// for callers that speak 2026-07-28. Parts that the caller's revision does not have, such as icons,
// are removed or replaced, see docs/revisions.md. The rest is sent unchanged.
type RawResult json.RawMessage

// Keep returns a result with the JSON of r for a handler that answers with it many times, such as a
// long list. A server converts the result once for each revision that its callers speak, and keeps
// the conversion with the result. Do not change r after that.
func (r RawResult) Keep() Result {
	kept := new(keptResult)
	kept.memo = engine.NewMemo(kept, jsonx.OrObject(json.RawMessage(r)))
	return kept
}

type keptResult struct{ memo *engine.Memo }
