package metrics

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Point has the counts of a span of time, such as a minute. Calls are those of callers; durations are as in [Stats].
type Point struct {
	At       time.Time `json:"at"` // when the span began
	Calls    uint64    `json:"calls"`
	Errors   uint64    `json:"errors"` // of all kinds
	Slow     uint64    `json:"slow"`   // calls that took longer than [Slow]
	P50      Latency   `json:"p50"`    // in milliseconds
	P95      Latency   `json:"p95"`
	P99      Latency   `json:"p99"`
	BytesIn  uint64    `json:"bytesIn"`
	BytesOut uint64    `json:"bytesOut"`
}

// Slow is the time after which a call is slow. Counts of slow calls are exact but for those that take less than 1 % more.
const Slow = time.Second

// A history has this many spans.
const (
	minutesKept = 60
	hoursKept   = 24
)

// phase is the part of an hour of UTC at which [now] was a multiple of hours, so that spans begin with minutes and
// hours of the clock.
var phase = time.Duration(started.UnixNano()%int64(time.Hour)) - century%time.Hour + time.Hour

// history keeps the past of one server, in spans that have calls.
type history struct {
	minute atomic.Int64 // the span of the last call; zero: there was none

	mu   sync.Mutex
	past *past // nil: there was no call; guarded by mu
}

// past takes 10 kB.
type past struct {
	minutes      [minutesKept]span
	hours        [hoursKept]span
	minute       int64 // that has not ended
	beforeHour   tally // what was counted before the hour of it
	beforeMinute tally
}

// span is a minute or an hour that has ended.
type span struct {
	number                       int64 // time divided by its length; zero: none
	calls, errors, slow, in, out uint64
	p50, p95, p99                time.Duration
}

// note begins a new minute of the history of a server if the call that ends is the first in it. Else it costs a
// comparison.
func (s *server) note(end time.Duration) {
	if minute := int64((end + phase) / time.Minute); minute > s.history.minute.Load() {
		s.turn(minute)
	}
}

// turn ends the minute of the last call. A call that is counted meanwhile may belong to the minute before.
func (s *server) turn(minute int64) {
	h := &s.history
	if last := h.minute.Load(); minute <= last || !h.minute.CompareAndSwap(last, minute) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.past == nil {
		h.past = &past{minute: minute}
		return
	}
	p := h.past
	if minute <= p.minute { // another one was faster
		return
	}
	sum := new(tally)
	s.callers.counts(sum)
	p.minutes[p.minute%minutesKept] = sum.since(&p.beforeMinute, p.minute)
	p.beforeMinute = *sum
	if hour := p.minute / 60; minute/60 > hour {
		p.hours[hour%hoursKept] = sum.since(&p.beforeHour, hour)
		p.beforeHour = *sum
	}
	p.minute = minute
}

// counts adds all that the series of a table have counted.
func (t *table) counts(sum *tally) {
	for i := range t.methods {
		if s := t.methods[i].Load(); s != nil {
			s.counts(sum)
		}
	}
	if tools := t.tools.Load(); tools != nil {
		for _, s := range *tools {
			s.counts(sum)
		}
	}
}

// since returns what was counted after before.
func (t *tally) since(before *tally, number int64) span {
	d := *t
	d.subtract(before)
	calls := d.calls()
	return span{
		number: number, calls: calls, errors: calls - d.kinds[OK] - d.kinds[Canceled], slow: d.above(Slow), in: d.in, out: d.out,
		p50: d.quantile(0.5), p95: d.quantile(0.95), p99: d.quantile(0.99),
	}
}

// above returns the number of calls in the buckets above that of a duration.
func (t *tally) above(d time.Duration) (n uint64) {
	for _, in := range t.histogram[bucketOf(d)+1:] {
		n += in
	}
	return n
}

func (s *span) point(at time.Time) Point {
	return Point{at, s.calls, s.errors, s.slow, Latency{s.p50}, Latency{s.p95}, Latency{s.p99}, s.in, s.out}
}

// Minutes returns what callers got from a server in each of the last 60 minutes with a call, the oldest first. The
// last one may not have ended. Nil: there is no such server, or it had no calls.
func (c *Counters) Minutes(server string) []Point { return c.points(server, time.Minute) }

// Hours is like [Counters.Minutes] for the last 24 hours.
func (c *Counters) Hours(server string) []Point { return c.points(server, time.Hour) }

func (c *Counters) points(name string, each time.Duration) (out []Point) {
	s := c.known(name)
	if s == nil {
		return nil
	}
	sum, now := new(tally), now()
	begin := time.Now().Add(-now - phase) // of number 0
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.past
	if p == nil {
		return nil
	}
	kept, before, open := p.minutes[:], &p.beforeMinute, p.minute
	if each == time.Hour {
		kept, before, open = p.hours[:], &p.beforeHour, p.minute/60
	}
	s.callers.counts(sum)
	first := int64((now+phase)/each) - int64(len(kept)) + 1
	for _, one := range append(slices.Clone(kept), sum.since(before, open)) {
		if one.number >= max(first, 1) && one.calls > 0 {
			out = append(out, one.point(begin.Add(time.Duration(one.number)*each).Round(time.Second)))
		}
	}
	slices.SortFunc(out, func(a, b Point) int { return a.At.Compare(b.At) })
	return out
}

// OfTool returns what callers got from a tool of a server in the last hour, in spans of 10 minutes with a call, the
// oldest first. It is nil if the server has no such tool, or the tool had no calls.
func (c *Counters) OfTool(server, tool string) (out []Point) {
	s := c.known(server)
	if s == nil {
		return nil
	}
	tools := s.callers.tools.Load()
	if tools == nil || (*tools)[tool] == nil {
		return nil
	}
	one, now := (*tools)[tool], now()
	begin, first := time.Now().Add(-now), int64(now/slotTime[Hour])-slots+1
	var marks []*mark
	for i := range one.marks[Hour] {
		if m := one.marks[Hour][i].Load(); m != nil && m.slot >= first {
			marks = append(marks, m)
		}
	}
	slices.SortFunc(marks, func(a, b *mark) int { return int(a.slot - b.slot) })
	for i, m := range marks {
		end := new(tally)
		if i+1 < len(marks) {
			*end = marks[i+1].before
		} else {
			one.counts(end)
		}
		if got := end.since(&m.before, m.slot); got.calls > 0 {
			out = append(out, got.point(begin.Add(time.Duration(m.slot)*slotTime[Hour]).Round(time.Second)))
		}
	}
	return out
}
