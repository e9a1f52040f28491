package gateway

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/mcp"
)

// upstream is one server behind the gateway: a handler that is always there, or one of
// a pool.
type upstream struct {
	g      *Gateway
	name   string
	prefix string // of the names of its features
	fixed  *conn  // nil if there is a pool
	pool   *pool
	kept   kept
}

func newUpstream(g *Gateway, name string) *upstream {
	return &upstream{g: g, name: name, prefix: prefixOf(name)}
}

// forward has a request answered by the caller's connection.
func (up *upstream) forward(ctx context.Context, method string, params json.RawMessage) (res mcp.Result, err error) {
	req := &mcp.Request{Method: method, Params: params}
	if up.fixed != nil {
		return up.fixed.h.Handle(ctx, req)
	}
	c, err := up.pool.take(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		waits := err
		if ctx.Err() != nil {
			waits = nil // who has left does not come back with an answer
		}
		up.pool.release(c, res, waits)
	}()
	return c.h.Handle(ctx, req)
}

// discover returns what the server says of itself, nil if that is not known.
func (up *upstream) discover(ctx context.Context) json.RawMessage {
	if up.pool != nil {
		up.pool.mu.Lock()
		defer up.pool.mu.Unlock()
		if !up.pool.inLists() {
			return nil
		}
		return up.pool.info
	}
	ctx, cancel := context.WithTimeout(ctx, up.g.listTimeout())
	defer cancel()
	res, err := up.fixed.h.Handle(ctx, &mcp.Request{Method: "server/discover"})
	if err != nil {
		return nil
	}
	return mcp.ResultJSON(res)
}

// unavailable returns why requests to the server fail at once, nil if they do not.
func (up *upstream) unavailable() error {
	p := up.pool
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inLists() || p.state == Starting {
		return nil
	}
	return p.unavailable()
}
