package spread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// line is a connection to a replica, with the requests over it that have no answer. While there are some
// and nothing is answered for [suspicion], the replica must answer a ping: first over this connection,
// because a process may be all that it has, then on a connection of its own.
//
//   - If it answers neither, its breaker opens. Requests that may be repeated go to another replica at once,
//     the others wait for their answer, at most as long as the limits of the connection say.
//   - If it answers only on a connection of its own, the line is mute: a process that hangs, or that is
//     busy. It gets no requests while another replica can take them, until it answers.
//
// How long a replica is silent counts over requests whose callers have left, because a caller that leaves
// after 3 seconds has no answer either.
type line struct {
	r  *replica
	up gateway.Upstream

	others func() bool // another replica can take the requests; nil: none; set before the first request

	// Guarded by mu of the replica.
	open    int           // requests without an answer
	quiet   time.Time     // since when there are requests and none was answered; zero: all were
	mute    bool          // see above
	why     string        // why the operator of the gateway has closed it; empty: that did not happen
	looking bool          // look runs
	pause   time.Duration // until the next look, which begins anew with each request
	due     time.Time     // when check is called; zero: it is not
	timer   *time.Timer   // calls check; nil: there was no request
}

const (
	// suspicion is how long nothing is answered before the replica must answer a ping. It also bounds that.
	suspicion = 5 * time.Second

	headStart = time.Second // of a ping over the connection: the probe may start a process
	longLook  = time.Minute // the longest pause between looks at one long request
)

// send sends a request to the replica, and counts it. A request that is not bound to the replica may go to
// another one: it is not sent if the operator has taken the replica out, and with repeats it is cancelled
// when another one can answer it sooner.
func (l *line) send(ctx context.Context, req *mcp.Request, bound, repeats bool) (mcp.Result, error) {
	r := l.r
	own := ctx
	if repeats && !bound {
		var cancel context.CancelCauseFunc
		own, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer l.cancels(cancel)()
	}
	began := time.Now()
	r.mu.Lock()
	if l.why != "" || r.out != "" && !bound {
		defer r.mu.Unlock()
		return nil, takenOut{unsent{mcp.Errorf(jsonrpc.CodeInternal, "%s gets no requests: %s", r.title(), cmp.Or(l.why, "it "+r.out))}}
	}
	r.load.begin(began)
	l.begin(began)
	r.answers(ctx)
	r.mu.Unlock()
	res, err := l.up.Handle(own, req)
	kind := breaker.KindOf(own, res, err)
	moved := err != nil && ctx.Err() == nil && own.Err() != nil
	f := faultOf(ctx, err)
	if f != refused || bound || moved { // else the next replica tells
		r.breaker.Done(own, res, err)
	}
	if moved {
		err = &lostError{r: r, cause: context.Cause(own)} // it goes to another replica
		f = lost
	}
	ends := ending{call: calls(req), left: ctx.Err() != nil, failed: kind != 0 || f != answered, lost: f != answered && (bound || f == lost && !repeats)}
	if ends.failed {
		ends.usual = r.g.usual(r, ends.call)
	}
	now := time.Now()
	r.mu.Lock()
	r.load.end(began, now, ends)
	if l.why != "" && f == lost && errors.Is(err, mcp.ErrClosed) {
		err = &lostError{r, ends.call, errors.New(l.why)}
	}
	l.open--
	if errors.Is(err, mcp.ErrPending) && keepsState(l.up) {
		r.asking = append(r.asking, now)
	}
	back := false
	if (f == answered || f == refused) && ctx.Err() == nil && !errors.As(err, new(*wait.Error)) {
		back = l.heard(now)
	}
	var limit *mcp.LimitError
	late := errors.As(err, &limit) && !l.quiet.IsZero() && now.Sub(l.quiet) >= limit.Limit/2 && l.pause > 0
	wrong := kind == breaker.Unusable && l.pause > 0 // perhaps all that it answers is
	r.mu.Unlock()
	if back {
		r.wake()
	}
	if late || wrong { // the limit is shorter than the suspicion
		go l.look() // bounded in time
	}
	return res, err
}

// begin counts a request that begins; mu of the replica is held.
func (l *line) begin(now time.Time) {
	l.open++
	if l.quiet.IsZero() {
		l.quiet = now
	}
	if l.r.g.NoBreaker {
		return
	}
	l.pause = suspicion
	l.lookBy(now, suspicion)
}

// heard notes an answer, and reports whether the line was mute; mu of the replica is held.
func (l *line) heard(now time.Time) (back bool) {
	l.r.heard, l.quiet = now, now
	if l.open == 0 {
		l.quiet = time.Time{}
	}
	if back = l.mute; back {
		l.mute = false
		l.r.load.forget() // else it would get no requests while its long ones count
	}
	return back
}

// lookBy lets check be called after a pause, or before; mu of the replica is held.
func (l *line) lookBy(now time.Time, pause time.Duration) {
	at := now.Add(pause)
	if !l.due.IsZero() && !l.due.After(at) {
		return
	}
	l.due = at
	if l.timer == nil {
		l.timer = time.AfterFunc(pause, l.check)
	} else {
		l.timer.Reset(pause)
	}
}

// check looks at the replica if nothing was answered for a pause.
func (l *line) check() {
	l.r.mu.Lock()
	l.due = time.Time{}
	now := time.Now()
	if l.quiet.IsZero() || l.over() {
		l.r.mu.Unlock()
		return
	}
	if left := l.quiet.Add(l.pause).Sub(now); left > 0 {
		l.lookBy(now, left)
		l.r.mu.Unlock()
		return
	}
	l.r.mu.Unlock()
	l.look()
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if l.quiet.IsZero() || l.over() {
		return
	}
	l.pause = min(2*l.pause, longLook)
	l.lookBy(time.Now(), l.pause)
}

// over reports whether nobody uses the line any more.
func (l *line) over() bool {
	select {
	case <-l.up.Done():
		return true
	default:
		return l.r.g.ctx.Err() != nil
	}
}

// look finds out whether a replica that answers nothing works, in at most headStart and suspicion.
func (l *line) look() {
	r := l.r
	r.mu.Lock()
	if l.looking || r.breaker.Allow() != nil {
		r.mu.Unlock()
		return
	}
	l.looking = true
	r.mu.Unlock()
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.g.ctx, headStart+suspicion)
	defer cancel()
	pinged := make(chan error, 1)
	go func() { pinged <- pingOver(ctx, l.up) }() // ends with ctx
	err, known := error(nil), false
	select {
	case err = <-pinged:
		known = true
	case <-time.After(headStart):
	}
	var failed error // of the probe
	if !known || err != nil {
		within, stop := context.WithTimeout(ctx, suspicion)
		if failed = r.probe(within); failed != nil && within.Err() != nil {
			failed = fmt.Errorf("it has not answered a call, nor a probe within %v", suspicion)
		}
		stop()
		switch {
		case !known && failed == nil: // it may answer here too
			err = <-pinged
		case !known:
			select {
			case err = <-pinged:
			default:
				err = failed
			}
		case errors.Is(err, errNoPing):
			err = failed
		}
	}
	l.seen(began, err, failed)
}

// seen draws the conclusion from a look: err is that of the ping, and failed that of the probe.
func (l *line) seen(began time.Time, err, failed error) {
	r := l.r
	r.mu.Lock()
	l.looking = false
	silent := !l.quiet.IsZero() && !l.quiet.After(began) && !l.over()
	trips := silent && failed != nil && !r.heard.After(began)
	back, muted := false, false
	switch {
	case err == nil:
		back = l.heard(time.Now())
	case silent && failed == nil && !l.mute:
		l.mute, muted = true, true
	}
	r.mu.Unlock()
	switch {
	case err != nil && trips:
		r.breaker.Trip(failed.Error())
	case muted:
		said := "connection to a replica does not answer"
		if len(r.g.replicas) > 1 {
			said += ", so others get its requests"
		}
		r.g.log().Warn(said, "server", r.g.Name, "replica", r.Name)
		r.wake()
		if l.others != nil && l.others() {
			r.mu.Lock()
			r.load.cancelReads(l, fmt.Errorf("%s does not answer on this connection", r.title()))
			r.mu.Unlock()
		}
	case back:
		r.wake()
	}
}

// cancels lets a request be cancelled when the breaker opens or the line becomes mute, until the returned
// function is called.
func (l *line) cancels(cancel context.CancelCauseFunc) (over func()) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	id := l.r.load.addRead(l, cancel)
	return func() {
		l.r.mu.Lock()
		defer l.r.mu.Unlock()
		delete(l.r.load.reads, id)
	}
}

// isMute reports whether another replica is better.
func (l *line) isMute() bool {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	return l.mute
}

// err returns why the connection is over: what the operator has done, or what the connection says.
func (l *line) err() error {
	if why := l.closedWhy(); why != "" {
		return errors.New(why)
	}
	return l.up.Err()
}

// closedWhy returns why the operator has closed the connection; empty: that did not happen.
func (l *line) closedWhy() string {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	return l.why
}

// takenOut is the error of a request that was not sent because the operator has taken the replica out.
type takenOut struct{ unsent }

// upstream returns the connection, or nil if there is none.
func (l *line) upstream() gateway.Upstream {
	if l == nil {
		return nil
	}
	return l.up
}

// suspect looks at the replica because its subscription has ended.
func (l *line) suspect() {
	if l.r.g.NoBreaker || l.over() || l.closedWhy() != "" {
		return
	}
	l.r.mu.Lock()
	if l.quiet.IsZero() {
		l.quiet = time.Now()
	}
	l.r.mu.Unlock()
	l.look()
}
