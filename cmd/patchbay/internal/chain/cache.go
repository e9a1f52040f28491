package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/resultcache"
	"github.com/patchbay-dev/patchbay/internal/revision"
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
//   - Contents of resources are cached for as long as the server says with them (ttlMs, 2026-07-28), for the same
//     caller, until it announces a change of a resource to a caller. Those that it calls public are not cached here: the session
//     with the server has them, for all callers.

// cached is the cache of one server.
type cached struct {
	name         string
	ttl          time.Duration
	results      resultcache.Cache[resultKey, result] // of tools
	reads        resultcache.Cache[resultKey, result]
	hits, misses atomic.Uint64
}

type resultKey struct {
	of         any // of Gateway.ToolKey, or of Gateway.ReadKey
	tool, uri  string
	args, meta string
}

func (k *resultKey) bytes() int { return len(k.uri) + len(k.args) + len(k.meta) }

type result struct {
	json  json.RawMessage
	until time.Time // of contents of a resource, which say how long they may be used
}

// write is called before a call that may change something, and done after it.
func (c *cached) write() (done func()) {
	results, reads := c.results.Write(), c.reads.Write()
	return func() { results(); reads() }
}

// hearing returns a context for a subscription whose news of resources end what is kept of them.
func (c *cached) hearing(ctx context.Context) context.Context {
	return forward.WithNotify(ctx, func(method string, params json.RawMessage) error {
		if method == revision.NoteResourceUpdated || method == revision.NoteResourcesChanged {
			c.reads.Drop()
		}
		return forward.Notify(ctx, method, params)
	})
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
	kept.reads.Drop()
	return func(next mcp.Handler) mcp.Handler {
		return steps.Like(next, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case revision.MethodCall:
				return c.fromCache(ctx, kept, req, next)
			case revision.MethodRead:
				return c.readFromCache(ctx, kept, req, next)
			case revision.MethodListen:
				ctx = kept.hearing(ctx)
			}
			return next.Handle(ctx, req)
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
		done := kept.write()
		res, err := next.Handle(ctx, req)
		if _, goesOn := res.(*mcp.CreateTaskResult); goesOn {
			time.AfterFunc(kept.ttl, done) // results of before the end of the task are then over
		} else {
			done()
		}
		return res, err
	}
	if key.of == nil || !key.params(req.Params, "name") {
		return next.Handle(ctx, req)
	}
	ticket := kept.results.Read(key)
	old, hit := ticket.Hit()
	if c.counters != nil {
		c.counters.Cached(kept.name, hit)
	}
	if hit {
		kept.hits.Add(1)
		audit.Note(ctx, func(e *audit.Entry) { e.Cached = true })
		return mcp.RawResult(old.json), nil
	}
	kept.misses.Add(1)
	var asked atomic.Bool
	res, err := next.Handle(forward.OnQuestion(ctx, func() { asked.Store(true) }), req)
	if err != nil || asked.Load() {
		return res, err
	}
	if raw, ok := final(res); ok {
		if now, _ := c.views.gateway.ToolKey(ctx, kept.name, key.tool, req); now == key.of {
			ticket.Keep(result{json: bytes.Clone(raw)}, len(raw)+key.bytes(), kept.ttl)
		}
	}
	return res, nil
}

// readFromCache answers a read of a resource from the cache, or passes it on and keeps the contents.
func (c *Chain) readFromCache(ctx context.Context, kept *cached, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	key := resultKey{of: c.views.gateway.ReadKey(ctx, kept.name, req), uri: string(req.Param("uri"))}
	if key.of == nil || !key.params(req.Params, "uri") {
		return next.Handle(ctx, req)
	}
	ticket := kept.reads.Read(key)
	if old, hit := ticket.Hit(); hit {
		kept.hits.Add(1)
		if c.counters != nil {
			c.counters.Cached(kept.name, true)
		}
		audit.Note(ctx, func(e *audit.Entry) { e.Cached = true })
		return mcp.RawResult(jsonx.With(nil, old.json, "ttlMs", strconv.AppendInt(nil, max(time.Until(old.until).Milliseconds(), 0), 10))), nil
	}
	var asked atomic.Bool
	res, err := next.Handle(forward.OnQuestion(ctx, func() { asked.Store(true) }), req)
	if err != nil || asked.Load() {
		return res, err
	}
	raw, ok := final(res)
	if !ok {
		return res, nil
	}
	fresh, public := freshness(raw)
	if fresh = min(fresh, kept.ttl); fresh <= 0 || public || c.views.gateway.ReadKey(ctx, kept.name, req) != key.of {
		return res, nil
	}
	kept.misses.Add(1)
	if c.counters != nil {
		c.counters.Cached(kept.name, false)
	}
	ticket.Keep(result{bytes.Clone(raw), time.Now().Add(fresh)}, len(raw)+key.bytes(), fresh)
	return res, nil
}

// freshness returns how long a server lets contents be used, and whether for all callers. A member that is missing or
// wrong means not at all, and for one caller.
func freshness(raw json.RawMessage) (ttl time.Duration, public bool) {
	v, _ := jsonx.Lookup(raw, "ttlMs")
	if ms, err := strconv.ParseFloat(string(v), 64); err == nil && ms > 0 {
		ttl = time.Duration(min(ms, float64(longest/time.Millisecond))) * time.Millisecond
	}
	scope, _ := jsonx.Lookup(raw, "cacheScope")
	return ttl, string(scope) == `"public"`
}

// longest bounds ttlMs, so that times cannot overflow.
const longest = 365 * 24 * time.Hour

// params takes arguments and metadata into the key, and passes over the member that the key has already. It returns
// false for a request with other members, such as answers to questions, or as a task.
func (k *resultKey) params(params json.RawMessage, known string) bool {
	for name, value := range jsonx.Members(params) {
		switch string(name) {
		case known:
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
