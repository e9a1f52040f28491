// Package forward has what a [mcp.Handler] needs that forwards requests to other handlers or servers,
// as a gateway or a policy does, beside [mcp.Session.Handle]. All functions take the context that the
// handler was given; outside of a call they do nothing.
package forward

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/engine"
)

// SessionIdle returns how long the client of a session has had no request and no stream open. Ctx
// is what [mcp.Call.Session] returns. It is 0 while the client has one, and where the session is a
// connection, as on all transports but Streamable HTTP.
func SessionIdle(ctx context.Context) time.Duration {
	c := engine.From(ctx)
	if c == nil || c.Session() == nil {
		return 0
	}
	return c.Session().Idle()
}

// Outlive returns a context for work that may outlive the call of ctx: it has the values of ctx and
// describes the caller, and does not end with the call. Nothing reaches the caller by it. Outlive is
// called before the call ends.
func Outlive(ctx context.Context) context.Context {
	c := engine.From(ctx)
	ctx = context.WithoutCancel(ctx)
	if c == nil {
		return ctx
	}
	return engine.With(ctx, c.Outlive())
}

// WithNotify returns a context in which the notifications of the call go to f
// instead of its caller. Questions still go to the caller. Outside a call it
// returns ctx.
func WithNotify(ctx context.Context, f func(method string, params json.RawMessage) error) context.Context {
	c := engine.From(ctx)
	if c == nil {
		return ctx
	}
	return engine.With(ctx, c.Redirect(func(method string, params json.RawMessage) error {
		// On the goroutine of whoever has something to tell, which may be one of a connection.
		return c.User().Run(ctx, "WithNotify", func() error { return f(method, params) })
	}))
}

// WithTaskID returns a context in which a task that the call becomes is called what f makes
// of its id, and of the principal of the caller, in what its caller is told of it. A handler
// in front of others that gives tasks ids of its own needs it. F is called when the request
// may be over. Outside a call it returns ctx.
func WithTaskID(ctx context.Context, f func(principal, id string) string) context.Context {
	c := engine.From(ctx)
	if c == nil || !c.TakesTask() {
		return ctx
	}
	principal := c.Peer.Principal
	return engine.With(ctx, c.Rename(func(id string) string {
		name := ""
		_ = c.User().Run(ctx, "WithTaskID", func() error { name = f(principal, id); return nil })
		return name
	}))
}

// CallerKey returns what the caller of ctx says of itself, and its revision, as a key: two callers
// with one key have declared the same, and are the same to a server that a [mcp.Session] forwards
// their lists to, but for their principals. It is empty outside of a call.
func CallerKey(ctx context.Context) string {
	call := engine.From(ctx)
	if call == nil {
		return ""
	}
	var key []byte
	call.While(func() { key = appendCallerKey(key, call) })
	if len(key) > bridge.MaxIdentity {
		sum := sha256.Sum256(key)
		return string(sum[:])
	}
	return string(key)
}

func appendCallerKey(key []byte, call *engine.Call) []byte {
	peer := call.Peer
	key = slices.Grow(key, len(peer.Revision.Name)+len(peer.Capabilities)+len(peer.Info)+10)
	key = append(key, peer.Revision.Name...)
	if peer.MayTakeTask() {
		key = append(key, '+')
	}
	if call.TakesTask() {
		key = append(key, '+')
	}
	key = strconv.AppendInt(append(key, ' '), int64(len(peer.Capabilities)), 10)
	return append(append(append(key, ' '), peer.Capabilities...), peer.Info...)
}
