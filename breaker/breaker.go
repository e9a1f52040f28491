package breaker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Rule says when a breaker opens, and for how long.
type Rule struct {
	Failures int           // this many failures open it; zero: half of Calls
	Calls    int           // among this many last requests; zero: 20
	Window   time.Duration // older requests do not count; zero: 30 seconds
	For      time.Duration // time from the opening to the probe; zero: 15 seconds
}

const (
	longest   = 2 * time.Minute // a breaker is open before it probes, unless For is longer
	probeTime = 5 * time.Second // bounds a probe
)

// WithDefaults returns the rule with the defaults in place of zero values.
func (r Rule) WithDefaults() Rule {
	if r.Calls <= 0 {
		r.Calls = 20
	}
	if r.Failures <= 0 || r.Failures > r.Calls {
		r.Failures = (r.Calls + 1) / 2
	}
	if r.Window <= 0 {
		r.Window = 30 * time.Second
	}
	if r.For <= 0 {
		r.For = 15 * time.Second
	}
	return r
}

// Breaker decides whether requests may go to a server. The exported fields must not change after its
// first use. It may be used by several goroutines at once, and must not be copied after its first use.
type Breaker struct {
	Name string // of the server in errors, such as `server "db"`
	Rule Rule

	// Probe finds out whether the server works again, on a connection of its own. Its context ends
	// after 5 seconds and with Stop. Nil: the breaker closes without a probe.
	Probe func(context.Context) error

	// OnChange is called when the breaker has opened or closed, in that order, and must not block. If
	// nil, nothing is called.
	OnChange func(Status)

	tellMu sync.Mutex // orders calls of OnChange

	mu       sync.Mutex
	rule     Rule          // Rule with defaults, after the first use; guarded by mu
	last     []attempt     // the last Calls requests, a ring; guarded by mu
	next     int           // where the next one goes in last; guarded by mu
	status   Status        // without Failures; guarded by mu
	failures Counts        // guarded by mu
	pause    time.Duration // of the last opening; guarded by mu
	timer    *time.Timer   // of the next probe; guarded by mu
	ctx      context.Context
	stop     context.CancelFunc
	stopped  bool           // guarded by mu
	probes   sync.WaitGroup // of running probes
}

// attempt is a finished request.
type attempt struct {
	at     time.Time
	failed bool
}

// Status is the state of a breaker.
type Status struct {
	Open   bool      // requests fail at once
	Since  time.Time // when it opened or closed last; zero: it has never opened
	Until  time.Time // of an open breaker: when it probes next
	Kind   Kind      // of an open breaker: that of the fault that opened it
	Cause  string    // of an open breaker: the last fault
	Opened int       // how many times it has opened

	Failures Counts // since the beginning
}

// Allow returns nil if a request may be sent, else an [*OpenError].
func (b *Breaker) Allow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.status.Open {
		return nil
	}
	return &OpenError{b.Name, b.status.Cause, b.status.Until}
}

// Done counts a request that [Breaker.Allow] has allowed, given its context and what the server's
// handler returned.
func (b *Breaker) Done(ctx context.Context, res mcp.Result, err error) {
	if verdict, kind, cause := judge(ctx, res, err); verdict != ignored {
		b.count(kind, cause)
	}
}

// Fail counts a failure that [Breaker.Done] cannot see, such as a refusal of a request that another server has
// answered.
func (b *Breaker) Fail(kind Kind, cause string) { b.count(kind, text.Short(cause)) }

// count counts a request; the kind is zero if it has not failed.
func (b *Breaker) count(kind Kind, cause string) {
	now := time.Now()
	b.mu.Lock()
	b.begin()
	if kind != 0 {
		b.failures[kind]++
	}
	if b.status.Open { // it was sent before
		b.mu.Unlock()
		return
	}
	a := attempt{now, kind != 0}
	if len(b.last) < b.rule.Calls {
		b.last = append(b.last, a)
	} else {
		b.last[b.next] = a
	}
	b.next = (b.next + 1) % b.rule.Calls
	if !a.failed {
		b.mu.Unlock()
		return
	}
	failures := 0
	for _, a := range b.last {
		if a.failed && now.Sub(a.at) <= b.rule.Window {
			failures++
		}
	}
	if failures < b.rule.Failures {
		b.mu.Unlock()
		return
	}
	b.open(now, kind, cause)
	b.mu.Unlock()
	b.tell()
}

// Trip opens the breaker, if it is closed, because of something else than a request, such as a server
// that does not answer a ping.
func (b *Breaker) Trip(cause string) {
	b.mu.Lock()
	b.begin()
	if b.status.Open || b.stopped {
		b.mu.Unlock()
		return
	}
	b.failures[Silent]++
	b.open(time.Now(), Silent, cause)
	b.mu.Unlock()
	b.tell()
}

// Reset closes the breaker, if it is open, and forgets the requests: the server has been started again.
func (b *Breaker) Reset() {
	b.mu.Lock()
	b.begin()
	b.last, b.next, b.pause = b.last[:0], 0, 0
	if !b.status.Open {
		b.mu.Unlock()
		return
	}
	if b.timer != nil {
		b.timer.Stop()
	}
	b.status = Status{Since: time.Now(), Opened: b.status.Opened}
	b.mu.Unlock()
	b.tell()
}

// Status returns the state of the breaker.
func (b *Breaker) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status
	s.Failures = b.failures
	return s
}

// Stop ends the probes and waits for a running one. An open breaker stays open.
func (b *Breaker) Stop() {
	b.mu.Lock()
	b.begin()
	b.stopped = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.mu.Unlock()
	b.stop()
	b.probes.Wait()
}

// Handler returns a handler that sends to next what the breaker allows, and counts it.
func (b *Breaker) Handler(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if err := b.Allow(); err != nil {
			return nil, err
		}
		res, err := next.Handle(ctx, req)
		b.Done(ctx, res, err)
		return res, err
	})
}

// begin sets what the first use needs; mu is held.
func (b *Breaker) begin() {
	if b.ctx == nil {
		b.rule = b.Rule.WithDefaults()
		b.ctx, b.stop = context.WithCancel(context.Background())
	}
}

// open opens the breaker; mu is held.
func (b *Breaker) open(now time.Time, kind Kind, cause string) {
	if b.pause == 0 || now.Sub(b.status.Since) > 2*b.pause {
		b.pause = b.rule.For
	} else { // it was closed for a short time only
		b.pause = b.longer()
	}
	b.status = Status{Open: true, Since: now, Kind: kind, Cause: cause, Opened: b.status.Opened + 1}
	b.last, b.next = b.last[:0], 0
	b.wait(now)
}

// longer returns the pause after one in which the server has not recovered; mu is held.
func (b *Breaker) longer() time.Duration { return min(2*b.pause, max(longest, b.rule.For)) }

// wait sets the time of the next probe; mu is held.
func (b *Breaker) wait(now time.Time) {
	b.status.Until = now.Add(b.pause)
	if !b.stopped {
		b.timer = time.AfterFunc(b.pause, b.probe)
	}
}

// probe closes the breaker if the server works.
func (b *Breaker) probe() {
	b.mu.Lock()
	if b.stopped {
		b.mu.Unlock()
		return
	}
	b.probes.Add(1)
	b.mu.Unlock()
	defer b.probes.Done()
	var err error
	if b.Probe != nil {
		ctx, cancel := context.WithTimeoutCause(b.ctx, probeTime, fmt.Errorf("no answer to a probe within %v", probeTime))
		if err = b.Probe(ctx); err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		cancel()
	}
	b.mu.Lock()
	now := time.Now()
	if !b.status.Open { // Reset was called meanwhile
		b.mu.Unlock()
		return
	}
	if err != nil {
		if b.ctx.Err() == nil {
			b.status.Cause, b.pause = causeOf(err), b.longer()
		}
		b.wait(now)
		b.mu.Unlock()
		return
	}
	b.status = Status{Since: now, Opened: b.status.Opened}
	b.mu.Unlock()
	b.tell()
}

// tell calls OnChange.
func (b *Breaker) tell() {
	if b.OnChange == nil {
		return
	}
	b.tellMu.Lock()
	defer b.tellMu.Unlock()
	b.OnChange(b.Status())
}

// OpenError is the error of a request that was not sent because the breaker is open.
type OpenError struct {
	Name  string    // of the server
	Cause string    // the last fault
	Until time.Time // of the next probe
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("%s has failed too often and gets no calls for now: %s; it is tried again %s", e.Name, e.Cause, soon(time.Until(e.Until)))
}

// soon words the time until a probe, which may be running.
func soon(d time.Duration) string {
	if d = d.Round(time.Second); d <= 0 {
		return "now"
	}
	return "in " + d.String()
}

// Unwrap returns the error for the caller, with retryAfter in its data, in seconds.
func (e *OpenError) Unwrap() error {
	told := mcp.Errorf(jsonrpc.CodeInternal, "%s", e.Error())
	told.Data = fmt.Appendf(nil, `{"retryAfter":%d}`, max(int(time.Until(e.Until).Seconds())+1, 1))
	return told
}

// Unreached returns true: package metrics counts the error as one of the transport.
func (e *OpenError) Unreached() bool { return true }

// Unsent returns true: the audit log says that the request was not sent.
func (e *OpenError) Unsent() bool { return true }
