package metrics

import (
	"cmp"
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

// Waited counts a request that has waited for a place among the connections of a server. It is for
// [gateway.Gateway.OnWait].
//
// [gateway.Gateway.OnWait]: https://pkg.go.dev/github.com/patchbay-dev/patchbay/gateway#Gateway
func (c *Counters) Waited(server string, waited time.Duration) { c.server(server).waits.lasted(waited) }

// lasted counts something that has ended now.
func (s *series) lasted(d time.Duration) { s.record(&ending{end: time.Now(), took: d}) }

// Decided counts a decision of a policy about a request, by the rule that decided; empty: the default.
// Rules beyond the first 1,000 count as "other".
func (c *Counters) Decided(allow bool, rule string) { c.policy.count(decision{allow, rule}).Add(1) }

const maxRules = 1000

type decision struct {
	allow bool
	rule  string
}

// decisions are counts of decisions. The zero value is empty.
type decisions struct {
	mu     sync.Mutex // of changes
	counts atomic.Pointer[map[decision]*atomic.Uint64]
}

// count returns the count of a decision.
func (d *decisions) count(of decision) *atomic.Uint64 {
	if n := d.known()[of]; n != nil {
		return n
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.known()
	if len(old) >= maxRules && of.rule != "" {
		of.rule = other
	}
	if n := old[of]; n != nil {
		return n
	}
	counts := maps.Clone(old)
	if counts == nil {
		counts = map[decision]*atomic.Uint64{}
	}
	n := new(atomic.Uint64)
	counts[of] = n
	d.counts.Store(&counts)
	return n
}

func (d *decisions) known() map[decision]*atomic.Uint64 {
	if p := d.counts.Load(); p != nil {
		return *p
	}
	return nil
}

// samples returns the counts, by effect and rule.
func (d *decisions) samples() (out []Sample) {
	for of, n := range d.known() {
		effect := "deny"
		if of.allow {
			effect = "allow"
		}
		out = append(out, Sample{Labels: []string{effect, of.rule}, Value: float64(n.Load())})
	}
	slices.SortFunc(out, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.Labels[0], b.Labels[0]), cmp.Compare(a.Labels[1], b.Labels[1]))
	})
	return out
}
