package metrics

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Session measures how long the session of a client lasts. It is for [mcp.Server.OnSession].
func (c *Counters) Session(session context.Context) {
	began, revision := time.Now(), ""
	if call := mcp.CallFrom(session); call != nil {
		revision = string(call.Revision)
	}
	context.AfterFunc(session, func() {
		s, _ := c.sessions.LoadOrStore(revision, new(series))
		s.(*series).lasted(time.Since(began))
	})
}

// Closed counts a connection to a server that has ended. It is for [gateway.Gateway.OnClose].
//
// [gateway.Gateway.OnClose]: https://pkg.go.dev/github.com/patchbay-dev/patchbay/gateway#Gateway
func (c *Counters) Closed(server string, lasted time.Duration) {
	c.server(server).connections.lasted(lasted)
}

// Waited counts a request that has waited for the start of a server, for a place among its
// connections or for its turn. It is for [gateway.Gateway.OnWait].
//
// [gateway.Gateway.OnWait]: https://pkg.go.dev/github.com/patchbay-dev/patchbay/gateway#Gateway
func (c *Counters) Waited(server string, waited time.Duration) { c.server(server).waits.lasted(waited) }

// lasted counts something that has ended now. A negative duration counts as zero.
func (s *series) lasted(d time.Duration) { s.record(&ending{end: now(), took: max(d, 0)}) }

// Decided counts a decision of a policy about a request, by the rule that decided; empty: the default.
// Rules beyond the first 1,000 count as "other".
func (c *Counters) Decided(allow bool, rule string) {
	effect := "deny"
	if allow {
		effect = "allow"
	}
	c.policy.count(effect, rule).Add(1)
}

// Refused counts a request that was not admitted, by the error code of its answer. It is for
// [auth.Guard.Refused].
//
// [auth.Guard.Refused]: https://pkg.go.dev/github.com/patchbay-dev/patchbay/auth#Guard
func (c *Counters) Refused(code string) { c.refused.count(code, "").Add(1) }

// Cached counts a call of a server whose result may be cached: a hit is answered without the server.
func (c *Counters) Cached(server string, hit bool) {
	result := "miss"
	if hit {
		result = "hit"
	}
	c.cached.count(server, result).Add(1)
}

const maxPairs = 1000

// pairs are counts by two labels. The zero value is empty.
type pairs struct {
	mu     sync.Mutex // of changes
	counts atomic.Pointer[map[[2]string]*atomic.Uint64]
}

// count returns the count of two labels. If there are too many, the second is "other".
func (p *pairs) count(first, second string) *atomic.Uint64 {
	key := [2]string{first, second}
	if n := p.known()[key]; n != nil {
		return n
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.known()
	if len(old) >= maxPairs && second != "" {
		key[1] = other
	}
	if n := old[key]; n != nil {
		return n
	}
	counts := maps.Clone(old)
	if counts == nil {
		counts = map[[2]string]*atomic.Uint64{}
	}
	n := new(atomic.Uint64)
	counts[key] = n
	p.counts.Store(&counts)
	return n
}

func (p *pairs) known() map[[2]string]*atomic.Uint64 {
	if counts := p.counts.Load(); counts != nil {
		return *counts
	}
	return nil
}

// samples returns the counts in the order of their labels.
func (p *pairs) samples() (out []Sample) {
	for key, n := range p.known() {
		out = append(out, Sample{Labels: key[:], Value: float64(n.Load())})
	}
	slices.SortFunc(out, func(a, b Sample) int { return slices.Compare(a.Labels, b.Labels) })
	return out
}
