package spread

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
)

// ErrDisabled is the error of [Group.Restart] for a disabled replica.
var ErrDisabled = errors.New("spread: the replica is disabled")

// UnknownReplica is the error for a name that no replica has.
type UnknownReplica struct {
	Name  string
	Names []string // of the replicas
}

func (e *UnknownReplica) Error() string {
	return fmt.Sprintf("no replica %q; replicas: %s", e.Name, strings.Join(e.Names, ", "))
}

const (
	restarting  = "is being restarted by its operator"
	wasRestart  = "it was restarted by its operator"
	wasDisabled = "it was disabled by its operator"

	closeTime = 10 * time.Second // bounds the closing of the connections to a replica
)

// Restart closes the connections to a replica and opens them again, which starts a command again. The
// replica gets no requests meanwhile. Those in progress have drain to finish. Restart waits until a
// connection is open again, and returns why none could be opened. If ctx ends, Restart returns and the
// replica is restarted nevertheless.
func (g *Group) Restart(ctx context.Context, name string, drain time.Duration) error {
	r, err := g.find(name)
	if err != nil {
		return err
	}
	if !r.takeOut(restarting) {
		return fmt.Errorf("%s: %w", r.title(), ErrDisabled)
	}
	done := make(chan struct{})
	go func() { // bounded in time
		defer close(done)
		r.empty(drain, wasRestart)
		r.putBack(restarting)
	}()
	select {
	case <-done:
		return r.opened(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Disable lets a replica get no requests until Enable, and closes its connections when its requests in
// progress have finished, at the latest after drain. Disable does not wait for them. It returns false if
// the replica is disabled already. The text says what enables it.
func (g *Group) Disable(name, says string, drain time.Duration) (bool, error) {
	r, err := g.find(name)
	if err != nil {
		return false, err
	}
	if !r.takeOut(fmt.Sprintf("is disabled (%s)", says)) {
		return false, nil
	}
	go r.empty(drain, wasDisabled) // bounded in time
	return true, nil
}

// Enable lets a disabled replica get requests again, and waits as Restart does. It returns false if the
// replica is not disabled.
func (g *Group) Enable(ctx context.Context, name string) (bool, error) {
	r, err := g.find(name)
	if err != nil {
		return false, err
	}
	out := r.outWhy()
	if out == "" || out == restarting {
		return false, nil
	}
	r.putBack(out)
	return true, r.opened(ctx)
}

// find returns a replica by its name.
func (g *Group) find(name string) (*replica, error) {
	g.start()
	var names []string
	for _, r := range g.replicas {
		if r.Name == name {
			return r, nil
		}
		names = append(names, r.Name)
	}
	return nil, &UnknownReplica{name, names}
}

// restarting reports whether a replica comes back soon.
func (g *Group) restarting() bool {
	for _, r := range g.replicas {
		if r.outWhy() == restarting {
			return true
		}
	}
	return false
}

// outWhy returns why the operator lets the replica get no requests; empty: it gets some.
func (r *replica) outWhy() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out
}

// takeOut lets the replica get no requests. It returns false if it is disabled already.
func (r *replica) takeOut(why string) bool {
	r.mu.Lock()
	if r.out != "" && r.out != restarting {
		r.mu.Unlock()
		return false
	}
	r.out = why
	r.mu.Unlock()
	r.wake()
	return true
}

// putBack lets the replica get requests again, if it gets none for that reason.
func (r *replica) putBack(why string) {
	r.mu.Lock()
	if r.out != why {
		r.mu.Unlock()
		return
	}
	r.out, r.reason = "", ""
	r.load.forget()
	close(r.again)
	r.again = make(chan struct{})
	r.mu.Unlock()
	r.breaker.Reset()
	r.wake()
}

// returns returns a channel that is closed by putBack.
func (r *replica) returns() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.again
}

// empty closes the connections to the replica when no request is in progress, at the latest after drain.
// It stops when the replica gets requests again.
func (r *replica) empty(drain time.Duration, why string) {
	end := time.After(drain)
	var lines []*line
	for late, closes := false, false; !closes; {
		r.mu.Lock()
		if r.out == "" {
			r.mu.Unlock()
			return
		}
		if closes = late || r.load.open == 0 && !r.asks(); closes {
			for l := range r.lines {
				l.why = why
				lines = append(lines, l)
			}
		}
		r.mu.Unlock()
		if closes {
			break
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-end:
			late = true
		case <-r.g.ctx.Done():
			return
		}
	}
	for _, l := range lines {
		go l.up.Close() // bounded in time
	}
	within := time.After(closeTime)
	for _, l := range lines {
		select {
		case <-l.up.Done():
		case <-within:
			return
		}
	}
}

// askTime is how long a call before 2026-07-28 waits for the answer of its caller.
const askTime = 15 * time.Minute

// answers notes that the caller of a call with an open question has answered; mu is held.
func (r *replica) answers(ctx context.Context) {
	if call := engine.From(ctx); len(r.asking) > 0 && call != nil && call.Round() > 0 {
		r.asking = r.asking[1:]
	}
}

// asks reports whether a call has an open question, which a restart would cut off; mu is held.
func (r *replica) asks() bool {
	return len(r.asking) > 0 && time.Since(r.asking[len(r.asking)-1]) < askTime
}

// opened waits until there is a connection to the replica, and returns why none could be opened.
func (r *replica) opened(ctx context.Context) error {
	for {
		r.mu.Lock()
		n, out, reason, changed := 0, r.out, r.reason, r.changed
		for l := range r.lines {
			if l.why == "" {
				n++
			}
		}
		r.mu.Unlock()
		switch {
		case out != "":
			return fmt.Errorf("%s %s", r.title(), out)
		case n > 0:
			return nil
		case reason != "":
			return errors.New(reason)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.g.ctx.Done():
			return errors.New("the server has ended")
		}
	}
}
