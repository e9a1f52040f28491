package spread

import (
	"context"
	"math"
	"time"
)

// load is what the requests to a replica tell about it. Its cost for another request is
//
//	(latency x (open + 1) + waited) x (1 + failures)
//
// with the expected latency of a request, the number of open requests, how long these have waited
// together, and the share of failures. It is the formula of package host for groups, with the open
// requests, because several callers use a replica at once. Latency and failures are those of calls of tools for
// a call, because a list takes a moment where a call takes long. They fade, so that a replica
// that was slow once can prove to be fast again.
type load struct {
	open    int
	started float64 // sum of the times when the open requests began, in seconds since epoch

	calls, others past

	reads map[int]read // requests that may be repeated elsewhere
	id    int
}

// past is what finished requests tell: calls of tools, or all others.
type past struct {
	latency  float64 // of a request, in seconds; 0: unknown
	failures float64 // share of failures, from 0 to 1
	at       time.Time
}

// ending is how a request ended.
type ending struct {
	call   bool    // it called a tool
	left   bool    // its caller has left
	failed bool    // that is the fault of the replica
	lost   bool    // it failed, and no other replica may answer it
	usual  float64 // latency of such requests at the other replicas
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

	// faultTook is the least time, in seconds, that a request counts which the replica did not answer and no other one
	// may answer in its place. Those that another one answers open the breaker soon, at no cost for callers.
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

// end counts the end of a request. One that has failed never makes the replica look faster than the others: a replica
// that fails at once would otherwise get the requests of all of them.
func (l *load) end(began, now time.Time, e ending) {
	l.open--
	l.started -= seconds(began)
	if l.open == 0 {
		l.started = 0 // no rounding errors remain
	}
	if e.left {
		return // its time says nothing
	}
	l.past(e.call).add(now.Sub(began).Seconds(), now, e)
}

func (p *past) add(took float64, now time.Time, e ending) {
	failed := 0.0
	if e.failed {
		failed, took = 1, max(took, p.latency)
	}
	if e.lost {
		took = max(took, faultTook)
	}
	// Requests that come at once count less each, those after a pause count more.
	weight := 0.1
	if !p.at.IsZero() {
		weight = max(weight, 1-math.Exp(-now.Sub(p.at).Seconds()/fade.Seconds()))
	}
	if p.latency == 0 {
		p.latency = took
	} else {
		p.latency += weight * (took - p.latency)
	}
	if e.failed {
		p.latency = max(p.latency, e.usual)
	}
	p.failures += weight * (failed - p.failures)
	p.at = now
}

// past returns what is known about calls of tools, or about other requests.
func (l *load) past(call bool) *past {
	if call {
		return &l.calls
	}
	return &l.others
}

func (l *load) cost(now time.Time, call bool) float64 {
	p := *l.past(call)
	if !p.at.IsZero() {
		old := math.Exp(-now.Sub(p.at).Seconds() / fade.Seconds())
		p.latency, p.failures = p.latency*old, p.failures*old
	}
	latency := max(p.latency, leastLatency)
	n := float64(l.open)
	waited := max(n*seconds(now)-l.started, 0)
	return (latency*(n+1) + min(waited, mostWaited*n*latency)) * (1 + p.failures)
}

// forget drops what is known about latency and failures, because the replica has recovered.
func (l *load) forget() { l.calls, l.others = past{}, past{} }

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
