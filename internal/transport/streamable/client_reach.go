package streamable

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// reach records whether the server can be reached: whether the last request failed because no
// connection could be opened.
type reach struct {
	down atomic.Bool // err is not nil

	mu      sync.Mutex
	err     error         // guarded by mu
	changed chan struct{} // closed when err becomes nil, or not nil; nil: nobody waits; guarded by mu
}

// note records the outcome of sending a request. Any response means that the server was reached.
func (r *reach) note(ctx context.Context, err error) {
	if err == nil && !r.down.Load() || ctx.Err() != nil {
		return
	}
	if err != nil {
		op, ok := errors.AsType[*net.OpError](err)
		if !ok || op.Op != "dial" {
			return
		}
		err = op
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if (err != nil) == (r.err != nil) {
		return
	}
	r.err = err
	r.down.Store(err != nil)
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Reach returns why the server cannot be reached, or nil, and a channel that is closed when it can
// be reached again, or no longer.
func (c *Client) Reach() (changed <-chan struct{}, err error) {
	r := &c.reach
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed, r.err
}
