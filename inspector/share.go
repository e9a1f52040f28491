package inspector

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/trace"
)

const (
	fullRate   = 12_000                 // frames of a second that are all taken
	sharedRate = 1_000                  // about so many are taken if more come
	shareTime  = 250 * time.Millisecond // how long a share lasts
	maxLeftOut = 50_000                 // calls, twice
)

// share leaves out whole calls, with all frames that belong to them on both hops, while more frames come than a person has time
// for. It decides before a frame is copied, so that a page that somebody looks at does not slow down a busy gateway. Its zero
// value takes everything.
type share struct {
	window  atomic.Int64 // number of the time that lasts now
	every   atomic.Int64 // one call of so many is taken; zero: all are
	came    atomic.Int64 // frames in this time
	without atomic.Bool  // there are calls that are left out
	left    atomic.Int64 // frames in all

	mu       sync.Mutex
	counts   [time.Second / shareTime]int64 // frames of the times before, the last one first; guarded by mu
	calls    int64                          // front requests that came while a part was taken; guarded by mu
	out, old map[callKey]struct{}           // calls that are left out; guarded by mu
}

// callKey names a call by the id of its request, or by its HTTP exchange.
type callKey struct {
	cause    trace.Cause
	exchange int
}

// wants reports whether a frame is taken.
func (s *share) wants(f *trace.Frame) bool {
	if w := f.Time.UnixNano() / int64(shareTime); w != s.window.Load() {
		s.begin(w)
	}
	s.came.Add(1)
	if s.every.Load() <= 1 && !s.without.Load() {
		return true
	}
	if s.belongs(f) {
		s.left.Add(1)
		return false
	}
	return true
}

// begin begins another time, with the share for the frames of the last second.
func (s *share) begin(window int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.window.Load()
	if behind := before - window; behind >= 0 && behind < 100 { // another frame was faster; if more, the clock was set back
		return
	}
	gap := window - before
	for i := len(s.counts) - 1; i >= 0; i-- {
		switch at := int64(i) - gap; {
		case gap < 0 || at < -1: // times without frames
			s.counts[i] = 0
		case at == -1:
			s.counts[i] = s.came.Load()
		default:
			s.counts[i] = s.counts[at]
		}
	}
	rate := int64(0)
	for _, n := range s.counts {
		rate += n
	}
	every := int64(0)
	if rate > fullRate {
		every = (rate + sharedRate - 1) / sharedRate
	}
	s.came.Store(0)
	s.every.Store(every)
	s.window.Store(window)
}

// belongs reports whether a frame belongs to a call that is left out. The first frame of a call decides that.
func (s *share) belongs(f *trace.Frame) bool {
	by := callKey{cause: f.For}
	var m head
	if f.For == (trace.Cause{}) {
		switch {
		case f.Kind != trace.KindMessage || f.Server() != "":
			return false
		case len(f.Msg) > 0:
			if m = headOf(f.Msg); m.id != "" {
				by.cause = trace.Cause{Conn: f.Conn, ID: m.id}
			}
		}
	}
	exchange := callKey{}
	if f.HTTP != nil {
		exchange.exchange = f.HTTP.Exchange
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch every := s.every.Load(); {
	case f.For != (trace.Cause{}):
		return s.has(by)
	case m.method == "" && m.id != "": // an answer
		is := s.has(by) || s.has(exchange)
		if is {
			s.forget(by, exchange)
		}
		return is
	case m.method == "" || m.id == "": // a notification, or HTTP alone
		return s.has(exchange)
	case every <= 1:
		s.forget(by, exchange) // a new call with the id of a former one
		return false
	default:
		if s.calls++; s.calls%every == 0 {
			s.forget(by, exchange)
			return false
		}
		s.leave(by, exchange)
		return true
	}
}

func (s *share) has(k callKey) bool {
	if k == (callKey{}) {
		return false
	}
	_, is := s.out[k]
	if !is {
		_, is = s.old[k]
	}
	return is
}

// leave leaves a call out. Calls without an answer are forgotten after many others.
func (s *share) leave(keys ...callKey) {
	if s.out == nil || len(s.out) > 2*maxLeftOut {
		s.old, s.out = s.out, map[callKey]struct{}{}
	}
	for _, k := range keys {
		if k != (callKey{}) {
			s.out[k] = struct{}{}
		}
	}
	s.without.Store(true)
}

func (s *share) forget(keys ...callKey) {
	for _, k := range keys {
		delete(s.out, k)
		delete(s.old, k)
	}
	s.without.Store(len(s.out)+len(s.old) > 0)
}

// note says how many frames were left out; empty: none were.
func (s *share) note() string {
	n := s.left.Load()
	if n == 0 {
		return ""
	}
	note := fmt.Sprintf("%d frames were left out, of whole calls, while more than %d came in a second", n, fullRate)
	if every := s.every.Load(); every > 1 {
		note += fmt.Sprintf("; one call of %d is shown now", every)
	}
	return note
}
