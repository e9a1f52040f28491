package steer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// maxShown bounds the calls and the sessions of an answer.
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

	last atomic.Int64
	open sync.Map // *call by number
}

type call struct {
	ctx    context.Context
	server string
	req    *mcp.Request
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
			n := c.last.Add(1)
			c.open.Store(n, &call{ctx, server, req, time.Now()})
			defer c.open.Delete(n)
			return next.Handle(ctx, req)
		}))
	}
}

// Of returns the number of calls in progress of a server.
func (c *Calls) Of(server string) (n int) {
	c.open.Range(func(_, v any) bool {
		if v.(*call).server == server {
			n++
		}
		return true
	})
	return n
}

// List returns the oldest calls in progress, at most 1000, and the number of all.
func (c *Calls) List() (list []Call, all int) {
	list = []Call{}
	c.open.Range(func(n, v any) bool {
		of := v.(*call)
		name, _ := jsonx.Unquote(of.req.Param("name"))
		out := Call{ID: n.(int64), Server: of.server, Method: of.req.Method, Name: text.Short(name), Since: of.since}
		if from := mcp.CallFrom(of.ctx); from != nil {
			out.Principal, out.Session = from.Principal, c.Sessions.id(from.Session())
		}
		list = append(list, out)
		return true
	})
	slices.SortFunc(list, func(a, b Call) int { return cmp.Compare(a.ID, b.ID) })
	return list[:min(len(list), maxShown)], len(list)
}
