package gateway

import "time"

// unstarted says that a server could not be started for a caller, although the main connection, which
// is then only for lists, lasts.
type unstarted struct {
	state  State
	reason string
	since  time.Time
}

// startFailed notes why a connection for a caller could not be opened; mu is held.
func (p *pool) startFailed(err error) {
	state, reason := failed(err)
	if p.unstarted != nil {
		p.unstarted.state, p.unstarted.reason = state, reason
		return
	}
	p.unstarted = &unstarted{state, reason, time.Now()}
	if p.retrying {
		p.spawn(p.tell)
	} else {
		p.retrying = p.spawn(p.retryStart)
	}
}

// started notes that a connection could be opened; mu is held.
func (p *pool) started() {
	if p.unstarted != nil {
		p.unstarted = nil
		p.spawn(p.tell)
	}
}

// retryStart opens and closes a connection after growing pauses until that succeeds, so that the state
// is right without further requests: a balancer sends none to a gateway that is not ready. It ends
// when a connection for a caller was opened, or the main connection has ended.
func (p *pool) retryStart() {
	p.tell()
	for pause := firstPause; ; {
		rest(p.ctx, &pause)
		p.mu.Lock()
		if p.main == nil {
			p.unstarted = nil // the state is that of the main connection
		}
		p.retrying = p.unstarted != nil && p.ctx.Err() == nil
		over := !p.retrying
		p.mu.Unlock()
		if over {
			return
		}
		c, err := p.open(p.ctx)
		if err == nil {
			c.up.Close()
		}
		p.mu.Lock()
		if err == nil {
			p.started()
		} else if p.unstarted != nil && p.ctx.Err() == nil {
			p.startFailed(err)
		}
		p.mu.Unlock()
	}
}
