package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// weightOfLast is the weight of the last call in the moving averages of latency and errors.
const weightOfLast = 0.2

// stats holds statistics of the calls to a server. The zero value has no calls.
type stats struct {
	mu       sync.Mutex
	calls    int           // that ended; guarded by mu
	errors   int           // calls that failed; guarded by mu
	latency  time.Duration // moving average; 0: unknown; guarded by mu
	rate     float64       // moving average of errors, 0 to 1; guarded by mu
	streak   int           // errors since the last success; guarded by mu
	answered time.Time     // last answer from the server; guarded by mu
	underway []*timing     // guarded by mu

	aside time.Time     // the group sends no calls there until then; zero: not set aside; guarded by mu
	pause time.Duration // length of the last time aside; guarded by mu
	trial bool          // one call tests whether the server is back; guarded by mu
}

// timing measures a call without the time in which the server waits for a person or a model.
type timing struct {
	began time.Time

	mu     sync.Mutex
	asking int           // questions without an answer yet; guarded by mu
	since  time.Time     // start of the first of them; guarded by mu
	waited time.Duration // total so far; guarded by mu
}

// wait starts a wait of the server for an answer, and returns the function that ends it.
func (t *timing) wait() (over func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asking++; t.asking == 1 {
		t.since = time.Now()
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.asking--; t.asking == 0 {
			t.waited += time.Since(t.since)
		}
	}
}

func (t *timing) took() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	waited := t.waited
	if t.asking > 0 {
		waited += time.Since(t.since)
	}
	return time.Since(t.began) - waited
}

func (s *stats) begin() *timing {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &timing{began: time.Now()}
	s.underway = append(s.underway, t)
	s.trial = !s.aside.IsZero()
	return t
}

// end counts a call, unless the caller cancelled it, which says nothing about the server.
func (s *stats) end(ctx context.Context, t *timing, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underway = slices.DeleteFunc(s.underway, func(u *timing) bool { return u == t })
	bad := faulty(err)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		s.trial = false
		return
	case bad:
		s.errors++
		s.streak++
		s.rate = mean(s.rate, 1)
		s.latency = max(s.latency, mean(s.latency, t.took())) // a fast failure must not look like a fast server
		s.setAside()
	default:
		s.streak, s.rate = 0, mean(s.rate, 0)
		s.aside, s.pause, s.trial = time.Time{}, 0, false
		s.answered = time.Now()
		if s.latency == 0 {
			s.latency = t.took()
		} else {
			s.latency = mean(s.latency, t.took())
		}
	}
	s.calls++
}

func mean[T ~int64 | ~float64](before, last T) T {
	return T((1-weightOfLast)*float64(before) + weightOfLast*float64(last))
}

// heard records an answer from the server outside of calls.
func (s *stats) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = time.Now()
}

// quiet returns how long the server has been quiet, or 0 if calls are in progress.
func (s *stats) quiet(since time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.underway) > 0 {
		return 0
	}
	if s.answered.After(since) {
		since = s.answered
	}
	return time.Since(since)
}

// expected estimates the latency of the next call, at least a millisecond. A call in progress that
// has already taken longer counts as if it ended now. Zero: unknown.
func (s *stats) expected() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.latency
	for _, t := range s.underway {
		if took := t.took(); d > 0 && took > d {
			d = mean(d, took)
		}
	}
	if d > 0 {
		d = max(d, time.Millisecond)
	}
	return d
}

// show copies the statistics to a status.
func (s *stats) show(to *ServerStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.Calls, to.Errors, to.Latency, to.ErrorRate, to.Underway = s.calls, s.errors, s.latency, s.rate, len(s.underway)
	if to.Group != "" && time.Until(s.aside) > 0 {
		to.Aside = s.aside
	}
}

// faulty reports whether an error is the server's fault. Errors that blame the request, or that a
// login fixes, are not.
func faulty(err error) bool {
	var rpc *mcp.Error
	var login *gateway.LoginError
	switch {
	case err == nil, errors.As(err, &login):
		return false
	case errors.As(err, &rpc):
		return rpc.Code == jsonrpc.CodeInternal || rpc.Code == jsonrpc.CodeParse
	}
	return true
}
