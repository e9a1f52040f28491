package chain

import (
	"context"
	"crypto/sha256"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/idempotency"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	steps "github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Calls of a tool with an idempotency key share an execution while it lasts:
//
//   - of callers that are the same to the server (Gateway.CallerKey): one principal with one credential and equal headers
//   - of one tool, with arguments and metadata, and so the key, that are equal as JSON
//   - without answers to questions, and not as a task of before 2026-07-28

// sharedKey identifies equal calls of a server.
type sharedKey struct {
	of   any // of Gateway.CallerKey
	call [sha256.Size]byte
}

// sharing returns the step that lets calls share executions, nil without a gateway.
func (c *Chain) sharing(at place) mcp.Middleware {
	if c.views == nil || !at.foreign {
		return nil
	}
	calls := new(idempotency.Calls)
	if log := c.program.Logger; log != nil {
		calls.Logger = log.With("server", at.server)
	}
	return func(next mcp.Handler) mcp.Handler {
		return steps.Like(next, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != revision.MethodCall {
				return next.Handle(ctx, req)
			}
			has, err := idempotency.Has(req.Params)
			if err != nil {
				return nil, err
			}
			if !has {
				return next.Handle(ctx, req)
			}
			return c.share(ctx, calls, at.server, req, next)
		}))
	}
}

// share passes on a call with a key, or waits for the result of an equal one.
func (c *Chain) share(ctx context.Context, calls *idempotency.Calls, server string, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	of := c.views.gateway.CallerKey(ctx, server, req)
	var key resultKey
	if of == nil || !key.params(req.Params, "name") {
		return next.Handle(ctx, req)
	}
	sum := sha256.New()
	for _, part := range []string{string(req.Param("name")), key.args, key.meta} {
		sum.Write(jsonx.AppendString(nil, part))
	}
	id := ""
	audit.Note(ctx, func(e *audit.Entry) { id = e.Call })
	res, other, err := calls.Do(ctx, sharedKey{of, [sha256.Size]byte(sum.Sum(nil))}, id, req, next)
	if other != "" {
		audit.Note(ctx, func(e *audit.Entry) { e.Shared = other })
	}
	return res, err
}
