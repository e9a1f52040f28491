package gateway

import (
	"context"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Direct returns a handler that passes every request to one server of the gateway as it is,
// with the server's own names and pages. Who has which connection, and what becomes of one that
// ends, is as [Source] says. While there is no server of that name, requests fail.
//
// It is what makes a bridge: one server, for clients of another transport or revision.
func (g *Gateway) Direct(name string) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		for _, up := range g.upstreams() {
			if up.name != name {
				continue
			}
			if req.Method == "notifications/roots/list_changed" {
				up.rootsChanged(ctx, req)
				return mcp.RawResult(`{}`), nil
			}
			return up.guarded(mcp.HandlerFunc(up.pass)).Handle(ctx, req)
		}
		return nil, mcp.Errorf(mcp.CodeInternal, "there is no server %q", bounded(name))
	})
}
