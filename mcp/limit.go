package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// The limits of a call, where Limits does not say: how long a server may say nothing.
const (
	defaultSilence = time.Minute
	forwardedTool  = 5 * time.Minute // in a call of a tool that Session.Handle forwards
)

// A LimitError says that a call was given up as its time was over. The server was told, and what
// it answers later is dropped. It is context.DeadlineExceeded to errors.Is.
type LimitError struct {
	Limit time.Duration

	// Total tells that the whole call took so long (Limits.CallLimit). Otherwise nothing was heard
	// of it for so long (Limits.CallTimeout or IdleTimeout).
	Total bool
}

func (e *LimitError) Error() string {
	if e.Total {
		return fmt.Sprintf("the call took longer than %v (Limits.CallLimit)", e.Limit)
	}
	return fmt.Sprintf("the server said nothing for %v (Limits.CallTimeout)", e.Limit)
}

func (e *LimitError) Unwrap() error { return context.DeadlineExceeded }

// silence is how long the server may say nothing in a forwarded request; negative: there is no
// bound.
func (s *Session) silence(method string) time.Duration {
	switch {
	case s.limits.CallTimeout != 0:
		return s.limits.CallTimeout
	case method == revision.MethodCall:
		return forwardedTool
	}
	return defaultSilence
}

// clocks bound the calls of a session. One timer does for all: it fires when the first of them is
// due, then ends those that are over and is set for the next. Calls that were heard of, or have
// ended, meanwhile are found out then, so they cost no timer. The zero value is empty, but for
// what watches a server that hears nothing any more.
type clocks struct {
	mu    sync.Mutex
	first *clock        // guarded by mu
	timer *time.Timer   // guarded by mu; nil before the first call with a bound
	epoch time.Time     // of the times of clocks; guarded by mu
	due   time.Duration // when the timer fires; 0: it does not; guarded by mu

	waiting int16 // questions that are open and may belong to any call; guarded by mu

	mute
}

// mute counts calls that reached a limit while nothing at all was heard of the server. A call
// counts if it began after the one before it had ended: of calls that wait at the same time for a
// server that works long, only one does. While an older call is inside its own limit none counts:
// the server may do one thing after the other and be at work on that.
type mute struct {
	most   int           // calls in a row, and the server is given up; 0: it never is
	frames func() uint64 // frames that came from the server so far
	giveUp func(calls int, limit time.Duration)

	heard uint64 // frames at the last look; guarded by mu of clocks
	calls int    // in a row; guarded by mu of clocks
	round uint32 // of changes of heard and calls; guarded by mu of clocks
}

// clock bounds one call, and is the context that ends with it. It is no context before its Init.
type clock struct {
	engine.Part

	all           *clocks
	silent, total time.Duration // the limits; zero or less: none

	quiet, over time.Duration // when the silence, or the call, is too long, from all.epoch; 0: never; guarded by all.mu
	left        time.Duration // until over, while the clock stands; guarded by all.mu
	round       uint32        // mute.round as the call began
	stands      int16         // reasons why it stands; guarded by all.mu
	runs        bool          // between begin and end; guarded by all.mu
	passed      bool          // a limit has; guarded by all.mu
	prev, next  *clock        // guarded by all.mu
}

// begin bounds a call, whose clock was made a context by Init and has its limits. End must follow.
func (q *clocks) begin(c *clock) {
	if c.silent <= 0 && c.total <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.epoch.IsZero() {
		q.epoch = time.Now()
	}
	c.all, c.runs, c.left = q, true, c.total
	if q.most > 0 {
		q.listen()
		c.round = q.round
	}
	if c.next = q.first; c.next != nil {
		c.next.prev = c
	}
	q.first = c
	if c.stands = q.waiting; c.stands == 0 {
		c.start()
	}
}

// listen looks whether something was heard of the server; mu is held.
func (q *clocks) listen() {
	if n := q.frames(); n != q.heard {
		q.heard, q.calls = n, 0
		q.round++
	}
}

// start has the clock go on; mu is held.
func (c *clock) start() {
	if c.passed {
		return
	}
	now := time.Since(c.all.epoch)
	if c.total > 0 {
		c.over = now + c.left
		c.all.expect(c.over, now)
	}
	if c.silent > 0 {
		c.quiet = now + c.silent
		c.all.expect(c.quiet, now)
	}
}

// stop has the clock stand; mu is held.
func (c *clock) stop() {
	if c.over > 0 {
		c.left = max(c.over-time.Since(c.all.epoch), 0)
	}
	c.quiet, c.over = 0, 0
}

// expect has the timer fire at a time; mu is held.
func (q *clocks) expect(at, now time.Duration) {
	switch {
	case q.due > 0 && at >= q.due:
		return
	case q.timer == nil:
		q.timer = time.AfterFunc(at-now, q.fire)
	default:
		q.timer.Reset(at - now)
	}
	q.due = at
}

func (q *clocks) fire() {
	type end struct {
		c   *clock
		err *LimitError
	}
	var ends []end
	dead := 0
	var limit time.Duration
	q.mu.Lock()
	now := time.Since(q.epoch)
	q.due = 0
	var oldest *clock // of the calls inside their limits
	for c := q.first; c != nil; c = c.next {
		if !c.passed && c.reached(now) == nil {
			oldest = c
		}
	}
	busy := oldest != nil // an older call than c is inside its limit
	for c := q.first; c != nil; c = c.next {
		if c == oldest {
			busy = false
		}
		err := c.reached(now)
		if err == nil {
			for _, at := range [...]time.Duration{c.quiet, c.over} {
				if at > 0 && (q.due == 0 || at < q.due) {
					q.due = at
				}
			}
			continue
		}
		c.passed, c.quiet, c.over = true, 0, 0
		ends = append(ends, end{c, err})
		if q.most == 0 || busy {
			continue
		}
		if q.listen(); c.round == q.round {
			q.round++
			if q.calls++; q.calls == q.most {
				dead, limit = q.calls, err.Limit
			}
		}
	}
	if q.due > 0 {
		q.timer.Reset(q.due - now)
	}
	q.mu.Unlock()
	for _, e := range ends {
		e.c.Cancel(e.err)
	}
	if dead > 0 {
		q.giveUp(dead, limit)
	}
}

// reached returns the limit that a call has reached, nil if it has none; mu is held.
func (c *clock) reached(now time.Duration) *LimitError {
	switch {
	case c.quiet > 0 && c.quiet <= now:
		return &LimitError{Limit: c.silent}
	case c.over > 0 && c.over <= now:
		return &LimitError{Limit: c.total, Total: true}
	}
	return nil
}

// close ends the timer. Calls that begin later have one again.
func (q *clocks) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil {
		q.timer.Stop()
		q.due = 0
	}
}

// pause has the clocks of all calls stand, also of those that begin meanwhile, until resume is
// called as often.
func (q *clocks) pause() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting++
	for c := q.first; c != nil; c = c.next {
		c.stand()
	}
}

func (q *clocks) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
	for c := q.first; c != nil; c = c.next {
		c.goOn()
	}
}

// touch gives all calls their time anew: something was heard that may belong to any.
func (q *clocks) touch() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := q.first; c != nil; c = c.next {
		c.extend()
	}
}

// extend gives the server its time anew; mu is held.
func (c *clock) extend() {
	if c.quiet > 0 {
		now := time.Since(c.all.epoch)
		c.quiet = now + c.silent
		c.all.expect(c.quiet, now)
	}
}

// stand and goOn count reasons why the clock stands; mu is held.
func (c *clock) stand() {
	if c.stands++; c.stands == 1 {
		c.stop()
	}
}

func (c *clock) goOn() {
	if c.stands--; c.stands == 0 {
		c.start()
	}
}

// touch tells that the server has said something in the call.
func (c *clock) touch() { c.locked((*clock).extend) }

// pause has the clock stand, since the server waits for us, until resume is called as often.
func (c *clock) pause() { c.locked((*clock).stand) }

func (c *clock) resume() { c.locked((*clock).goOn) }

// locked calls f with mu held, while the call is bounded.
func (c *clock) locked(f func(*clock)) {
	if c.all == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.runs {
		f(c)
	}
}

// end takes the call out. It may be called more than once.
func (c *clock) end() {
	c.locked(func(c *clock) {
		if c.next != nil {
			c.next.prev = c.prev
		}
		if c.prev != nil {
			c.prev.next = c.next
		} else {
			c.all.first = c.next
		}
		c.prev, c.next, c.runs = nil, nil, false
	})
}
