package board

import (
	"cmp"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/metrics"
)

// Replicas returns the states of replicas for a report.
func Replicas(list []spread.Status) (out []health.Replica) {
	for _, s := range list {
		r := health.Replica{Name: s.Name, Conns: s.Conns, Calls: s.Calls, Breaker: "closed", Opened: s.Breaker.Opened, Since: s.Breaker.Since, Until: s.Breaker.Until, Differs: s.Differs, Out: s.Out}
		if r.Reason, _ = Apart(cmp.Or(s.Breaker.Cause, s.Reason)); s.Breaker.Open {
			r.Breaker = "open"
		}
		out = append(out, r)
	}
	return out
}

// Breakers returns the states of breakers for metrics.
func Breakers(list []health.Replica) (out []metrics.Breaker) {
	for _, r := range list {
		out = append(out, metrics.Breaker{Replica: r.Name, Open: r.Breaker == "open"})
	}
	return out
}

// Replica prints that the breaker of a replica has opened or closed.
func (b *Board) Replica(server string, s spread.Status) {
	if s.Name != server {
		server += ": replica " + s.Name
	}
	if s.Breaker.Open {
		b.talk.Note("%s: gets no calls for now: %s; it is tried again %s", server, screen.OneLine(s.Breaker.Cause), soon(time.Now(), s.Breaker.Until))
		return
	}
	b.talk.Note("%s: gets calls again", server)
}

// ofReplicas returns what a person should know about the replicas of a server.
func ofReplicas(s *health.Server, now time.Time) (lines []string) {
	for _, r := range s.Replicas {
		who, what := "", ""
		if len(s.Replicas) > 1 {
			who = "replica " + screen.OneLine(r.Name) + ": "
		}
		switch {
		case r.Out != "":
			what = screen.OneLine(r.Out)
		case r.Breaker == "open":
			what = fmt.Sprintf("gets no calls for %s, because %s; it is tried again %s", screen.Age(r.Since, now), screen.OneLine(r.Reason), soon(now, r.Until))
		case r.Conns == 0 && r.Reason != "":
			what = "not connected: " + screen.OneLine(r.Reason)
		case r.Differs != "":
			what = "differs, " + screen.OneLine(r.Differs)
		case len(s.Replicas) > 1:
			what = counted(uint64(r.Calls), "call") + " running"
		default:
			continue
		}
		lines = append(lines, who+what)
	}
	return lines
}

// soon words a time to come.
func soon(now, at time.Time) string {
	if at.Sub(now).Round(time.Second) <= 0 {
		return "now"
	}
	return "in " + screen.Age(now, at)
}

// Away counts the replicas that get no calls now, such as "1 of 2 replicas gets no calls"; empty: none.
func Away(s *health.Server) string {
	n := 0
	for _, r := range s.Replicas {
		if r.Breaker == "open" || r.Conns == 0 || r.Out != "" {
			n++
		}
	}
	switch {
	case n == 0:
		return ""
	case len(s.Replicas) == 1:
		return "its breaker is open"
	}
	return fmt.Sprintf("%d of %d replicas get no calls", n, len(s.Replicas))
}
