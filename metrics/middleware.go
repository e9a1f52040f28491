package metrics

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/taskend"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Front returns a middleware that counts the requests of clients by method, lists included. It is
// for the Use of the [mcp.Server] that clients reach, in front of rate limits. Notifications and
// subscriptions/listen are not counted.
func (c *Counters) Front() mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler { return &front{c, next} }
}

// Server returns a middleware that counts what callers get from one server: the calls of its tools,
// each by name, its prompts, resources and completions, and the requests about its tasks. Lists are
// not counted. It is for the Use of an [mcp.Server], in front of rate limits and policies.
//
// One Server may wrap several handlers if they are connections to one server.
func (c *Counters) Server(name string) mcp.Middleware {
	s := c.server(name)
	return func(next mcp.Handler) mcp.Handler { return step.Like(next, &watch{c, s, &s.callers, next}) }
}

// Upstream returns a middleware that counts what a server behind a gateway answers, and how long
// that takes: it goes behind all others around the server. The time that a request waits in the
// gateway, for the start of the server, for a connection or for its turn, is not part of that. Requests that the gateway does not send,
// such as those for names that the server does not list, are not counted.
func (c *Counters) Upstream(name string) mcp.Middleware {
	s := c.server(name)
	return func(next mcp.Handler) mcp.Handler { return step.Passing(next, &watch{c, s, &s.upstream, next}) }
}

// Around returns the Middleware of a gateway: for each server it puts [Counters.Server] in front of
// the middleware that inner returns, and [Counters.Upstream] behind it. Without inner, or where inner
// returns nil, it changes nothing about lists.
func (c *Counters) Around(inner func(server string) mcp.Middleware) func(server string) mcp.Middleware {
	return func(name string) mcp.Middleware {
		first, last := c.Server(name), c.Upstream(name)
		var mw mcp.Middleware
		if inner != nil {
			mw = inner(name)
		}
		return func(next mcp.Handler) mcp.Handler {
			next = last(next)
			if mw != nil {
				next = mw(next)
			}
			return first(next)
		}
	}
}

// front counts the requests of clients.
type front struct {
	c    *Counters
	next mcp.Handler
}

func (h *front) Handle(ctx context.Context, req *mcp.Request) (res mcp.Result, err error) {
	if req.Method == "subscriptions/listen" || strings.HasPrefix(req.Method, "notifications/") {
		return h.next.Handle(ctx, req)
	}
	number, ok := methodNumbers[req.Method]
	if !ok {
		number = len(methods) - 1
	}
	s := h.c.front.method(number)
	s.open.Add(1)
	clock := wait.From(ctx)
	asked := clock.Asked()
	start, o := now(), ending{kind: ProtocolError, in: len(req.Params)} // the kind of a panic
	defer func() {
		s.open.Add(-1)
		o.ended(start)
		o.took -= clock.Asked() - asked
		s.record(&o)
		if number == 0 && h.c.Team != nil && !errors.Is(err, mcp.ErrPending) { // the last round counts
			if team := h.c.team(ctx); team != "" {
				h.c.teams.count(o.kind.String(), team).Add(1)
			}
		}
		if o.kind == Limited && number == 0 && h.c.Owner != nil {
			h.refused(req, &o)
		}
	}()
	res, err = h.next.Handle(ctx, req)
	o.kind, o.out = KindOf(ctx, res, err), sizeOf(res)
	if o.out > 0 && strings.HasSuffix(req.Method, "/list") && ok {
		h.c.lists[number].Store(int64(o.out))
	}
	return res, err
}

// refused counts a call over a rate limit at its server.
func (h *front) refused(req *mcp.Request, o *ending) {
	name, _ := jsonx.Unquote(req.Param("name"))
	owner, tool := h.c.owner(name)
	if owner == "" {
		return
	}
	whole := h.c.server(owner)
	t := &whole.callers
	s := t.tool(jsonx.AppendString(nil, tool))
	if s == nil {
		s = h.c.addTool(t, owner, tool, o.kind)
	}
	if s == nil {
		s = t.method(0)
	}
	whole.note(o.end)
	s.record(o)
}

// watch counts the requests to one server.
type watch struct {
	c    *Counters
	s    *server
	t    *table
	next mcp.Handler
}

func (h *watch) Handle(ctx context.Context, req *mcp.Request) (res mcp.Result, err error) {
	number, ok := methodNumbers[req.Method]
	if !ok || number >= serverMethods {
		if h.t == &h.s.callers {
			ctx = taskend.Listening(ctx, req, h.taskSeen)
		}
		return h.next.Handle(ctx, req)
	}
	var s *series
	var tool string // without a series
	if number == 0 {
		name := req.Param("name")
		if s = h.t.tool(name); s == nil {
			tool, _ = jsonx.Unquote(name)
			if h.c.Listed != nil {
				s = h.c.addTool(h.t, h.s.name, tool, OK)
			}
		}
	}
	unnamed := s == nil
	if unnamed {
		s = h.t.method(number)
	}
	s.open.Add(1)
	clock := wait.From(ctx)
	away := func() time.Duration { // of the caller's time; waits are part of what the caller gets
		if h.t == &h.s.upstream {
			return clock.Sum() + clock.Asked()
		}
		return clock.Asked()
	}
	before := away()
	start, o := now(), ending{kind: ProtocolError, in: len(req.Params)} // the kind of a panic
	defer func() {
		s.open.Add(-1)
		if err != nil && h.t == &h.s.upstream && outcome.Unsent(err) {
			return
		}
		o.ended(start)
		o.took -= away() - before
		if unnamed && number == 0 {
			if own := h.c.addTool(h.t, h.s.name, tool, o.kind); own != nil {
				s = own
			}
		}
		if h.t == &h.s.callers {
			h.s.note(o.end)
		}
		s.record(&o)
	}()
	res, err = h.next.Handle(ctx, req)
	o.kind, o.out = KindOf(ctx, res, err), sizeOf(res)
	if err == nil && h.t == &h.s.callers {
		h.task(req, res)
	}
	return res, err
}

// task notes a task that a call has become, or the state of one.
func (h *watch) task(req *mcp.Request, res mcp.Result) {
	switch req.Method {
	case callMethod:
		h.s.tasks.Add(taskend.Made(res), struct{}{})
	case "tasks/get":
		id, _ := jsonx.Unquote(req.Param("taskId"))
		h.taskSeen(id, res)
	}
}

// taskSeen counts the end of a task when a caller sees it for the first time.
func (h *watch) taskSeen(id string, state mcp.Result) {
	end, over := taskend.Of(state)
	if !over {
		return
	}
	if _, waits := h.s.tasks.Take(id); waits {
		h.c.ends.count(h.s.name, ofCause[end.Cause].String()).Add(1)
	}
}

func (o *ending) ended(start time.Duration) {
	o.end = now()
	o.took = o.end - start
}

// sizeOf returns the bytes of a result of another server. It is zero for results of functions of
// this process, which would have to be encoded for it.
func sizeOf(res mcp.Result) int {
	raw, _ := res.(mcp.RawResult)
	return len(raw)
}
