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

// The results of a modern server that a client keeps (2026-07-28, server/utilities/caching):
//
//   - Complete results of the six cacheable methods, for ttlMs after they came. Nothing
//     is fetched before somebody asks for it.
//   - One cache per Session, which is one principal to its server: nothing private is
//     shared. Results of forwarded requests are kept only if they are public.
//   - A notification that something changed drops what it is about, also if the answer
//     to an earlier request is still on its way.
//   - Answers to questions are no part of a key, so what they led to is not kept.

// cacheUse says what a request takes from the cache and leaves there.
type cacheUse uint8

const (
	cacheNone   cacheUse = iota
	cachePublic          // what anybody may see
	cacheOwn             // also what is private to the session
	cacheFill            // nothing is taken, all is left
)

// maxFresh bounds ttlMs, so that times cannot overflow.
const maxFresh = 365 * 24 * time.Hour

// cache keeps results. The zero value keeps none. It is safe for several goroutines.
type cache struct {
	most int // bytes; set before it is used

	mu      sync.Mutex
	bytes   int                       // guarded by mu
	entries map[string]*chain.Element // of *cached, by key; guarded by mu
	order   chain.List                // least recently used last; guarded by mu
	changes map[string]int            // by topic, so that late answers are known; guarded by mu
}

type cached struct {
	key, method, uri string
	raw              json.RawMessage
	public           bool
	until            time.Time
}

func (e *cached) size() int { return len(e.key) + len(e.uri) + len(e.raw) + 200 }

// ticket is the state of things when a request was sent.
type ticket struct {
	key, method, uri string
	change           int
}

// topic is what a change is about: all entries of a topic are dropped at once, or not
// kept when they come late.
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

// get returns a fresh result. Its ttlMs is what is left of it.
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

// put keeps a complete result that has just come, if the server allows it and nothing
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

// Freshness reads how long, and for whom, a result is good. A value that is missing, negative or
// meaningless stands for 0, or for private.
func Freshness(raw json.RawMessage) (ttl time.Duration, public bool) {
	v, _ := jsonx.Lookup(raw, "ttlMs")
	if ms, err := strconv.ParseFloat(string(v), 64); err == nil && ms > 0 {
		ttl = time.Duration(min(ms, float64(maxFresh/time.Millisecond))) * time.Millisecond
	}
	scope, _ := jsonx.Lookup(raw, "cacheScope")
	return ttl, string(scope) == `"public"`
}

// remove drops an entry. It is called with mu held.
func (c *cache) remove(el *chain.Element) {
	e := c.order.Remove(el).(*cached)
	delete(c.entries, e.key)
	c.bytes -= e.size()
}

// drop drops all entries of a method's topic, and does not keep those on their way.
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

// changed drops what a notification of the server is about (CACHE-26-014).
func (c *cache) changed(method string, params json.RawMessage) {
	switch method {
	case revision.NoteToolsChanged:
		c.drop(revision.MethodTools)
	case revision.NotePromptsChanged:
		c.drop(revision.MethodPrompts)
	case revision.NoteResourcesChanged:
		c.drop(revision.MethodResources)
	case revision.NoteResourceUpdated:
		// A part of a resource, such as a file in a folder, changes the resource too.
		raw, _ := jsonx.Lookup(params, "uri")
		uri, _ := jsonx.Unquote(raw)
		c.dropIf(revision.MethodRead, func(e *cached) bool { return strings.HasPrefix(uri, e.uri) })
	}
}

// close drops everything and keeps nothing more.
func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most, c.bytes, c.entries = 0, 0, nil
	c.order.Init()
}
