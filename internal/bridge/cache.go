package bridge

import (
	chain "container/list"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// The cache of a client for the results of a modern server (2026-07-28, server/utilities/caching):
//
//   - It holds complete results of the six cacheable methods, for ttlMs after they arrived. It
//     does not prefetch.
//   - Each Session has one cache, because it is one principal to its server: private results are
//     not shared. Results of forwarded requests are cached only if they are public.
//   - A notification of a change drops the results it affects, including the answer to an earlier
//     request that has not arrived yet.
//   - Answers to questions are not part of a key, so the results of a call that asked are not
//     cached.

// cacheUse says how a request uses the cache.
type cacheUse uint8

const (
	cacheNone   cacheUse = iota
	cachePublic          // results for everybody
	cacheOwn             // also results private to the session
	cacheFill            // nothing is read, everything is stored
)

// maxFresh bounds ttlMs, so that times cannot overflow.
const maxFresh = 365 * 24 * time.Hour

// cache stores results. The zero value stores none. It is safe for several goroutines.
type cache struct {
	most int // bytes; set before it is used

	mu      sync.Mutex
	bytes   int                       // guarded by mu
	entries map[string]*chain.Element // of *cached, by key; guarded by mu
	order   chain.List                // least recently used last; guarded by mu
	changes map[string]int            // changes by topic, to recognize late answers; guarded by mu
}

type cached struct {
	key, method, uri string
	raw              json.RawMessage
	public           bool
	until            time.Time
}

func (e *cached) size() int { return len(e.key) + len(e.uri) + len(e.raw) + 200 }

// ticket is the state of the cache when a request was sent.
type ticket struct {
	key, method, uri string
	change           int
}

// topic returns the key for changes: a change drops all entries of a topic, and late results of the
// topic are not cached.
func topic(method string) string {
	if method == revision.MethodTemplates {
		return revision.MethodResources // one notification stands for both lists
	}
	return method
}

// ticket describes a request: its method, and the params that the result may depend on.
func (c *cache) ticket(method string, params, caps json.RawMessage) ticket {
	t := ticket{method: method}
	params = WithoutMeta(params, "traceparent", "tracestate", "baggage", "progressToken")
	t.key = method + "\n" + string(params) + "\n" + string(caps)
	if method == revision.MethodRead {
		raw, _ := jsonx.Lookup(params, "uri")
		t.uri, _ = jsonx.Unquote(raw)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.change = c.changes[topic(method)]
	return t
}

// get returns a fresh result. Its ttlMs is the time that remains.
func (c *cache) get(t ticket, use cacheUse) (json.RawMessage, bool) {
	if use != cachePublic && use != cacheOwn {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.entries[t.key]
	if el == nil {
		return nil, false
	}
	e := el.Value.(*cached)
	left := time.Until(e.until)
	if left <= 0 {
		c.remove(el)
		return nil, false
	}
	if !e.public && use != cacheOwn {
		return nil, false
	}
	c.order.MoveToFront(el)
	return jsonx.With(nil, e.raw, "ttlMs", strconv.AppendInt(nil, left.Milliseconds(), 10)), true
}

// put caches a complete result that has just arrived, if the server allows it and nothing has
// changed since the request was sent.
func (c *cache) put(t ticket, use cacheUse, raw json.RawMessage) {
	ttl, public := Freshness(raw)
	if use == cacheNone || ttl <= 0 || (use == cachePublic && !public) {
		return
	}
	e := &cached{key: t.key, method: t.method, uri: t.uri, raw: append(json.RawMessage(nil), raw...), public: public, until: time.Now().Add(ttl)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes[topic(t.method)] != t.change || e.size() > c.most {
		return
	}
	if c.entries == nil {
		c.entries = map[string]*chain.Element{}
	}
	if old := c.entries[e.key]; old != nil {
		c.remove(old)
	}
	c.entries[e.key] = c.order.PushFront(e)
	c.bytes += e.size()
	for c.bytes > c.most {
		c.remove(c.order.Back())
	}
}

// Freshness reads how long, and for whom, a result may be cached. A missing, negative or malformed
// value counts as 0 or as private.
func Freshness(raw json.RawMessage) (ttl time.Duration, public bool) {
	v, _ := jsonx.Lookup(raw, "ttlMs")
	if ms, err := strconv.ParseFloat(string(v), 64); err == nil && ms > 0 {
		ttl = time.Duration(min(ms, float64(maxFresh/time.Millisecond))) * time.Millisecond
	}
	scope, _ := jsonx.Lookup(raw, "cacheScope")
	return ttl, string(scope) == `"public"`
}

// remove drops an entry; mu is held.
func (c *cache) remove(el *chain.Element) {
	e := c.order.Remove(el).(*cached)
	delete(c.entries, e.key)
	c.bytes -= e.size()
}

// drop drops all entries of a method's topic, and prevents caching of results that have not arrived
// yet.
func (c *cache) drop(method string) {
	c.dropIf(method, func(*cached) bool { return true })
}

func (c *cache) dropIf(method string, hit func(*cached) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == nil {
		c.changes = map[string]int{}
	}
	c.changes[topic(method)]++
	for _, el := range c.entries {
		if e := el.Value.(*cached); topic(e.method) == topic(method) && hit(e) {
			c.remove(el)
		}
	}
}

// changed drops the entries that a notification from the server affects (CACHE-26-014).
func (c *cache) changed(method string, params json.RawMessage) {
	switch method {
	case revision.NoteToolsChanged:
		c.drop(revision.MethodTools)
	case revision.NotePromptsChanged:
		c.drop(revision.MethodPrompts)
	case revision.NoteResourcesChanged:
		c.drop(revision.MethodResources)
	case revision.NoteResourceUpdated:
		// A change of a part, such as a file in a folder, also changes the whole resource.
		raw, _ := jsonx.Lookup(params, "uri")
		uri, _ := jsonx.Unquote(raw)
		c.dropIf(revision.MethodRead, func(e *cached) bool { return strings.HasPrefix(uri, e.uri) })
	}
}

// close drops everything and stores nothing more.
func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most, c.bytes, c.entries = 0, 0, nil
	c.order.Init()
}
