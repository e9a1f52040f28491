// Package forward supports a [mcp.Handler] that forwards requests to other handlers or servers, as
// a gateway or a policy does, or answers methods by itself, as an extension does. All functions take
// the context of the handler; outside of a call they do nothing, and Notify fails.
package forward

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// SessionIdle returns how long the client of a session has had no request and no stream open. Pass
// it the result of [mcp.Call.Session]. It returns 0 while the client has a request or stream open.
// It always returns 0 if the session is a connection, as on all transports but Streamable HTTP.
func SessionIdle(ctx context.Context) time.Duration {
	c := engine.From(ctx)
	if c == nil || c.Session() == nil {
		return 0
	}
	return c.Session().Idle()
}

// Outlive returns a context for work that may outlive the call of ctx. It has the values of ctx and
// describes the caller, but it does not end with the call, and nothing sent with it reaches the
// caller. Outlive must be called before the call ends.
func Outlive(ctx context.Context) context.Context {
	c := engine.From(ctx)
	ctx = context.WithoutCancel(ctx)
	if c == nil {
		return ctx
	}
	return engine.With(ctx, c.Outlive())
}

// Notify sends a notification on the stream of the call, for instance one that an extension
// defines. The params must marshal to a JSON object; nil stands for an empty one. A log message
// below the level that the caller asked for is dropped. Outside of a call Notify returns
// [mcp.ErrNoCall], and with the context of a session that has ended an error.
func Notify(ctx context.Context, method string, params any) error {
	c := engine.From(ctx)
	if c == nil {
		return bridge.ErrNoCall
	}
	raw, err := jsonx.Marshal(params)
	if err != nil {
		return err
	}
	if method == revision.NoteMessage {
		level, _ := jsonx.Lookup(raw, "level")
		if name, err := jsonx.Unquote(level); err != nil || !c.LogEnabled(name) {
			return nil
		}
	}
	switch jsonx.KindOf(raw) {
	case '{':
		return c.Emit(method, raw)
	case 'n':
		return c.Emit(method, nil)
	}
	return fmt.Errorf("%s: params must be a JSON object", method)
}

// WithNotify returns a context that sends the notifications of the call to f instead of its caller.
// Questions still go to the caller. Outside of a call it returns ctx.
func WithNotify(ctx context.Context, f func(method string, params json.RawMessage) error) context.Context {
	c := engine.From(ctx)
	if c == nil {
		return ctx
	}
	return engine.With(ctx, c.Redirect(func(method string, params json.RawMessage) error {
		// On the goroutine that sends the notification, which may be one of a connection.
		return c.User().Run(ctx, "WithNotify", func() error { return f(method, params) })
	}))
}

// OnQuestion returns a context that calls f before the call asks its caller a question, and at once if
// this run of the call has answers to questions. Outside of a call it returns ctx.
func OnQuestion(ctx context.Context, f func()) context.Context {
	c := engine.From(ctx)
	if c == nil {
		return ctx
	}
	asks := func() { _ = c.User().Run(ctx, "OnQuestion", func() error { f(); return nil }) }
	if c.Round() > 0 {
		asks()
	}
	return engine.With(ctx, c.OnAsk(asks))
}

// Stay says that the server to which the call of ctx was forwarded is of this process alone. If the call waits for answers to
// questions ([mcp.ErrPending]) with which the server has given a state of its own, only this process can go on with it: of several
// processes that clients see as one, the others send it the answers, or refuse them after it has ended. Outside of a call, and in a process
// alone, Stay does nothing.
func Stay(ctx context.Context) {
	if c := engine.From(ctx); c != nil {
		c.Stay(ctx)
	}
}

// Asked is a request: a question of a server to the user of a client, or the call during which it asks. The params of a
// question are those of 2026-07-28.
type Asked struct {
	Method string
	Params json.RawMessage
}

// Beside lets somebody beside the client of a session answer the questions of servers: f gets them while the client is
// asked, with the call that they belong to and its context. The first answers count, in the order of the questions, and
// the client is notified that its own are not needed. An error of f, also that of its context, leaves the answer to the
// client. It is for [mcp.Server.OnSession]. Callers without a session, those since 2026-07-28, are not affected.
func Beside(session context.Context, f func(ctx context.Context, call Asked, questions []Asked) ([]json.RawMessage, error)) {
	c := engine.From(session)
	if c == nil || c.Session() == nil {
		return
	}
	c.Session().SetBeside(func(ctx context.Context, qs []engine.Question) (answers []json.RawMessage, err error) {
		var call Asked
		if of := engine.From(ctx); of == nil || !of.While(func() { call = Asked{of.Method, bytes.Clone(of.Params)} }) {
			return nil, engine.ErrOver
		}
		list := make([]Asked, len(qs))
		for i, q := range qs {
			list[i] = Asked{q.Method, q.Params}
		}
		ran := c.User().Run(ctx, "Beside", func() error { answers, err = f(ctx, call, list); return nil })
		return answers, errors.Join(err, ran)
	})
}

// WithTaskID returns a context for a call that may become a task, or is about one: the caller gets the id that f
// makes from the task's id and the caller's principal. It is for a handler in front of several
// others that gives tasks its own ids. If lasts is true, a task goes on when the session with its server ends, because other
// processes find it there. Of a task that ends with this process, keep, if not nil, gets the state when it begins and when it has ended, a DetailedTask of
// extensions/tasks. Both functions may be called after the request is over. Outside of a call WithTaskID returns ctx.
func WithTaskID(ctx context.Context, lasts bool, f func(principal, id string) string, keep func(principal, id string, state json.RawMessage)) context.Context {
	c := engine.From(ctx)
	if c == nil || !c.TakesTask() && !revision.OfTasks(c.Method) {
		return ctx
	}
	principal := c.Peer.Principal
	name := func(id string) (name string) {
		_ = c.User().Run(ctx, "WithTaskID", func() error { name = f(principal, id); return nil })
		return name
	}
	kept := func(id string, state json.RawMessage) {
		if keep != nil {
			_ = c.User().Run(ctx, "WithTaskID", func() error { keep(principal, id, state); return nil })
		}
	}
	return engine.With(ctx, c.Rename(lasts, name, kept))
}

// CallerKey returns a key for the caller's declared capabilities, description and revision. Two
// callers with the same key are the same to a server that a [mcp.Session] forwards their lists to,
// except for their principals. It is empty outside of a call.
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
