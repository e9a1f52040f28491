package bridge

import (
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// The time without a word of the server that a forwarded request has, where Limits does not say.
const (
	forwardedCall = time.Minute
	forwardedTool = 5 * time.Minute
)

// IdleLimit is how long the server may say nothing in a forwarded request; negative: there is no
// bound.
func (r *Remote) IdleLimit(method string) time.Duration {
	switch {
	case r.Limits.CallTimeout != 0:
		return r.Limits.CallTimeout
	case method == revision.MethodCall:
		return forwardedTool
	}
	return forwardedCall
}

// idleTimers bound the calls of a session. One timer does for all: it fires when the first of them is
// due, then ends those that are over and is set for the next. Calls that were heard of, or have
// ended, meanwhile are found out then, so they cost no timer. The zero value is empty, but for
// what watches a server that hears nothing any more.
type idleTimers struct {
	mu    sync.Mutex
	first *idleTimer    // guarded by mu
	timer *time.Timer   // guarded by mu; nil before the first call with a bound
	epoch time.Time     // of the times of idleTimers; guarded by mu
	due   time.Duration // when the timer fires; 0: it does not; guarded by mu

	waiting int16 // questions that are open and may belong to any call; guarded by mu

	exceeded func(limit time.Duration, total bool) error // the cause of the end of a call that reached a limit

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

	heard uint64 // frames at the last look; guarded by mu of idleTimers
	calls int    // in a row; guarded by mu of idleTimers
	round uint32 // of changes of heard and calls; guarded by mu of idleTimers
}

// idleTimer bounds one call, and is the context that ends with it. It is not a context before its Init.
type idleTimer struct {
	engine.Part

	all         *idleTimers
	idle, total time.Duration // the limits; zero or less: none

	quiet, over time.Duration // when the server was idle, or the call took, too long, from all.epoch; 0: never; guarded by all.mu
	left        time.Duration // until over, while the timer stands; guarded by all.mu
	round       uint32        // mute.round as the call began
	stands      int16         // reasons why it stands; guarded by all.mu
	runs        bool          // between begin and end; guarded by all.mu
	passed      bool          // a limit has; guarded by all.mu
	prev, next  *idleTimer    // guarded by all.mu
}

// begin bounds a call, whose timer was made a context by Init and has its limits. End must follow.
func (q *idleTimers) begin(c *idleTimer) {
	if c.idle <= 0 && c.total <= 0 {
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
func (q *idleTimers) listen() {
	if n := q.frames(); n != q.heard {
		q.heard, q.calls = n, 0
		q.round++
	}
}

// start has the timer go on; mu is held.
func (c *idleTimer) start() {
	if c.passed {
		return
	}
	now := time.Since(c.all.epoch)
	if c.total > 0 {
		c.over = now + c.left
		c.all.expect(c.over, now)
	}
	if c.idle > 0 {
		c.quiet = now + c.idle
		c.all.expect(c.quiet, now)
	}
}

// stop has the timer stand; mu is held.
func (c *idleTimer) stop() {
	if c.over > 0 {
		c.left = max(c.over-time.Since(c.all.epoch), 0)
	}
	c.quiet, c.over = 0, 0
}

// expect has the timer fire at a time; mu is held.
func (q *idleTimers) expect(at, now time.Duration) {
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

func (q *idleTimers) fire() {
	type end struct {
		c   *idleTimer
		err error
	}
	var ends []end
	dead := 0
	var longest time.Duration
	q.mu.Lock()
	now := time.Since(q.epoch)
	q.due = 0
	var oldest *idleTimer // of the calls inside their limits
	for c := q.first; c != nil; c = c.next {
		if limit, _ := c.reached(now); !c.passed && limit == 0 {
			oldest = c
		}
	}
	busy := oldest != nil // an older call than c is inside its limit
	for c := q.first; c != nil; c = c.next {
		if c == oldest {
			busy = false
		}
		limit, total := c.reached(now)
		if limit == 0 {
			for _, at := range [...]time.Duration{c.quiet, c.over} {
				if at > 0 && (q.due == 0 || at < q.due) {
					q.due = at
				}
			}
			continue
		}
		c.passed, c.quiet, c.over = true, 0, 0
		ends = append(ends, end{c, q.exceeded(limit, total)})
		if q.most == 0 || busy {
			continue
		}
		if q.listen(); c.round == q.round {
			q.round++
			if q.calls++; q.calls == q.most {
				dead, longest = q.calls, limit
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
		q.giveUp(dead, longest)
	}
}

// reached returns the limit that a call has reached, 0 if it has reached none; mu is held.
func (c *idleTimer) reached(now time.Duration) (limit time.Duration, total bool) {
	switch {
	case c.quiet > 0 && c.quiet <= now:
		return c.idle, false
	case c.over > 0 && c.over <= now:
		return c.total, true
	}
	return 0, false
}

// close ends the timer. Calls that begin later have one again.
func (q *idleTimers) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil {
		q.timer.Stop()
		q.due = 0
	}
}

// pause has the idleTimers of all calls stand, also of those that begin meanwhile, until resume is
// called as often.
func (q *idleTimers) pause() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting++
	for c := q.first; c != nil; c = c.next {
		c.stand()
	}
}

func (q *idleTimers) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
	for c := q.first; c != nil; c = c.next {
		c.goOn()
	}
}

// touch gives all calls their time anew: something was heard that may belong to any.
func (q *idleTimers) touch() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := q.first; c != nil; c = c.next {
		c.extend()
	}
}

// extend gives the server its time anew; mu is held.
func (c *idleTimer) extend() {
	if c.quiet > 0 {
		now := time.Since(c.all.epoch)
		c.quiet = now + c.idle
		c.all.expect(c.quiet, now)
	}
}

// stand and goOn count reasons why the timer stands; mu is held.
func (c *idleTimer) stand() {
	if c.stands++; c.stands == 1 {
		c.stop()
	}
}

func (c *idleTimer) goOn() {
	if c.stands--; c.stands == 0 {
		c.start()
	}
}

// touch tells that the server has said something in the call.
func (c *idleTimer) touch() { c.locked((*idleTimer).extend) }

// pause has the timer stand, since the server waits for us, until resume is called as often.
func (c *idleTimer) pause() { c.locked((*idleTimer).stand) }

func (c *idleTimer) resume() { c.locked((*idleTimer).goOn) }

// locked calls f with mu held, while the call is bounded.
func (c *idleTimer) locked(f func(*idleTimer)) {
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
func (c *idleTimer) end() {
	c.locked(func(c *idleTimer) {
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
