package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// direct are the calls of [Server.Handle] in progress: those without a transport of the server.
type direct struct {
	mu    sync.Mutex
	n     int                   // calls; guarded by mu
	parts map[*engine.Part]bool // contexts of the calls that have one; true: a subscription; guarded by mu
	over  chan struct{}         // closed when no call is left after drain; nil before drain; guarded by mu
}

// enter begins a call, which leave ends. A call from a transport or Client.Open, such as every
// subscription, gets a context that wait can cancel. After drain, enter returns false.
func (d *direct) enter(ctx context.Context, method string) (_ context.Context, p *engine.Part, ok bool) {
	if engine.From(ctx) != nil {
		p = new(engine.Part)
		p.Init(ctx, nil)
		ctx = p
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over != nil {
		return nil, nil, false
	}
	d.n++
	if p != nil {
		if d.parts == nil {
			d.parts = map[*engine.Part]bool{}
		}
		d.parts[p] = method == revision.MethodListen
	}
	return ctx, p, true
}

// leave ends a call.
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

// drain ends subscriptions and refuses new calls. The channel is closed when no call is left.
func (d *direct) drain() (over <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over == nil {
		if d.over = make(chan struct{}); d.n == 0 {
			close(d.over)
		}
	}
	for p, subscription := range d.parts {
		if subscription {
			p.Cancel(errShutdown)
		}
	}
	return d.over
}

// wait waits for the calls in progress after drain. When ctx ends it cancels them, gives up those
// that do not end soon, and returns true.
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
	d.mu.Lock()
	for p := range d.parts {
		p.Cancel(errShutdown)
	}
	d.mu.Unlock()
	select {
	case <-over:
	case <-time.After(closeGrace):
	}
	return true
}
