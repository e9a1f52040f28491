package gateway

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// reacher is an Upstream that reports whether its server can be reached, as a [*mcp.Session] does.
type reacher interface {
	Reach() (changed <-chan struct{}, err error)
	Raw(ctx context.Context, method string, params any, opts ...mcp.CallOption) (json.RawMessage, error)
}

// watchReach takes the server out of lists while it cannot be reached, until ctx ends. Requests of
// callers, the subscription and a ping after growing pauses find out that it can be reached again.
// Its lists are then requested again.
func (n *subscription) watchReach(ctx context.Context) {
	r, ok := n.w.(reacher)
	if !ok {
		return
	}
	down, unsure, pause := false, false, firstPause
	for ctx.Err() == nil {
		changed, err := r.Reach()
		switch {
		case err != nil:
			down = true
			if reason := err.Error(); n.c.lists.fell(reason) {
				n.p.up.listsChanged(reason)
			}
		case down:
			down = false
			n.c.lists.rose()
			n.p.up.listsChanged("")
			n.listsChanged(changedAll)
		}
		var due <-chan time.Time
		if down || unsure {
			due = time.After(pause/2 + rand.N(pause/2))
			pause = min(2*pause, longPause)
		} else {
			pause = firstPause
		}
		select {
		case <-changed:
		case <-due:
			unsure = n.ping(ctx, r)
		case <-n.suspected:
			unsure = n.ping(ctx, r)
		case <-ctx.Done():
		}
	}
}

// ping sends a request for which any answer will do, because Reach has the outcome. It reports
// whether the request was lost, as on an old connection that the server has closed.
func (n *subscription) ping(ctx context.Context, r reacher) (lost bool) {
	ctx, cancel := context.WithTimeout(ctx, n.p.g.listTimeout())
	defer cancel()
	method := "ping"
	if n.c.modern { // 2026-07-28 has no ping
		method = "server/discover"
	}
	_, err := r.Raw(ctx, method, nil, mcp.WithoutCache())
	n.p.g.log().DebugContext(ctx, method, "server", n.p.src.Name, "err", err)
	return err != nil && n.c.lost(ctx, err)
}

// suspect pings over the main connection after a connection was lost or could not be opened: the
// server may have gone away; mu is held.
func (p *pool) suspect() {
	if p.main == nil || p.main.shared == nil {
		return
	}
	select {
	case p.main.shared.suspected <- struct{}{}:
	default:
	}
}
