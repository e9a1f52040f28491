package gateway

import (
	"context"
	"errors"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Lend returns the connection to a server of Run that requests of ctx use, as [Source.Open] has
// made it. It waits for a server that is starting, and starts an idle one. The connection must
// be given back, with the error of what it was used for: a [LoginError] is taken note of.
//
// It is for those who know what Open returns; all others have Handle.
func (g *Gateway) Lend(ctx context.Context, name string) (Upstream, func(error), error) {
	for _, up := range g.upstreams() {
		if up.name != name || up.pool == nil {
			continue
		}
		c, err := up.pool.take(ctx, "")
		if err != nil {
			return nil, nil, err
		}
		return c.up, func(err error) {
			var login *LoginError
			if err == nil || errors.As(err, &login) {
				up.pool.heard(err)
			}
			up.pool.release(c, nil, nil)
		}, nil
	}
	return nil, nil, mcp.Errorf(mcp.CodeInternal, "there is no server %q", bounded(name))
}
