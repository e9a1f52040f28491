package metrics

import (
	"context"
	"log/slog"
	"runtime/debug"
)

// The methods below call the function of the field with the same name. A function that panics
// returns nothing.

func (c *Counters) listed(server, tool string) (yes bool) {
	defer c.recovered("Listed")
	return c.Listed(server, tool)
}

func (c *Counters) owner(name string) (server, tool string) {
	defer c.recovered("Owner")
	return c.Owner(name)
}

func (c *Counters) team(ctx context.Context) (name string) {
	defer c.recovered("Team")
	return c.Team(ctx)
}

func (c *Counters) upstreams() (all []Upstream) {
	defer c.recovered("Upstreams")
	return c.Upstreams()
}

func (c *Counters) audit() *AuditLog {
	defer c.recovered("Audit")
	state := c.Audit()
	return &state
}

func (c *Counters) faults() (n int) {
	defer c.recovered("Faults")
	return c.Faults()
}

// recovered stops a panic, and logs the first of each function. It must be deferred itself.
func (c *Counters) recovered(field string) {
	v := recover()
	if v == nil {
		return
	}
	if _, again := c.panicked.LoadOrStore(field, true); again {
		return
	}
	log := c.Logger
	if log == nil {
		log = slog.Default()
	}
	log.Error("panic", "in", "Counters."+field, "err", v, "stack", string(debug.Stack()))
}
