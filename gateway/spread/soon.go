package spread

import (
	"context"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/mcp"
)

// soonTime bounds the wait for a replica that is being restarted, or connected to. A call waits for as long for
// a single server that starts.
const soonTime = time.Minute

// chooseSoon is choose. With waits, it waits while none can be chosen and one is being restarted
// or connected to.
func (c *conn) chooseSoon(ctx context.Context, req *mcp.Request, tried []*replica, waits bool) *replica {
	var late <-chan time.Time
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		soon := c.returning()
		r := c.choose(req, tried)
		if r != nil || !waits || !soon && !c.returning() { // it may have come back since the first look, or have gone
			return r
		}
		if late == nil {
			late = time.After(soonTime)
			defer wait.From(ctx).Since(time.Now())
		}
		if !c.changes(ctx, changed, late) {
			return nil
		}
	}
}

// legSoon waits for the leg of a replica while that is being restarted. It returns nil if there is none.
func (c *conn) legSoon(ctx context.Context, r *replica) *line {
	defer wait.From(ctx).Since(time.Now())
	late := time.After(soonTime)
	for {
		c.mu.Lock()
		i := slices.Index(c.g.replicas, r)
		leg, soon, changed := c.legs[i], c.soon[i], c.changed
		c.mu.Unlock()
		switch {
		case leg != nil && leg.closedWhy() == "":
			return leg
		case leg == nil && !soon && r.outWhy() != restarting:
			return nil
		}
		if !c.changes(ctx, changed, late) {
			return nil
		}
	}
}

// changes waits until the legs have changed. It returns false if the connection or the caller has ended before, or it is late.
func (c *conn) changes(ctx context.Context, changed <-chan struct{}, late <-chan time.Time) bool {
	select {
	case <-changed:
		return true
	case <-c.done:
	case <-late:
	case <-ctx.Done():
	}
	return false
}

// returning reports whether a replica is being restarted or connected to.
func (c *conn) returning() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isReturning()
}

// isReturning is returning; mu is held.
func (c *conn) isReturning() bool {
	if c.g.restarting() {
		return true
	}
	for i, l := range c.legs {
		if c.soon[i] || l != nil && l.closedWhy() == wasRestart {
			return true
		}
	}
	return c.arriving()
}

// arriving reports whether a replica is being connected to that the last attempt has not found faulty. Its status counts the
// connection before it is a leg, so such a replica is there for callers; mu is held.
func (c *conn) arriving() bool {
	for i, r := range c.g.replicas {
		if c.legs[i] == nil && !c.pausing[i] && r.allow() == nil && r.faultless() {
			return true
		}
	}
	return false
}

// tries notes that a replica is being connected to.
func (c *conn) tries(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pausing[i] {
		c.pausing[i] = false
		c.announce()
	}
}

// missed notes that a replica could not be connected to.
func (c *conn) missed(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.soon[i], c.pausing[i] = false, true
	c.announce()
	if c.last != nil && !slices.Contains(c.soon, true) && !c.arriving() {
		c.end(c.last)
	}
}

// faultless reports whether the last attempt to connect to the replica has not failed.
func (r *replica) faultless() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason == ""
}
