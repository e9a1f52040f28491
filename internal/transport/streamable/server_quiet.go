package streamable

import "time"

// Proxies give up a request that gets no byte for a while, often a minute. So a call without an
// answer becomes an event stream within the time of KeepAlive, and comments follow. A timer for each
// call would cost more than the rest of a small one; one timer of the server looks at all.

// watcher looks for calls that have been quiet for too long. It owns a timer, which runs while calls
// start and until each has been looked at.
type watcher struct {
	timer *time.Timer // nil before the first call
	looks uint32      // so far
	ticks bool        // the timer runs
	used  bool        // a run has started since the last look
}

// watchLocked lets the watcher look at a run that starts; mu is held.
func (s *Server) watchLocked(r *run) {
	if s.KeepAlive <= 0 {
		return
	}
	v := &s.watcher
	r.since, v.used = v.looks, true
	switch {
	case v.ticks:
		return
	case v.timer == nil:
		v.timer = time.AfterFunc(s.KeepAlive/2, s.look)
	default:
		v.timer.Reset(s.KeepAlive / 2)
	}
	v.ticks = true
}

// look opens the responses of calls that started before the look before this one. It runs on the
// timer.
func (s *Server) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &s.watcher
	v.looks++
	for r := s.running; r != nil && v.looks-r.since <= 2; r = r.older { // the newest come first
		if p := r.quiet.Load(); p != nil && v.looks-r.since == 2 {
			go p.stayOpen() // ends within writeTimeout
		}
	}
	if v.ticks = v.used || s.running != nil && v.looks-s.running.since < 2; v.ticks {
		v.timer.Reset(s.KeepAlive / 2)
	}
	v.used = false
}

// stayOpen makes the response an event stream, if nothing has been sent and it can be one.
func (p *response) stayOpen() {
	if p.stream != nil {
		p.stream.stayOpen(p)
		return
	}
	if !p.mu.TryLock() {
		return // it is not quiet
	}
	defer p.mu.Unlock()
	if p.finished || p.events || p.err != nil || p.noEvents != nil {
		return
	}
	p.openLocked()
	_ = p.write([]byte(":\n\n")) // the next message gets the error
}

// stayOpen opens the stream of a legacy call on p. If the stream begins with an event id, its client
// can also resume it.
func (st *stream) stayOpen(p *response) {
	if !st.mu.TryLock() {
		return
	}
	defer st.mu.Unlock()
	switch {
	case st.done || st.conn != p || st.id != "" || p.noEvents != nil:
	case st.primes:
		st.beginLocked()
	default:
		_ = p.open() // the next message gets the error
	}
}
