package main

import (
	"errors"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/metrics"
)

// measured has the flag for metrics.
type measured struct {
	Metrics string `name:"metrics" placeholder:"ADDR" help:"Serve metrics for Prometheus at http://ADDR/metrics."`
}

// serveMetrics serves counters on the address of --metrics until stop is called. Without the flag it
// does nothing.
func (m *measured) serveMetrics(a *app, c *metrics.Counters) (stop func(), err error) {
	if m.Metrics == "" {
		return func() {}, nil
	}
	address, _, err := listen.Address(m.Metrics, false)
	if err != nil && !errors.Is(err, listen.ErrShared) {
		return nil, usagef("--metrics %s: %v", m.Metrics, err).Hint("--metrics 127.0.0.1:9090")
	}
	shared := err != nil
	l, err := listen.Open(address)
	if err != nil {
		f := &fault{Code: exitLocal, Err: netfault.Listen(address, err)}
		return nil, f.Hint(a.elsewhere("listen.metrics", "--metrics 127.0.0.1:0"))
	}
	p := listen.NewPage(l, "/metrics", c, a.logger())
	if shared {
		a.talk.Always("patchbay: warning: anyone who reaches " + l.Addr().String() + " can read the metrics, with the names of servers and tools")
	}
	a.talk.Note("metrics: %s", p.URL)
	p.Serve() // ends with Close
	return func() { p.Close() }, nil
}

// newCounters makes the counters of what a gateway serves; the servers' names are those that
// owner returns for the name of a tool.
func (h *upServer) newCounters(owner func(name string) (server, tool string)) *metrics.Counters {
	c := &metrics.Counters{Version: Version, Listed: h.gateway.Lists, Owner: owner, Upstreams: func() (out []metrics.Upstream) {
		for _, s := range h.report().Servers {
			out = append(out, metrics.Upstream{Name: s.Name, State: s.State, Connections: s.Conns, Processes: s.Processes, Restarts: s.Restarts, MemoryBytes: s.Memory, Breakers: board.Breakers(s.Replicas)})
		}
		return out
	}}
	h.gateway.OnWait, h.gateway.OnClose = c.Waited, c.Closed
	return c
}
