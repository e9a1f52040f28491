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
	open      map[jsonrpc.ID]*causedCall // requests to the server without an answer; guarded by mu
	ended     []endedCall                // others, the last maxKept; guarded by mu
	oldest    int                        // of ended, when that is full; guarded by mu
	questions newest                     // requests from the server; guarded by mu
}

// causedCall is a request to the server.
type causedCall struct {
	cause  trace.Cause
	token  string // of progress; empty: none
	logs   bool   // it asked for log messages
	stands bool   // it is a subscription
}

// endedCall is a request that has ended. So many of them in a map would be slow to find the few that are open.
type endedCall struct {
	id   jsonrpc.ID
	call *causedCall
}

// maxKept bounds the requests whose causes are kept beyond their answers, because messages that
// belong to them may still come.
const maxKept = 1024

// newest keeps the causes of the last maxKept requests.
type newest struct {
	byID map[jsonrpc.ID]trace.Cause
	ids  []jsonrpc.ID // oldest first
}

func (k *newest) put(id jsonrpc.ID, cause trace.Cause) {
	if k.byID == nil {
		k.byID = map[jsonrpc.ID]trace.Cause{}
	}
	k.byID[id] = cause
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
	if c.open == nil {
		c.open = map[jsonrpc.ID]*causedCall{}
	}
	c.open[id] = call
	return call.cause
}

// End ends a request, answered or not.
func (c *Causes) End(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.open[id]
	if call == nil {
		return
	}
	delete(c.open, id)
	if len(c.ended) < maxKept {
		c.ended = append(c.ended, endedCall{id, call})
		return
	}
	c.ended[c.oldest] = endedCall{id, call}
	c.oldest = (c.oldest + 1) % maxKept
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
			for _, call := range c.open {
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
	if call := c.open[id]; call != nil {
		return call.cause
	}
	for n := range c.ended { // the newest first, as ids may come again
		if e := &c.ended[(c.oldest+len(c.ended)-1-n)%len(c.ended)]; e.id == id {
			return e.call.cause
		}
	}
	return trace.Cause{}
}

// ofToken returns the cause of progress; mu is held.
func (c *Causes) ofToken(token string) trace.Cause {
	for _, call := range c.open {
		if call.token == token {
			return call.cause
		}
	}
	for _, e := range c.ended {
		if e.call.token == token {
			return e.call.cause
		}
	}
	return trace.Cause{}
}
