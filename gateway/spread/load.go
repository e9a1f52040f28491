package spread

import (
	"context"
	"math"
	"time"
)

// load is what the requests to a replica tell about it. Its cost is
//
//	(latency x (open + 1) + waited) x (1 + failures)
//
// with the expected latency of a request, the number of open requests, how long these have waited
// together, and the share of failures. It is the formula of package host for groups, with the open
// requests, because several callers use a replica at once. Latency and failures fade, so that a replica
// that was slow once can prove to be fast again.
type load struct {
	open    int
	started float64 // sum of the times when the open requests began, in seconds since epoch

	latency  float64 // of a request, in seconds; 0: unknown
	failures float64 // share of failures, from 0 to 1
	at       time.Time

	reads map[int]read // requests that may be repeated elsewhere
	id    int
}

// read is a request that may be repeated elsewhere.
type read struct {
	over   *line
	cancel context.CancelCauseFunc
}

const (
	fade = 3 * time.Second // after which an old value counts 1/e

	// leastLatency keeps chance from deciding among replicas that answer within a moment.
	leastLatency = 0.001

	// faultTook is the least time, in seconds, that a request counts which the replica did not answer.
	faultTook = 1

	// mostWaited bounds how much open requests count, in latencies each, so that a replica with one
	// long request still gets others.
	mostWaited = 20
)

// epoch is a moment from which times are counted, so that a float64 has them exactly enough.
var epoch = time.Now()

func seconds(t time.Time) float64 { return t.Sub(epoch).Seconds() }

func (l *load) begin(now time.Time) {
	l.open++
	l.started += seconds(now)
}

// end counts the end of a request. One that has failed never makes the replica look faster: a replica that
// fails at once would otherwise get the requests of all others.
func (l *load) end(began, now time.Time, f fault, failure, left bool) {
	l.open--
	l.started -= seconds(began)
	if l.open == 0 {
		l.started = 0 // no rounding errors remain
	}
	if left {
		return // its time says nothing
	}
	took, failed := now.Sub(began).Seconds(), 0.0
	if failure || f != answered {
		failed = 1
		if took = max(took, l.latency); f != answered {
			took = max(took, faultTook)
		}
	}
	// Requests that come at once count less each, those after a pause count more.
	weight := 0.1
	if !l.at.IsZero() {
		weight = max(weight, 1-math.Exp(-now.Sub(l.at).Seconds()/fade.Seconds()))
	}
	if l.latency == 0 {
		l.latency = took
	} else {
		l.latency += weight * (took - l.latency)
	}
	l.failures += weight * (failed - l.failures)
	l.at = now
}

func (l *load) cost(now time.Time) float64 {
	latency, failures := l.latency, l.failures
	if !l.at.IsZero() {
		old := math.Exp(-now.Sub(l.at).Seconds() / fade.Seconds())
		latency, failures = latency*old, failures*old
	}
	latency = max(latency, leastLatency)
	n := float64(l.open)
	waited := max(n*seconds(now)-l.started, 0)
	return (latency*(n+1) + min(waited, mostWaited*n*latency)) * (1 + failures)
}

// forget drops what is known about latency and failures, because the replica has recovered.
func (l *load) forget() { l.latency, l.failures, l.at = 0, 0, time.Time{} }

func (l *load) addRead(over *line, cancel context.CancelCauseFunc) int {
	if l.reads == nil {
		l.reads = map[int]read{}
	}
	l.id++
	l.reads[l.id] = read{over, cancel}
	return l.id
}

// cancelReads cancels the requests over a line that may be repeated elsewhere; nil: over all lines.
func (l *load) cancelReads(over *line, cause error) {
	for _, r := range l.reads {
		if over == nil || r.over == over {
			r.cancel(cause)
		}
	}
}
