package gateway

import (
	"context"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Direct returns a handler that passes every request to one server of the gateway unchanged, with
// the server's own names and pages. Connections are shared and replaced as [Source] describes.
// Requests fail while no server has that name.
//
// If there is middleware that can refuse requests, a tool or prompt that the server does not list is refused without asking
// the server, because the server's answer would differ from the one that the middleware gives for a
// hidden tool or prompt.
//
// Direct is the basis of a bridge: it offers one server to clients of another transport or
// revision.
func (g *Gateway) Direct(name string) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if err := g.accepts(req); err != nil {
			return nil, err
		}
		for _, up := range g.upstreams() {
			if up.name != name {
				continue
			}
			if req.Method == "notifications/roots/list_changed" {
				up.rootsChanged(ctx, req)
				return mcp.RawResult(`{}`), nil
			}
			return up.direct.Handle(ctx, req)
		}
		return nil, &UnavailableError{Stopped, mcp.Errorf(jsonrpc.CodeInternal, "server %q does not exist", text.Short(name))}
	})
}
