package gateway

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A list of the gateway is merged from the lists of its servers, encoded once, and shared by all
// callers who see the same entries of the same lists. The identity of a caller is not part of the
// cache key, so two callers receive the same bytes only if encoding the list for each of them would
// give the same bytes. Partial lists are not cached.

// part is the contribution of one server to a list.
type part struct {
	list *keptList // nil: nothing

	// left has a bit for each entry of the list, set if middleware keeps the entry. It counts only
	// if filtered is true; otherwise all entries are kept.
	left     string
	filtered bool
}

// entries yields the entries that are kept.
func (p part) entries(yield func(*entry) bool) {
	if p.list == nil {
		return
	}
	for i := range p.list.entries {
		if p.filtered && (i/8 >= len(p.left) || p.left[i/8]&(1<<(i%8)) == 0) {
			continue
		}
		if !yield(&p.list.entries[i]) {
			return
		}
	}
}

// parts returns the part of each upstream in a list, in the order of the upstreams. It asks those
// whose part is not cached, in parallel.
func (g *Gateway) parts(ctx context.Context, k *listKind, h *hurry) []part {
	ups := g.upstreams()
	found := make([]part, len(ups))
	who := clientOf(ctx)
	var asked []int
	for i, up := range ups {
		if list, ok := up.known(who, k, h); ok {
			found[i] = up.choose(ctx, k, list)
		} else {
			asked = append(asked, i)
		}
	}
	g.atOnce(ctx, k.Method, asked, func(i int) { found[i] = ups[i].shown(ctx, k) })
	return found
}

// atOnce calls f with each of numbers in parallel and waits for all. If f panics in code of the
// user, that call has no effect.
func (g *Gateway) atOnce(ctx context.Context, where string, numbers []int, f func(int)) {
	var wg sync.WaitGroup
	for _, i := range numbers {
		wg.Go(func() { _ = g.user().Run(ctx, where, func() error { f(i); return nil }) })
	}
	wg.Wait()
}

// user runs code of the user on goroutines of the gateway.
func (g *Gateway) user() *usercode.Runner { return &usercode.Runner{Logger: g.log()} }

// indexes returns the indexes of ups.
func indexes(ups []*upstream) []int {
	all := make([]int, len(ups))
	for i := range all {
		all[i] = i
	}
	return all
}

// list answers a list request with one page that merges the lists of the upstreams. If two
// upstreams list the same URI, the first one has it. A part that comes too late is announced as a
// change.
func (g *Gateway) list(ctx context.Context, req *mcp.Request, k *listKind) (mcp.Result, error) {
	call := mcp.CallFrom(ctx)
	who := clientOfCall(call)
	h := &hurry{until: time.Now().Add(listPatience), audience: audienceOf(ctx, call, req)}
	ctx = context.WithValue(who.as(ctx), hurryKey{}, h)
	pages := k != listTools || who.showsPages()
	parts := g.parts(ctx, k, h)
	if h.partial() {
		return mcp.RawResult(append(h.appendMeta(g.merge(k, parts, pages), g.hides()), '}')), nil
	}
	key, ok := keyOf(k, parts, pages)
	if !ok {
		return mcp.RawResult(append(g.merge(k, parts, pages), '}')), nil
	}
	return g.catalogue.get(key, func() []byte { return append(g.merge(k, parts, pages), '}') }), nil
}

// Kept returns a list of all servers, in the form of the method such as tools/list, for the operator of the
// gateway: as far as it has their lists for callers without a principal, and without Middleware. It asks no
// server. While the lists are the same, so is the result. It is nil for a method that is not a list.
func (g *Gateway) Kept(method string) mcp.Result {
	k := listOf(method)
	if k == nil {
		return nil
	}
	var parts []part
	for _, up := range g.upstreams() {
		parts = append(parts, part{list: up.cache.get(client{}, k)})
	}
	key, ok := keyOf(k, parts, true)
	if !ok {
		return mcp.RawResult(append(g.merge(k, parts, true), '}')).Keep()
	}
	return g.catalogue.get(key, func() []byte { return append(g.merge(k, parts, true), '}') })
}

// KeptToolsOf returns the tools of one server as Kept does, but by the server's own names for them. It
// returns nil if the gateway does not have the server, or a list of it.
func (g *Gateway) KeptToolsOf(server string) mcp.Result {
	for _, up := range g.upstreams() {
		if up.name != server {
			continue
		}
		if list := up.cache.get(client{}, listTools); list != nil {
			return mcp.RawResult(encodeList(listTools, part{list: list}.entries))
		}
	}
	return nil
}

// merge encodes a list without the closing brace.
func (g *Gateway) merge(k *listKind, parts []part, pages bool) []byte {
	size, n := 64, 0
	for _, p := range parts {
		if p.list != nil {
			size, n = size+p.list.size+(len(p.list.entries)+1)*24, n+len(p.list.entries)
		}
	}
	out := jsonx.AppendString(append(make([]byte, 0, size), '{'), k.Member)
	out = append(out, ':', '[')
	seen := make(map[string]bool, n)
	for _, p := range parts {
		for e := range p.entries {
			if !pages && forPages(e.raw) { // T-122
				continue
			}
			id := e.id
			if k.Key == "name" {
				id = nameOf(e.up.prefix, e.up.name, id)
			}
			if seen[id] {
				g.log().Debug("name used by another feature", "server", e.up.name, "name", id)
				continue
			}
			if len(seen) > 0 {
				out = append(out, ',')
			}
			seen[id] = true
			if id == e.id {
				out = append(out, e.raw...)
			} else {
				out = jsonx.With(out, e.raw, k.Key, jsonx.AppendString(nil, id))
			}
		}
	}
	out = append(out, ']')
	if g.hides() {
		out = append(out, `,"ttlMs":0,"cacheScope":"private"`...)
	}
	return out
}

// keyOf returns the cache key of a merged list. It returns false if a part has no serial, because
// then the list cannot be cached.
func keyOf(k *listKind, parts []part, pages bool) (string, bool) {
	key := make([]byte, 0, len(k.Method)+1+len(parts)*10)
	key = append(key, k.Method...)
	if pages {
		key = append(key, '+')
	} else {
		key = append(key, '-')
	}
	for _, p := range parts {
		switch {
		case p.list == nil || len(p.list.entries) == 0:
			continue
		case p.list.serial == 0:
			return "", false
		}
		key = binary.AppendUvarint(key, p.list.serial)
		if !p.filtered {
			key = append(key, 0)
			continue
		}
		key = append(binary.AppendUvarint(append(key, 1), uint64(len(p.left))), p.left...)
	}
	return string(key), true
}

// Bounds of the cache of merged lists. Each list counts twice, because a server that returns it
// also keeps its form for the revision of the callers.
const (
	maxMerged      = 100
	maxMergedBytes = 64 << 20
)

// catalogue is the cache of merged lists. The zero value is ready for use.
type catalogue struct {
	mu    sync.Mutex
	lists map[string]*merged // guarded by mu
	bytes int                // of the encoded lists; guarded by mu
	uses  uint64             // guarded by mu
}

// merged is one encoded list.
type merged struct {
	once sync.Once
	res  mcp.Result
	size int // 0 before it is made; guarded by mu of the catalogue

	used uint64 // the value of uses at the last use; guarded by mu of the catalogue
}

// get returns a merged list. Concurrent callers for one key share one encoding.
func (c *catalogue) get(key string, encode func() []byte) mcp.Result {
	c.mu.Lock()
	m := c.lists[key]
	if m == nil {
		if c.lists == nil {
			c.lists = map[string]*merged{}
		}
		m = &merged{}
		c.lists[key] = m
	}
	c.uses++
	m.used = c.uses
	c.mu.Unlock()
	m.once.Do(func() {
		raw := json.RawMessage(encode())
		m.res = mcp.RawResult(raw).Keep()
		c.made(key, m, 2*len(raw)+2*len(key))
	})
	return m.res
}

// made records the size of a new list, and drops the least recently used lists if the bounds are
// exceeded.
func (c *catalogue) made(key string, m *merged, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists[key] != m {
		return
	}
	m.size = size
	c.bytes += size
	for c.bytes > maxMergedBytes || len(c.lists) > maxMerged {
		oldest := ""
		for key, m := range c.lists {
			if m.size > 0 && (oldest == "" || m.used < c.lists[oldest].used) {
				oldest = key
			}
		}
		if oldest == "" {
			return
		}
		c.bytes -= c.lists[oldest].size
		delete(c.lists, oldest)
	}
}
