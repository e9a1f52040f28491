package metrics

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram has buckets from 2^minExp to 2^maxExp nanoseconds, eight for each power of two, and
// one below and one above. The middle of a bucket differs by at most 1/16 from any duration in it.
const (
	minExp  = 10 // 1.02 µs
	maxExp  = 42 // 73 minutes
	buckets = (maxExp-minExp)*8 + 2
)

// bucketOf returns the bucket of a duration.
func bucketOf(d time.Duration) int {
	ns := uint64(max(d, 0))
	e := bits.Len64(ns) - 1
	switch {
	case e < minExp:
		return 0
	case e >= maxExp:
		return buckets - 1
	}
	return 1 + (e-minExp)*8 + int(ns>>(e-3))&7
}

// middleOf returns the middle of a bucket; for the last bucket, its lower bound.
func middleOf(bucket int) time.Duration {
	switch bucket {
	case 0:
		return 1 << (minExp - 1)
	case buckets - 1:
		return 1 << maxExp
	}
	e, sub := minExp+(bucket-1)/8, (bucket-1)%8
	return time.Duration(2*(8+sub)+1) << (e - 4)
}

// Window is a span of time before now.
type Window int

const (
	Total  Window = iota // since the counters are in use
	Minute               // the last minute, and up to 10 seconds before it
	Hour                 // the last hour, and up to 10 minutes before it
)

// A window consists of slots. The oldest is complete, so that a window is never shorter than its
// name says.
const slots = 7

// minuteSlot is a part of the slot of an hour.
const minuteSlot = 10 * time.Second

var slotTime = [...]time.Duration{Minute: minuteSlot, Hour: 60 * minuteSlot}

// sums are counts beside a histogram.
type sums struct {
	kinds   [kinds]atomic.Uint64
	in, out atomic.Uint64 // bytes of params, and of results
	time    atomic.Int64  // nanoseconds
}

func (s *sums) add(o *ending) {
	s.kinds[o.kind].Add(1)
	s.in.Add(uint64(o.in))
	s.out.Add(uint64(o.out))
	s.time.Add(int64(o.took))
}

// now returns the time since a century before the start of the program: above zero also by the clock of synctest. It
// costs half of [time.Now].
func now() time.Duration { return time.Since(started) + century }

const century = 100 * 365 * 24 * time.Hour

// ending describes a call that has ended.
type ending struct {
	kind    Kind
	end     time.Duration // see now
	took    time.Duration
	in, out int
}

// series counts the calls of one method or tool. A window is the difference between the counts now and those at its
// begin.
type series struct {
	open atomic.Int64
	sums
	histogram [buckets]atomic.Uint64
	slot      atomic.Int64 // of a minute: the last with a call; zero: there was none
	marks     [len(slotTime)][slots]atomic.Pointer[mark]
}

// mark is what a series has counted before the first call in a slot.
type mark struct {
	slot   int64 // its time, divided by its length
	before tally
}

// record counts a call.
func (s *series) record(o *ending) {
	if slot := int64(o.end / minuteSlot); slot > s.slot.Load() {
		s.mark(slot)
	}
	s.add(o)
	s.histogram[bucketOf(o.took)].Add(1)
}

// mark marks the begin of a slot of a minute. A call that is counted meanwhile may belong to the slot before it.
func (s *series) mark(slot int64) {
	last := s.slot.Load()
	if slot <= last || !s.slot.CompareAndSwap(last, slot) {
		return
	}
	m := &mark{slot: slot}
	if last > 0 { // else the calls that others count now are the first
		s.counts(&m.before)
	}
	s.marks[Minute][slot%slots].Store(m)
	ratio := int64(slotTime[Hour] / slotTime[Minute])
	if hour := slot / ratio; hour > last/ratio {
		s.marks[Hour][hour%slots].Store(&mark{hour, m.before})
	}
}

// tally is the sum of series over a window. It is not used concurrently.
type tally struct {
	open      int64
	kinds     [kinds]uint64
	in, out   uint64
	time      int64
	histogram [buckets]uint64
}

// addTo adds the counts of a window that ends now.
func (s *series) addTo(t *tally, w Window, now time.Duration) {
	t.open += s.open.Load()
	if w == Total {
		s.counts(t)
		return
	}
	first := int64(now/slotTime[w]) - slots + 1 // slot of the window
	var begin *mark                             // of the first slot with a call
	for i := range s.marks[w] {
		place := &s.marks[w][i]
		switch m := place.Load(); {
		case m == nil:
		case m.slot < first:
			place.CompareAndSwap(m, nil) // frees its memory
		case begin == nil || m.slot < begin.slot:
			begin = m
		}
	}
	if begin != nil {
		t.subtract(&begin.before)
		s.counts(t)
	}
}

// counts adds all that was counted.
func (s *series) counts(t *tally) {
	for k := range t.kinds {
		t.kinds[k] += s.kinds[k].Load()
	}
	t.in += s.in.Load()
	t.out += s.out.Load()
	t.time += s.time.Load()
	for b := range s.histogram {
		t.histogram[b] += s.histogram[b].Load()
	}
}

// subtract takes away the counts before a window, of which the same series then adds at least as many.
func (t *tally) subtract(o *tally) {
	for k := range t.kinds {
		t.kinds[k] -= o.kinds[k]
	}
	t.in -= o.in
	t.out -= o.out
	t.time -= o.time
	for b := range t.histogram {
		t.histogram[b] -= o.histogram[b]
	}
}

// add adds another tally of the same window.
func (t *tally) add(o *tally) {
	t.open += o.open
	for k := range t.kinds {
		t.kinds[k] += o.kinds[k]
	}
	t.in += o.in
	t.out += o.out
	t.time += o.time
	for b := range t.histogram {
		t.histogram[b] += o.histogram[b]
	}
}

// calls returns the number of calls that have ended.
func (t *tally) calls() (n uint64) {
	for _, k := range t.kinds {
		n += k
	}
	return n
}

// quantile returns the duration that a part q of the calls does not exceed; zero without calls.
func (t *tally) quantile(q float64) time.Duration {
	all := uint64(0)
	for _, n := range t.histogram {
		all += n
	}
	rank := uint64(math.Ceil(q * float64(all)))
	for b, n := range t.histogram {
		if n > 0 && rank <= n {
			return middleOf(b)
		}
		rank -= n
	}
	return 0
}
