package engine

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// A caller in this process reaches a handler without a transport. It speaks the newest revision
// but has a session and waits while it is asked, so handlers run once.

// NewLocal returns the session of a caller in this process. The session's context has the values of
// opened. Messages that belong to no call go to events.
func NewLocal(opened context.Context, info, capabilities json.RawMessage, events Exchange) *Session {
	s := &Session{opened: opened, Events: events}
	s.Peer = &Peer{Revision: revision.Newest, Info: info, Capabilities: capabilities, Principal: principal.From(opened), Alone: true, Local: true}
	s.level.Store(new(string))
	return s
}

// Local calls Handler for a caller in this process, whose principal is that of the parent of ctx.
// The argument level is the minimum level of log messages that the caller wants, empty for none;
// header has the headers that the caller gave its call, nil for none. The result and the codes of
// errors are in the inner form. An error is or wraps a *jsonrpc.Error, or is the cause of the end
// of ctx. The params must stay valid until Local returns.
func (e *Engine) Local(ctx *Context, s *Session, msg *jsonrpc.Message, level string, header http.Header, ex Exchange) (Result, error) {
	c := e.Stand(ctx, s, msg, ex)
	c.Header, c.logLevel = header, level
	if raw, ok := msg.ParamIn("_meta", "progressToken"); ok {
		c.progress = newProgress(raw)
	}
	res, err := e.run(ctx, c)
	if err == nil {
		return res, nil
	}
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	said := *e.failure(ctx, c, msg.ID, err).Err
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) {
		said.Code = rpc.Code
	}
	return res, &LocalError{RPC: &said, Cause: err}
}

// Stand makes ctx the context of a call by a caller in this process, before or without a handler
// that serves it.
func (e *Engine) Stand(ctx *Context, s *Session, msg *jsonrpc.Message, ex Exchange) *Call {
	ctx.peer = *s.Peer
	ctx.peer.Principal = principal.From(ctx.parent)
	ctx.call = Call{Method: msg.Method, Params: msg.Params, Msg: msg, Peer: &ctx.peer, of: ctx, ex: ex, asker: ctx, session: s, user: e.User}
	return &ctx.call
}

// Standing returns the context of a call by a session of mcp.Client.Open, which lasts until end is
// called. Package mcp sets it, for package mcptest, whose callers call handlers themselves.
var Standing func(session any) (ctx context.Context, end func())

// HandleTool is the method of an mcp.Server for an mcp.Tool whose input schema is known to compile. It is compiled when the tool
// is first called, since of a thousand tools few are called. The function h returns an *mcp.ToolResult. Package mcp sets
// HandleTool, for package openapi.
var HandleTool func(server, tool any, h func(ctx context.Context, args json.RawMessage) (any, error)) error

// LocalError is the error from a handler in this process: the JSON-RPC error that a remote caller
// would get, and the error that the handler returned.
type LocalError struct {
	RPC   *jsonrpc.Error
	Cause error
}

func (e *LocalError) Error() string { return e.RPC.Error() }

// Unwrap returns both.
func (e *LocalError) Unwrap() []error { return []error{e.RPC, e.Cause} }
