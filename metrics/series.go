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

var slotTime = [...]time.Duration{Minute: 10 * time.Second, Hour: 10 * time.Minute}

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

// ending describes a call that has ended.
type ending struct {
	kind    Kind
	end     time.Time
	took    time.Duration
	in, out int
}

// slot holds the counts of one part of a window. The times of all slots are multiples of its
// length.
type slot struct {
	number int64 // its time, divided by its length
	sums
	histogram [buckets]atomic.Uint32
}

// series counts the calls of one method or tool.
type series struct {
	open atomic.Int64
	sums
	histogram [buckets]atomic.Uint64
	rings     [len(slotTime)][slots]atomic.Pointer[slot] // the first is unused
}

// record counts a call.
func (s *series) record(o *ending) {
	b := bucketOf(o.took)
	s.add(o)
	s.histogram[b].Add(1)
	for w := Minute; w <= Hour; w++ {
		if t := s.slot(w, o.end); t != nil {
			t.add(o)
			t.histogram[b].Add(1)
		}
	}
}

// slot returns the slot of a time, or nil if a newer slot has its place.
func (s *series) slot(w Window, at time.Time) *slot {
	number := at.UnixNano() / int64(slotTime[w])
	place := &s.rings[w][number%slots]
	for {
		now := place.Load()
		switch {
		case now == nil || now.number < number:
			fresh := &slot{number: number}
			if place.CompareAndSwap(now, fresh) {
				return fresh
			}
		case now.number == number:
			return now
		default:
			return nil
		}
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
func (s *series) addTo(t *tally, w Window, now time.Time) {
	t.open += s.open.Load()
	if w == Total {
		t.sums(&s.sums)
		for i := range s.histogram {
			t.histogram[i] += s.histogram[i].Load()
		}
		return
	}
	current := now.UnixNano() / int64(slotTime[w])
	for i := range s.rings[w] {
		place := &s.rings[w][i]
		p := place.Load()
		switch {
		case p == nil:
			continue
		case p.number <= current-slots:
			place.CompareAndSwap(p, nil) // frees its memory
			continue
		}
		t.sums(&p.sums)
		for b := range p.histogram {
			t.histogram[b] += uint64(p.histogram[b].Load())
		}
	}
}

func (t *tally) sums(s *sums) {
	for k := range t.kinds {
		t.kinds[k] += s.kinds[k].Load()
	}
	t.in += s.in.Load()
	t.out += s.out.Load()
	t.time += s.time.Load()
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
