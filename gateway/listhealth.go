package gateway

import (
	"context"
	"sync"
	"time"
)

// listHealth tells whether a connection answers lists. Lists wait for one that does not once,
// and no more until it is known to answer again.
type listHealth struct {
	mu      sync.Mutex
	since   time.Time // guarded by mu
	reason  string    // empty: it answers; guarded by mu
	probing bool      // guarded by mu
}

// probeTime bounds the wait for a server that did not answer a list in time.
const probeTime = time.Minute

// silent returns why a connection is said not to answer, and since when; empty if it does.
func (s *listHealth) silent() (time.Time, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.reason
}

// fell records that a connection has not answered; false if that is known.
func (s *listHealth) fell(reason string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason != "" {
		return false
	}
	s.since, s.reason = time.Now(), reason
	return true
}

// probe looks whether a silent connection answers again, on a goroutine of its own that ends
// within probeTime, unless that is being looked at. Back is called if it does.
func (s *listHealth) probe(ask func(context.Context) error, back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probing {
		return
	}
	s.probing = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), probeTime)
		defer cancel()
		err := ask(ctx)
		s.mu.Lock()
		s.probing = false
		if err == nil {
			s.reason = ""
		}
		s.mu.Unlock()
		if err == nil {
			back()
		}
	}()
}
