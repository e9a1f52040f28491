package host

import (
	chain "container/list"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// What is kept of results, for servers that opt in by Server.Cache:
//
//   - Results of tools that the server says are read-only; no errors.
//   - For the connection that they came by, and so for the credentials that it was opened with.
//     No two servers of a host share any, even if they have the same identity.
//   - For the tool as it was defined, and for arguments that mean the same.
//   - Until Server.Cache has passed, the server says that its tools have changed, or a tool
//     that is not read-only is called there. What was asked before that and is answered after
//     it is not kept.

// How much is kept for one server, in bytes.
const (
	maxKept    = 4 << 20
	maxKeptOne = 512 << 10
)

// results are those kept for one server. The zero value is empty; it may be used by several
// goroutines.
type results struct {
	mu      sync.Mutex
	bytes   int                          // guarded by mu
	entries map[resultKey]*chain.Element // of *keptResult; guarded by mu
	order   chain.List                   // the oldest last; guarded by mu
	writing int                          // calls under way that may change something; guarded by mu
	changes uint64                       // times that everything was dropped; guarded by mu
}

type resultKey struct {
	connection <-chan struct{} // its Done
	edition    edition         // of what the server offers
	tool       string          // the hash of its definition
	args       string
}

type keptResult struct {
	key   resultKey
	res   *mcp.ToolResult // shared, and not changed
	bytes int
	until time.Time
}

// ticket is a call that takes results from there, or makes them void.
type ticket struct {
	from    *results // nil: nothing is kept
	key     resultKey
	ttl     time.Duration
	writes  bool
	changes uint64 // as the call began
}

// begin is called before a call. End must follow.
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

// end is called after the call, whatever came of it.
func (t *ticket) end() {
	if t.from == nil || !t.writes {
		return
	}
	t.from.drop()
	t.from.mu.Lock()
	defer t.from.mu.Unlock()
	t.from.writing--
}

// hit returns a result that was kept and is still good; nil: there is none.
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

// keep keeps the result of the call, if nothing has happened meanwhile that makes it void.
func (t *ticket) keep(res *mcp.ToolResult) {
	if t.from == nil || t.writes || res.IsError {
		return
	}
	size := len(mcp.ResultJSON(res)) + len(t.key.args) + 200
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

// remove removes one; mu is held.
func (r *results) remove(e *chain.Element) {
	kept := r.order.Remove(e).(*keptResult)
	delete(r.entries, kept.key)
	r.bytes -= kept.bytes
}

// drop makes everything void that is kept or under way.
func (r *results) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	r.bytes, r.entries = 0, nil
	r.order.Init()
}
