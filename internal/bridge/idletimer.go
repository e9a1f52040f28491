package bridge

import (
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// The idle limit of a forwarded request, where Limits does not set one.
const (
	forwardedCall = time.Minute
	forwardedTool = 5 * time.Minute
)

// IdleLimit returns how long the server may send nothing during a forwarded request; negative: no
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

// idleTimers hold the time limits of the calls of a session. All calls share one timer. It fires
// when the earliest limit may have passed, ends the calls that have reached a limit, and is set for
// the next limit, if there is one. A message for a call or its end does not reset the timer; the
// timer may then fire without ending a call. The zero value has no calls; before the first call
// exceeded must be set, and mute if calls without any message are to be counted.
type idleTimers struct {
	mu    sync.Mutex
	first *idleTimer    // guarded by mu
	timer *time.Timer   // guarded by mu; nil before the first call with a bound
	epoch time.Time     // of the times of idleTimers; guarded by mu
	due   time.Duration // when the timer fires; 0: it does not; guarded by mu

	waiting int16 // questions that are open and may belong to any call; guarded by mu

	exceeded func(limit time.Duration, total bool) error // returns the cause for a call that reached a limit

	mute
}

// mute counts calls that reached a limit without any message from the server. A call counts if it
// began after the previous one had ended: of calls that wait at the same time for a busy server,
// only one counts. While an older call is within its limit, none counts, because the server may
// process one call after the other and be at work on that one.
type mute struct {
	most   int           // consecutive calls after which the server is given up; 0: never
	frames func() uint64 // frames received from the server so far
	giveUp func(calls int, limit time.Duration)

	heard uint64 // frames at the last check; guarded by mu of idleTimers
	calls int    // consecutive calls; guarded by mu of idleTimers
	round uint32 // counts changes of heard and calls; guarded by mu of idleTimers
}

// idleTimer bounds one call and is the context that ends with it. Init makes it a context.
type idleTimer struct {
	engine.Part

	all         *idleTimers
	idle, total time.Duration // the limits; zero or less: none

	quiet, over time.Duration // when the server was idle, or the call took, too long, from all.epoch; 0: never; guarded by all.mu
	left        time.Duration // until over, while the timer is paused; guarded by all.mu
	round       uint32        // mute.round when the call began
	stands      int16         // number of pauses; guarded by all.mu
	runs        bool          // between begin and end; guarded by all.mu
	expired     bool          // a limit has passed; guarded by all.mu
	prev, next  *idleTimer    // guarded by all.mu
}

// begin bounds a call. Init has made its timer a context with limits. End must follow.
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

// listen checks whether the server has sent anything; mu is held.
func (q *idleTimers) listen() {
	if n := q.frames(); n != q.heard {
		q.heard, q.calls = n, 0
		q.round++
	}
}

// start resumes the timer; mu is held.
func (c *idleTimer) start() {
	if c.expired {
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

// stop pauses the timer; mu is held.
func (c *idleTimer) stop() {
	if c.over > 0 {
		c.left = max(c.over-time.Since(c.all.epoch), 0)
	}
	c.quiet, c.over = 0, 0
}

// expect makes the timer fire at a time; mu is held.
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
	var oldest *idleTimer // of the calls within their limits
	for c := q.first; c != nil; c = c.next {
		if limit, _ := c.reached(now); !c.expired && limit == 0 {
			oldest = c
		}
	}
	busy := oldest != nil // an older call than c is within its limit
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
		c.expired, c.quiet, c.over = true, 0, 0
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

// reached returns the limit that a call has reached, 0 for none; mu is held.
func (c *idleTimer) reached(now time.Duration) (limit time.Duration, total bool) {
	switch {
	case c.quiet > 0 && c.quiet <= now:
		return c.idle, false
	case c.over > 0 && c.over <= now:
		return c.total, true
	}
	return 0, false
}

// close stops the timer. Calls that begin later start one again.
func (q *idleTimers) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil {
		q.timer.Stop()
		q.due = 0
	}
}

// pause pauses the idleTimers of all calls, including those that begin meanwhile, until resume is
// called as many times.
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

// touch restarts the idle time of all calls, after a message that may belong to any of them.
func (q *idleTimers) touch() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := q.first; c != nil; c = c.next {
		c.extend()
	}
}

// extend restarts the server's idle time; mu is held.
func (c *idleTimer) extend() {
	if c.quiet > 0 {
		now := time.Since(c.all.epoch)
		c.quiet = now + c.idle
		c.all.expect(c.quiet, now)
	}
}

// stand and goOn count the pauses of the timer; mu is held.
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

// touch restarts the idle time, after a message from the server in the call.
func (c *idleTimer) touch() { c.locked((*idleTimer).extend) }

// pause pauses the timer, because the server waits for this side, until resume is called as many
// times.
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

// end removes the call. It may be called more than once.
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
