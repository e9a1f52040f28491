package host

import (
	"time"

	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/resultcache"
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

// results is the cache of one server. The zero value is empty. It may be used by several goroutines
// at once.
type results struct {
	resultcache.Cache[resultKey, *mcp.ToolResult] // results are shared, never modified
}

type resultKey struct {
	connection <-chan struct{} // its Done
	edition    edition         // of the server's lists
	tool       string          // hash of its definition
	args       string
}

// ticket is one call as the cache sees it: it reads and stores a result, or empties the cache.
type ticket struct {
	read *resultcache.Ticket[resultKey, *mcp.ToolResult] // nil: nothing is cached
	args int                                             // their bytes
	ttl  time.Duration
	done func() // of a call that writes; else nil
}

// begin is called before a call. The caller must call end afterwards.
func (r *results) begin(connection <-chan struct{}, p *pending) *ticket {
	if p.server.Cache <= 0 {
		return &ticket{}
	}
	if !readOnly(p.tool.Tool) {
		return &ticket{done: r.Write()}
	}
	now, _, _ := p.server.standing()
	key := resultKey{connection, now, approval.Hash(p.tool.Tool), string(jsonx.Canonical(p.args))}
	return &ticket{read: r.Read(key), args: len(key.args), ttl: p.server.Cache}
}

// end is called after the call, whatever its outcome.
func (t *ticket) end() {
	if t.done != nil {
		t.done()
	}
}

// hit returns a cached result that has not expired, or nil.
func (t *ticket) hit() *mcp.ToolResult {
	if t.read == nil {
		return nil
	}
	res, _ := t.read.Hit()
	return res
}

// keep stores the result of the call, unless the cache was emptied in the meantime.
func (t *ticket) keep(res *mcp.ToolResult) {
	if t.read != nil && !res.IsError {
		t.read.Keep(res, len(res.JSON())+t.args, t.ttl)
	}
}
