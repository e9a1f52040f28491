package steer

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// maxShown bounds the calls and the sessions of an answer, and the unused entries that are kept.
const maxShown = 1000

// Call is a request to a server that has not been answered.
type Call struct {
	ID        int64     `json:"id"`
	Server    string    `json:"server"`
	Method    string    `json:"method"`
	Name      string    `json:"name,omitempty"` // of the tool or prompt, as the server names it
	Principal string    `json:"principal,omitempty"`
	Session   string    `json:"session,omitempty"` // as in [Session]
	Since     time.Time `json:"since"`
}

// Calls are the calls in progress. The zero value has none. It may be used by several goroutines.
type Calls struct {
	Sessions *Sessions // names the sessions of the calls; nil: none

	mu             sync.Mutex
	last           int64 // number of the last call; guarded by mu
	open           int   // guarded by mu
	oldest, newest *call // nil: none; guarded by mu
	unused         *call // linked by after; guarded by mu
	spare          int   // number of the unused ones; guarded by mu
}

// call is an entry of the list of those in progress, which is in the order of their numbers.
type call struct {
	before, after *call

	n      int64
	ctx    context.Context
	server string
	method string
	params json.RawMessage
	since  time.Time
}

// Around returns a middleware that keeps the calls of a server while they are in progress.
func (c *Calls) Around(server string) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return step.Like(next, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case "tools/call", "prompts/get", "resources/read", "completion/complete":
			default:
				return next.Handle(ctx, req)
			}
			of := c.add(call{ctx: ctx, server: server, method: req.Method, params: req.Params, since: time.Now()})
			defer c.remove(of)
			return next.Handle(ctx, req)
		}))
	}
}

func (c *Calls) add(begun call) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.unused
	if of == nil {
		of = new(call)
	} else {
		c.unused = of.after
		c.spare--
	}
	c.last++
	begun.n, begun.before = c.last, c.newest
	*of = begun
	if c.newest == nil {
		c.oldest = of
	} else {
		c.newest.after = of
	}
	c.newest = of
	c.open++
	return of
}

func (c *Calls) remove(of *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of.before == nil {
		c.oldest = of.after
	} else {
		of.before.after = of.after
	}
	if of.after == nil {
		c.newest = of.before
	} else {
		of.after.before = of.before
	}
	c.open--
	*of = call{} // it keeps neither the context nor the parameters
	if c.spare < maxShown {
		of.after, c.unused = c.unused, of
		c.spare++
	}
}

// Of returns the number of calls in progress of a server.
func (c *Calls) Of(server string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for of := c.oldest; of != nil; of = of.after {
		if of.server == server {
			n++
		}
	}
	return n
}

// List returns the oldest calls in progress, at most 1000, and the number of all.
func (c *Calls) List() (list []Call, all int) {
	c.mu.Lock()
	defer c.mu.Unlock() // a call does not end while it is described, after which its parameters are gone
	list = []Call{}
	for of := c.oldest; of != nil && len(list) < maxShown; of = of.after {
		quoted, _ := jsonx.Lookup(of.params, "name")
		name, _ := jsonx.Unquote(quoted)
		out := Call{ID: of.n, Server: of.server, Method: of.method, Name: text.Short(name), Since: of.since}
		if from := mcp.CallFrom(of.ctx); from != nil {
			out.Principal, out.Session = from.Principal, c.Sessions.id(from.Session())
		}
		list = append(list, out)
	}
	return list, c.open
}
