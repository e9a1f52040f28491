package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// causeKey is the context key for a *trace.Cause.
type causeKey struct{}

// CauseOf returns the recorded request that the work in ctx is for: see [Context.Caused].
func CauseOf(ctx context.Context) trace.Cause {
	if c, _ := ctx.Value(causeKey{}).(*trace.Cause); c != nil {
		return *c
	}
	return trace.Cause{}
}

// WithoutCause returns a context with the values of ctx, for work that outlives the request of ctx.
func WithoutCause(ctx context.Context) context.Context {
	if ctx.Value(causeKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, causeKey{}, (*trace.Cause)(nil))
}

// Caused makes a request the cause of what is done in its context. The argument conn is the name of
// its connection in recordings; if it is empty, nobody records the connection, and Caused does
// nothing. It is called before the handler.
func (c *Context) Caused(conn string, id jsonrpc.ID) {
	if conn != "" {
		c.cause = &trace.Cause{Conn: conn, ID: string(id.AppendJSON(nil))}
	}
}

// Causes assigns the messages of a recorded connection to a server to the requests in front that
// caused them. The zero value is ready for use.
type Causes struct {
	// Asker returns the cause of a request from the server that comes on no stream of a call. It
	// may be nil.
	Asker func(params json.RawMessage) trace.Cause

	mu        sync.Mutex
	calls     newest[*causedCall] // requests to the server; guarded by mu
	questions newest[trace.Cause] // requests from the server; guarded by mu
	open      *causedCall         // of calls, the list of those without an answer; guarded by mu
}

// causedCall is a request to the server.
type causedCall struct {
	cause  trace.Cause
	token  string // of progress; empty: none
	logs   bool   // it asked for log messages
	stands bool   // it is a subscription

	next, before *causedCall // of those without an answer
}

// maxKept bounds the requests whose causes are kept beyond their answers, because messages that
// belong to them may still come.
const maxKept = 1024

// newest is a map that drops the oldest of its released entries.
type newest[T any] struct {
	byID map[jsonrpc.ID]T
	ids  []jsonrpc.ID // of the entries that may go, oldest first
}

func (k *newest[T]) put(id jsonrpc.ID, v T) {
	if k.byID == nil {
		k.byID = map[jsonrpc.ID]T{}
	}
	k.byID[id] = v
}

// release lets an entry go when maxKept others have been released.
func (k *newest[T]) release(id jsonrpc.ID) {
	if k.ids = append(k.ids, id); len(k.ids) > maxKept {
		delete(k.byID, k.ids[0])
		k.ids = k.ids[1:]
	}
}

// Begin registers a request that is about to be sent in ctx, and returns its cause. End must follow.
func (c *Causes) Begin(ctx context.Context, id jsonrpc.ID, out *Outgoing) trace.Cause {
	call := &causedCall{cause: CauseOf(ctx), token: string(out.Token), logs: out.Logs, stands: out.Method == revision.MethodListen}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.put(id, call)
	if call.next = c.open; c.open != nil {
		c.open.before = call
	}
	c.open = call
	return call.cause
}

// End ends a request, answered or not.
func (c *Causes) End(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls.byID[id]; call != nil {
		if call.before != nil {
			call.before.next = call.next
		} else if c.open == call {
			c.open = call.next
		}
		if call.next != nil {
			call.next.before = call.before
		}
		call.next, call.before = nil, nil
	}
	c.calls.release(id)
}

// of returns the cause of a frame: For, if it is set, or that of its messages if it is the same for
// all.
func (c *Causes) of(f *trace.Frame) trace.Cause {
	if f.Kind != trace.KindMessage {
		return f.For
	}
	switch jsonx.KindOf(f.Msg) {
	case '{':
		return c.ofMessage(f.Dir, f.Msg, f.For)
	case '[':
		var all trace.Cause
		first := true
		for msg := range jsonx.Elements(f.Msg) {
			cause := c.ofMessage(f.Dir, msg, f.For)
			if first {
				all, first = cause, false
			} else if cause != all {
				all = trace.Cause{}
			}
		}
		if !first {
			return all
		}
	}
	return f.For
}

// ofMessage returns the cause of one message. The argument known is the cause if it is known from
// the stream that the message is on.
func (c *Causes) ofMessage(dir trace.Dir, msg []byte, known trace.Cause) trace.Cause {
	var id jsonrpc.ID
	var method string
	if raw, ok := jsonx.Lookup(msg, "id"); ok {
		id, _ = jsonrpc.ParseID(raw)
	}
	if bytes.Contains(msg, []byte(`"method"`)) || bytes.Contains(msg, []byte(`\u`)) { // most answers need not be read to their ends
		raw, _ := jsonx.Lookup(msg, "method")
		method, _ = jsonx.Unquote(raw)
	}
	asks := method != "" && !id.IsZero()
	if known != (trace.Cause{}) && !(asks && dir == trace.In) {
		return known
	}
	if asks && dir == trace.In {
		if known == (trace.Cause{}) && c.Asker != nil {
			params, _ := jsonx.Lookup(msg, "params")
			known = c.Asker(params)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.questions.put(id, known)
		c.questions.release(id)
		return known
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !id.IsZero() {
		if method == "" && dir == trace.Out {
			return c.questions.byID[id]
		}
		return c.causeOf(id)
	}
	params, _ := jsonx.Lookup(msg, "params")
	switch method {
	case revision.NoteCancelled:
		raw, _ := jsonx.Lookup(params, "requestId")
		id, _ := jsonrpc.ParseID(raw)
		if dir == trace.In {
			if cause, ok := c.questions.byID[id]; ok {
				return cause
			}
		}
		return c.causeOf(id)
	case revision.NoteProgress:
		if token, _ := jsonx.Lookup(params, "progressToken"); dir == trace.In && len(token) > 0 {
			return c.ofToken(string(token))
		}
	}
	if raw, ok := jsonx.LookupPath(params, "_meta", MetaSubscription); ok {
		id, _ := jsonrpc.ParseID(raw)
		return c.causeOf(id)
	}
	if method == revision.NoteMessage && dir == trace.In { // as for the wire's own calls
		speaking := func(yield func(*causedCall) bool) {
			for call := c.open; call != nil; call = call.next {
				if !call.stands && !yield(call) {
					return
				}
			}
		}
		if call := Only(speaking, func(call *causedCall) bool { return call.logs }); call != nil {
			return call.cause
		}
	}
	return trace.Cause{}
}

// causeOf returns the cause of a request to the server; mu is held.
func (c *Causes) causeOf(id jsonrpc.ID) trace.Cause {
	if call := c.calls.byID[id]; call != nil {
		return call.cause
	}
	return trace.Cause{}
}

// ofToken returns the cause of progress; mu is held.
func (c *Causes) ofToken(token string) trace.Cause {
	for call := c.open; call != nil; call = call.next {
		if call.token == token {
			return call.cause
		}
	}
	for _, call := range c.calls.byID {
		if call.token == token {
			return call.cause
		}
	}
	return trace.Cause{}
}
