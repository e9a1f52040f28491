package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/resultcache"
	steps "github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// Results of a gateway are cached for trusted servers with the member "cache":
//
//   - Only results of tools that the server lists as read-only are cached: no errors, no tasks, and no
//     results of calls that have asked their caller something.
//   - A result belongs to what Gateway.ToolKey says: the connection, the tools of the server, and the
//     principal with the credential and the headers. A view is not part of it, because it has been applied
//     before: it decides who may call, and its fixed arguments are among those of the call.
//   - It belongs to the tool, and to arguments and metadata that are equal as JSON.
//   - A call of a tool that is not read-only drops all results of the server, when it begins and when it ends.

// cached is the cache of one server.
type cached struct {
	name         string
	ttl          time.Duration
	results      resultcache.Cache[resultKey, json.RawMessage]
	hits, misses atomic.Uint64
}

type resultKey struct {
	of         any // of Gateway.ToolKey
	tool       string
	args, meta string
}

// cache returns the cache around a server, nil if it has none.
func (c *Chain) cache(at place) mcp.Middleware {
	ttl := at.CacheTime()
	if c.views == nil || !at.foreign || ttl == 0 {
		return nil
	}
	before, _ := c.caches.Load(at.server)
	kept, ok := before.(*cached)
	if !ok || kept.ttl != ttl {
		kept = &cached{name: at.server, ttl: ttl}
		c.caches.Store(at.server, kept)
	}
	kept.results.Drop()
	return func(next mcp.Handler) mcp.Handler {
		return steps.Like(next, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != "tools/call" {
				return next.Handle(ctx, req)
			}
			return c.fromCache(ctx, kept, req, next)
		}))
	}
}

// fromCache answers a call from the cache, or passes it on and keeps its result.
func (c *Chain) fromCache(ctx context.Context, kept *cached, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	key, readOnly := resultKey{}, false
	var err error
	if key.tool, err = jsonx.Unquote(req.Param("name")); err == nil {
		key.of, readOnly = c.views.gateway.ToolKey(ctx, kept.name, key.tool, req)
	}
	if !readOnly {
		done := kept.results.Write()
		res, err := next.Handle(ctx, req)
		if _, goesOn := res.(*mcp.CreateTaskResult); goesOn {
			time.AfterFunc(kept.ttl, done) // results of before the end of the task are then over
		} else {
			done()
		}
		return res, err
	}
	if key.of == nil || !key.params(req.Params) {
		return next.Handle(ctx, req)
	}
	ticket := kept.results.Read(key)
	raw, hit := ticket.Hit()
	if c.counters != nil {
		c.counters.Cached(kept.name, hit)
	}
	if hit {
		kept.hits.Add(1)
		audit.Note(ctx, func(e *audit.Entry) { e.Cached = true })
		return mcp.RawResult(raw), nil
	}
	kept.misses.Add(1)
	var asked atomic.Bool
	res, err := next.Handle(forward.OnQuestion(ctx, func() { asked.Store(true) }), req)
	if err != nil || asked.Load() {
		return res, err
	}
	if raw, ok := final(res); ok {
		if now, _ := c.views.gateway.ToolKey(ctx, kept.name, key.tool, req); now == key.of {
			ticket.Keep(bytes.Clone(raw), len(raw)+len(key.args)+len(key.meta), kept.ttl)
		}
	}
	return res, nil
}

// params takes arguments and metadata into the key. It returns false for a call with other members, such as
// answers to questions, or as a task.
func (k *resultKey) params(params json.RawMessage) bool {
	for name, value := range jsonx.Members(params) {
		switch string(name) {
		case "name":
		case "arguments":
			if k.args = string(jsonx.Canonical(value)); k.args == "null" || k.args == "{}" {
				k.args = ""
			}
		case "_meta":
			var hidden []string
			for name := range jsonx.Members(value) {
				if saysNothing(string(name)) {
					hidden = append(hidden, string(name))
				}
			}
			if k.meta = string(jsonx.Canonical(jsonx.Without(nil, value, hidden...))); k.meta == "{}" {
				k.meta = ""
			}
		default:
			return false
		}
	}
	return true
}

// saysNothing reports whether a member of the metadata is about the message, its route or a trace, or is in
// the key of Gateway.ToolKey.
func saysNothing(name string) bool {
	switch name {
	case "progressToken", "traceparent", "tracestate", "baggage", hop.Meta:
		return true
	}
	return strings.HasPrefix(name, "io.modelcontextprotocol/")
}

// final returns the JSON of a result that may be used again.
func final(res mcp.Result) (json.RawMessage, bool) {
	if _, task := res.(*mcp.CreateTaskResult); task || res == nil {
		return nil, false
	}
	raw := res.JSON()
	if failed, _ := jsonx.Lookup(raw, "isError"); string(failed) == "true" {
		return nil, false
	}
	kind, typed := jsonx.Lookup(raw, "resultType")
	return raw, !typed || string(kind) == `"complete"`
}

// answered adds the counts of the caches to a report.
func (c *Chain) answered(r *health.Report) {
	for i := range r.Servers {
		if kept, ok := c.caches.Load(r.Servers[i].Name); ok {
			kept := kept.(*cached)
			r.Servers[i].Cache = &health.Cache{Hits: kept.hits.Load(), Misses: kept.misses.Load()}
		}
	}
}
