// Package wait measures how long a request waits in this process before it goes to its server: for
// the start of the server, for a place among its connections, or for its turn. Package engine has a
// clock for each request, package gateway and package bridge add the waits, and counters and spans
// subtract them from the time of the server. The clock also has the time for which the caller was asked
// a question while the request ran, which is not the time of anybody else.
package wait

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is the sum of the waits of a request. The zero value is ready for use. A nil clock measures
// nothing. Its methods may be used by several goroutines at once.
type Clock struct {
	measured atomic.Pointer[measured] // nil: there was nothing to measure, as in most requests
}

type measured struct {
	sum atomic.Int64

	mu    sync.Mutex
	open  int           // questions without an answer; guarded by mu
	since time.Time     // when the first of these was asked; guarded by mu
	asked time.Duration // for which there were questions before; guarded by mu
}

func (c *Clock) begun() *measured {
	if m := c.measured.Load(); m != nil {
		return m
	}
	c.measured.CompareAndSwap(nil, new(measured))
	return c.measured.Load()
}

// Ask begins a question to the caller, which Answered ends. Time with several open questions counts
// once.
func (c *Clock) Ask() {
	if c == nil {
		return
	}
	m := c.begun()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open++; m.open == 1 {
		m.since = time.Now()
	}
}

// Answered ends a question that Ask has begun.
func (c *Clock) Answered() {
	if c == nil {
		return
	}
	m := c.begun()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open--; m.open == 0 {
		m.asked += time.Since(m.since)
	}
}

// Asked returns for how long the caller had questions so far.
func (c *Clock) Asked() time.Duration {
	if c == nil {
		return 0
	}
	m := c.measured.Load()
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open > 0 {
		return m.asked + time.Since(m.since)
	}
	return m.asked
}

// Since adds a wait that began at a time and ends now.
func (c *Clock) Since(began time.Time) {
	if c != nil {
		c.begun().sum.Add(int64(time.Since(began)))
	}
}

// Sum returns the sum of the waits so far.
func (c *Clock) Sum() time.Duration {
	if c == nil {
		return 0
	}
	m := c.measured.Load()
	if m == nil {
		return 0
	}
	return time.Duration(m.sum.Load())
}

// Key is the context key of a *Clock. The context of a request answers it without an entry of its
// own.
type Key struct{}

// From returns the clock of the request of ctx, or nil if there is none.
func From(ctx context.Context) *Clock {
	c, _ := ctx.Value(Key{}).(*Clock)
	return c
}

// With returns the clock of the request of ctx, and a context that has it. If there is none, the
// context is a new one.
func With(ctx context.Context) (context.Context, *Clock) {
	if c := From(ctx); c != nil {
		return ctx, c
	}
	c := new(Clock)
	return context.WithValue(ctx, Key{}, c), c
}
