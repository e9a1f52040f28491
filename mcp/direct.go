package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// direct are the requests in progress that come without a transport: those of [Server.Handle], and
// those of [Session.Handle] to a Handler of this process.
type direct struct {
	mu    sync.Mutex
	n     int                   // requests; guarded by mu
	parts map[*engine.Part]bool // contexts of the requests that have one; true: a subscription; guarded by mu
	over  chan struct{}         // closed when no request is left after drain; nil before drain; guarded by mu
}

// enter begins a request, which leave ends. A request with a context p can be cancelled; p may be
// nil. After drain, enter returns false.
func (d *direct) enter(p *engine.Part, method string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over != nil {
		return false
	}
	d.n++
	if p != nil {
		if d.parts == nil {
			d.parts = map[*engine.Part]bool{}
		}
		d.parts[p] = method == revision.MethodListen
	}
	return true
}

// leave ends a request.
func (d *direct) leave(p *engine.Part) {
	if p != nil {
		p.Cancel(nil)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.parts, p)
	if d.n--; d.n == 0 && d.over != nil {
		close(d.over)
	}
}

// drain refuses new requests and ends subscriptions, with the other requests if all is set. The
// channel is closed when no request is left.
func (d *direct) drain(cause error, all bool) (over <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over == nil {
		if d.over = make(chan struct{}); d.n == 0 {
			close(d.over)
		}
	}
	for p, subscription := range d.parts {
		if all || subscription {
			p.Cancel(cause)
		}
	}
	return d.over
}

// wait waits for the requests in progress after drain. When ctx ends it cancels them, gives up
// those that do not end soon, and returns true.
func (d *direct) wait(ctx context.Context, over <-chan struct{}) (late bool) {
	select {
	case <-over:
		return false
	default:
	}
	select {
	case <-over:
		return false
	case <-ctx.Done():
	}
	d.drain(errShutdown, true)
	select {
	case <-over:
	case <-time.After(closeGrace):
	}
	return true
}
