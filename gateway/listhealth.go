package gateway

import (
	"context"
	"sync"
	"time"
)

// listHealth records whether a connection answers list requests. If it fails to answer one in time,
// no list waits for it until it is known to answer again.
type listHealth struct {
	mu      sync.Mutex
	since   time.Time // guarded by mu
	reason  string    // empty: it answers; guarded by mu
	probing bool      // guarded by mu
}

// probeTime bounds the wait for a server that did not answer a list in time.
const probeTime = time.Minute

// silent returns why and since when a connection does not answer; the reason is empty if it does.
func (s *listHealth) silent() (time.Time, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.reason
}

// fell records that a connection did not answer. It returns false if that was known.
func (s *listHealth) fell(reason string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason != "" {
		return false
	}
	s.since, s.reason = time.Now(), reason
	return true
}

// rose records that the connection answers again.
func (s *listHealth) rose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = ""
}

// probe checks on a new goroutine, which ends within probeTime, whether a silent connection answers
// again, and calls back if it does. It does nothing while a check is in progress.
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
