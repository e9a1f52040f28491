package limit

import (
	"encoding/binary"
	"math"
	"time"
)

// standing is what a process knows of one limit of a caller that uses it here, or is near it at another process. Its Group guards it.
//
// The parts of all processes are at most the whole: one takes more only when the others have said that they take less. With
// the part go the tokens: what one process loses, as its bucket shrinks, another one gains.
type standing struct {
	nodes  int              // that part was made for
	part   float64          // of the limit, that this process allows
	gain   float64          // of the limit, that others gave with its tokens and the bucket does not have yet
	near   time.Time        // when the caller came near the limit here; zero: not yet
	used   float64          // requests here, of which half is forgotten after the time half
	half   time.Duration    // zero: none came here
	at     time.Time        // of used
	fill   float64          // how full the bucket was, from 0 to 1; full if there is none
	filled time.Time        // when it was
	refill float64          // how much of it is filled in a second
	busy   float64          // running requests, as a part of their bound
	told   claim            // what the others heard last
	others map[uint64]claim // what this process heard, by process
	over   bool             // it is not known to the Group any more
}

// claim is what a process tells of a standing.
type claim struct {
	used float64
	part float64
	fill float64
	at   time.Time // when it was told
}

const (
	// Half of the requests are forgotten in a time that is long enough for the limit to allow some, so that the parts do not
	// follow each request; all, when the bucket is full again.
	minHalf      = 2 * time.Second
	halfRequests = 6

	least = 0.1  // of an equal part, is what a process has in any case
	step  = 0.1  // of an equal part: parts that differ by less are the same
	few   = 0.05 // requests: none
)

// recount notes how many processes there are. A new one has to hear everything.
func (s *standing) recount(nodes int) {
	if s.nodes != nodes {
		s.nodes, s.told.at = nodes, time.Time{}
	}
}

// use notes a request, and what is left of the bucket.
func (s *standing) use(now time.Time, r Rate, fill, busy float64) {
	s.half = minHalf
	s.refill = 0
	if !r.none() {
		s.half = max(s.half, time.Duration(halfRequests/r.perSecond()*float64(time.Second)))
		s.refill = r.perSecond() / float64(r.burst())
	}
	s.forget(now)
	s.used = min(s.used+1, max(halfRequests, float64(r.burst()))) // also of a caller that tries again and again
	s.fill, s.filled, s.busy = fill, now, busy
}

// forget forgets what was used long ago.
func (s *standing) forget(now time.Time) {
	if passed := now.Sub(s.at); s.used > 0 && passed > 0 {
		s.used *= math.Exp2(-float64(passed) / float64(s.half))
	}
	s.at = now
	switch {
	case s.busy > 0:
		s.used = max(s.used, 1)
	case s.used < few || s.refill > 0 && s.full(now) == 1:
		s.used = 0
	}
}

// full returns how full the bucket is.
func (s *standing) full(now time.Time) float64 {
	return min(1, s.fill+s.refill*max(0, now.Sub(s.filled).Seconds()))
}

// weigh makes the part of this process: what it uses of all that is used, as far as others do not have it.
func (s *standing) weigh(now time.Time) {
	s.forget(now)
	equal := 1 / float64(s.nodes)
	all, free, fill, unknown := s.used, 1.0, 1.0, s.nodes-1
	for from, c := range s.others {
		if now.Sub(c.at) > validTime {
			delete(s.others, from)
			continue
		}
		all += c.used
		free -= c.part
		fill = min(fill, c.fill)
		unknown--
	}
	free -= float64(max(0, unknown)) * equal
	want := equal
	if all > 0 {
		want = least*equal + (1-least)*s.used/all
	}
	part := max(least*equal, min(want, free))
	switch {
	case math.Abs(part-s.part) < step*equal:
		return
	case part > s.part:
		s.gain += (part - s.part) * fill
	default:
		s.gain *= part / s.part
	}
	s.part = part
}

// claim returns what the others should hear.
func (s *standing) claim(now time.Time) claim {
	s.forget(now)
	return claim{used: s.used, part: max(s.part, min(s.busy, 1)), fill: s.full(now), at: now}
}

// quiet says whether nothing comes to any process. A process that has not heard for long says so by itself.
func (s *standing) quiet(now time.Time) bool {
	if s.used > 0 || s.busy > 0 || s.told.used > 0 {
		return false
	}
	for _, c := range s.others {
		if c.used > 0 && now.Sub(c.at) <= validTime {
			return false
		}
	}
	return true
}

// news says whether a claim differs from what was told before.
func (c claim) news(told claim) bool {
	differ := func(a, b float64) bool { return math.Abs(a-b) > 0.1*b }
	return told.at.IsZero() || differ(c.used, told.used) || differ(c.part, told.part) || math.Abs(c.fill-told.fill) > 0.1
}

// append appends a claim to a message.
func (c claim) append(m []byte, hash uint64) []byte {
	m = binary.BigEndian.AppendUint64(m, hash)
	m = binary.BigEndian.AppendUint32(m, math.Float32bits(float32(c.used)))
	m = binary.BigEndian.AppendUint16(m, uint16(math.Ceil(c.part*math.MaxUint16)))
	return binary.BigEndian.AppendUint16(m, uint16(c.fill*math.MaxUint16))
}

// readClaim reads a claim of a message.
func readClaim(m []byte, now time.Time) (hash uint64, c claim) {
	c.at = now
	if used := math.Float32frombits(binary.BigEndian.Uint32(m[8:])); used > 0 && used <= math.MaxFloat32 { // a number
		c.used = float64(used)
	}
	c.part = float64(binary.BigEndian.Uint16(m[12:])) / math.MaxUint16
	c.fill = float64(binary.BigEndian.Uint16(m[14:])) / math.MaxUint16
	return binary.BigEndian.Uint64(m), c
}
