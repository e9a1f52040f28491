package host

import (
	chain "container/list"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Results are cached for servers that opt in with Server.Cache:
//
//   - Only successful results of tools that the server declares read-only are cached.
//   - A cached result belongs to one connection, and so to the credentials of that connection.
//     Servers never share results, even if they have the same identity.
//   - It belongs to the tool as it was defined, and to arguments that are equal as JSON.
//   - It expires after Server.Cache. It expires earlier if the server reports that its tools
//     changed, or if a tool of the server that is not read-only is called. The results of
//     calls in progress at that moment are not cached.

// Bounds of the cache of one server, in bytes.
const (
	maxKept    = 4 << 20
	maxKeptOne = 512 << 10
)

// results is the cache of one server. The zero value is empty. It may be used by several goroutines
// at once.
type results struct {
	mu      sync.Mutex
	bytes   int                          // guarded by mu
	entries map[resultKey]*chain.Element // of *keptResult; guarded by mu
	order   chain.List                   // most recently stored first; guarded by mu
	writing int                          // calls in progress that may change something; guarded by mu
	changes uint64                       // number of times the cache was emptied; guarded by mu
}

type resultKey struct {
	connection <-chan struct{} // its Done
	edition    edition         // of the server's lists
	tool       string          // hash of its definition
	args       string
}

type keptResult struct {
	key   resultKey
	res   *mcp.ToolResult // shared, never modified
	bytes int
	until time.Time
}

// ticket is one call as the cache sees it: it reads and stores a result, or empties the cache.
type ticket struct {
	from    *results // nil: nothing is cached
	key     resultKey
	ttl     time.Duration
	writes  bool
	changes uint64 // when the call began
}

// begin is called before a call. The caller must call end afterwards.
func (r *results) begin(connection <-chan struct{}, p *pending) *ticket {
	if p.server.Cache <= 0 {
		return &ticket{}
	}
	t := &ticket{from: r, ttl: p.server.Cache, writes: !readOnly(p.tool.Tool)}
	if t.writes {
		r.mu.Lock()
		r.writing++
		r.mu.Unlock()
		r.drop()
		return t
	}
	now, _, _ := p.server.standing()
	t.key = resultKey{connection, now, approval.Hash(p.tool.Tool), string(jsonx.Canonical(p.args))}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.changes = r.changes
	return t
}

// end is called after the call, whatever its outcome.
func (t *ticket) end() {
	if t.from == nil || !t.writes {
		return
	}
	t.from.drop()
	t.from.mu.Lock()
	defer t.from.mu.Unlock()
	t.from.writing--
}

// hit returns a cached result that has not expired, or nil.
func (t *ticket) hit() *mcp.ToolResult {
	if t.from == nil || t.writes {
		return nil
	}
	r := t.from
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[t.key]
	if e == nil {
		return nil
	}
	kept := e.Value.(*keptResult)
	if !time.Now().Before(kept.until) {
		r.remove(e)
		return nil
	}
	return kept.res
}

// keep stores the result of the call, unless the cache was emptied in the meantime.
func (t *ticket) keep(res *mcp.ToolResult) {
	if t.from == nil || t.writes || res.IsError {
		return
	}
	size := len(res.JSON()) + len(t.key.args) + 200
	if size > maxKeptOne {
		return
	}
	r := t.from
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writing > 0 || r.changes != t.changes {
		return
	}
	if e := r.entries[t.key]; e != nil {
		r.remove(e)
	}
	if r.entries == nil {
		r.entries = map[resultKey]*chain.Element{}
	}
	r.entries[t.key] = r.order.PushFront(&keptResult{t.key, res, size, time.Now().Add(t.ttl)})
	for r.bytes += size; r.bytes > maxKept; {
		r.remove(r.order.Back())
	}
}

// remove removes one result; mu is held.
func (r *results) remove(e *chain.Element) {
	kept := r.order.Remove(e).(*keptResult)
	delete(r.entries, kept.key)
	r.bytes -= kept.bytes
}

// drop empties the cache and keeps results of calls in progress out of it.
func (r *results) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	r.bytes, r.entries = 0, nil
	r.order.Init()
}
