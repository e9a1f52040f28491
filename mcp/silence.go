package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// errNoAnswer is the cause of a call's end when its time has passed.
var errNoAnswer = fmt.Errorf("no answer and no progress in time: %w", context.DeadlineExceeded)

// silences bounds how long a server may be silent in each call of a session. One timer
// does for all calls: it fires when the first of them is due, then ends those that are
// over and is set for the next. Calls that were heard of, or have ended, meanwhile are found
// out then, so they cost no timer. The zero value is empty.
type silences struct {
	mu    sync.Mutex
	first *silence    // guarded by mu
	timer *time.Timer // guarded by mu; nil before the first call with a bound
	due   time.Time   // when the timer fires; zero: it does not; guarded by mu
}

// silence is what a server has not said in one call. The zero value has no bound.
type silence struct {
	all    *silences
	most   time.Duration
	expire context.CancelCauseFunc

	ends       time.Time // zero while paused, and after it; guarded by all.mu
	paused     int       // reasons why the silence is ours; guarded by all.mu
	prev, next *silence  // guarded by all.mu
}

// begin bounds a call; most of zero or less is no bound. End must follow.
func (q *silences) begin(s *silence, most time.Duration, expire context.CancelCauseFunc) {
	if most <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s.all, s.most, s.expire = q, most, expire
	if s.next = q.first; s.next != nil {
		s.next.prev = s
	}
	q.first = s
	s.extend()
}

// extend gives the server its time anew; mu is held.
func (s *silence) extend() {
	if s.paused > 0 || s.most == 0 {
		return
	}
	q := s.all
	s.ends = time.Now().Add(s.most)
	switch {
	case !q.due.IsZero() && !s.ends.Before(q.due):
		return
	case q.timer == nil:
		q.timer = time.AfterFunc(s.most, q.fire)
	default:
		q.timer.Reset(s.most)
	}
	q.due = s.ends
}

func (q *silences) fire() {
	var over []context.CancelCauseFunc
	q.mu.Lock()
	now := time.Now()
	q.due = time.Time{}
	for s := q.first; s != nil; s = s.next {
		switch {
		case s.ends.IsZero():
		case !s.ends.After(now):
			over = append(over, s.expire)
			s.ends = time.Time{}
		case q.due.IsZero() || s.ends.Before(q.due):
			q.due = s.ends
		}
	}
	if !q.due.IsZero() {
		q.timer.Reset(q.due.Sub(now))
	}
	q.mu.Unlock()
	for _, expire := range over {
		expire(errNoAnswer)
	}
}

// close ends the timer. Calls that begin later have one again.
func (q *silences) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil {
		q.timer.Stop()
		q.due = time.Time{}
	}
}

// touch tells that the server has said something.
func (s *silence) touch() {
	if s.all == nil {
		return
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.extend()
}

// pause tells that the server waits for us, until resume is called as often.
func (s *silence) pause() {
	if s.all == nil {
		return
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.paused++
	s.ends = time.Time{}
}

func (s *silence) resume() {
	if s.all == nil {
		return
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.paused--
	s.extend()
}

// end takes the call out. It may be called more than once.
func (s *silence) end() {
	q := s.all
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.most == 0 {
		return
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		q.first = s.next
	}
	s.prev, s.next, s.most, s.ends = nil, nil, 0, time.Time{}
}
