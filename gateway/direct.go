package gateway

import (
	"context"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Direct returns a handler that passes every request to one server of the gateway as it is,
// with the server's own names and pages. Who has which connection, and what becomes of one that
// ends, is as [Source] says. While there is no server of that name, requests fail.
//
// Where there is middleware, a name that the server does not list is not passed on: the server's
// answer would tell it from one that the middleware refuses.
//
// It is what makes a bridge: one server, for clients of another transport or revision.
func (g *Gateway) Direct(name string) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if err := g.refuseLoop(req); err != nil {
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
			if up.around == nil {
				return up.narrowed(ctx, req)
			}
			return up.around(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				return up.offered(ctx, req.Method, req.Params)
			})).Handle(ctx, req)
		}
		return nil, &UnavailableError{Stopped, mcp.Errorf(jsonrpc.CodeInternal, "there is no server %q", bounded(name))}
	})
}
