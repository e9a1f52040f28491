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

// weightOfLast is what the last call counts for among those before it, in means of latency and
// of errors.
const weightOfLast = 0.2

// stats is what is known of the calls at a server. The zero value is that of none.
type stats struct {
	mu       sync.Mutex
	calls    int           // that ended; guarded by mu
	errors   int           // of these; guarded by mu
	latency  time.Duration // mean, 0: not known; guarded by mu
	rate     float64       // mean of errors, 0 to 1; guarded by mu
	streak   int           // errors since the last success; guarded by mu
	answered time.Time     // when the server has answered last; guarded by mu
	underway []*timing     // guarded by mu

	aside time.Time     // until then no call of a group goes there; zero: it was not set aside; guarded by mu
	pause time.Duration // before the last trial; guarded by mu
	trial bool          // a call finds out whether it can come back; guarded by mu
}

// timing is the time that a call takes a server: that in which the server waits for a person
// or a model is not its own.
type timing struct {
	began time.Time

	mu     sync.Mutex
	asking int           // questions that wait for an answer; guarded by mu
	since  time.Time     // of the first of them; guarded by mu
	waited time.Duration // for answers so far; guarded by mu
}

// wait begins a wait for us, which the function that it returns ends.
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

// end counts a call, unless it was given up, which says nothing of the server.
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
		s.latency = max(s.latency, mean(s.latency, t.took())) // to fail fast is not to be fast
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

// heard notes that a server has answered something else than a call.
func (s *stats) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = time.Now()
}

// quiet tells for how long nothing was heard of a server that nothing is asked of: 0 if
// something is.
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

// expected is the latency of the next call, as far as anybody can know, at least a
// millisecond. A call that is under way for longer than that counts as if it ended now. Zero:
// nothing is known.
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

// show puts what is known into a status.
func (s *stats) show(to *ServerStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.Calls, to.Errors, to.Latency, to.ErrorRate, to.Underway = s.calls, s.errors, s.latency, s.rate, len(s.underway)
	if to.Group != "" && time.Until(s.aside) > 0 {
		to.Aside = s.aside
	}
}

// faulty tells whether an error is the server's fault: not one that tells what is wrong with
// the request, and not one that a login mends.
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
