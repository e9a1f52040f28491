package board

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/metrics"
)

// Replicas returns the states of replicas for a report.
func Replicas(list []spread.Status) (out []health.Replica) {
	for _, s := range list {
		r := health.Replica{Name: s.Name, Conns: s.Conns, Calls: s.Calls, Breaker: "closed", Opened: s.Breaker.Opened, Since: s.Breaker.Since, Until: s.Breaker.Until, Differs: s.Differs, Out: s.Out, Kind: s.Breaker.Kind.String()}
		for _, kind := range breaker.Kinds() {
			if n := s.Breaker.Failures[kind]; n > 0 {
				if r.Failures == nil {
					r.Failures = map[string]int{}
				}
				r.Failures[kind.String()] = n
			}
		}
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
		out = append(out, metrics.Breaker{Replica: r.Name, Open: r.Breaker == "open", Failures: r.Failures})
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
			what = fmt.Sprintf("gets no calls, as its breaker has been open for %s; last failure: %s; it is tried again %s", screen.Age(r.Since, now), screen.OneLine(r.Reason), soon(now, r.Until)) + failures(r.Failures)
		case r.Conns == 0 && r.Reason != "":
			what = "not connected: " + screen.OneLine(r.Reason)
		case r.Differs != "":
			what = "differs, " + screen.OneLine(r.Differs)
		case len(s.Replicas) > 1:
			what = counted(uint64(r.Calls), "call") + " running" + failures(r.Failures)
		default:
			continue
		}
		lines = append(lines, who+what)
	}
	return lines
}

// kindTexts are the kinds of failures for people: of one, and of several.
var kindTexts = map[breaker.Kind][2]string{
	breaker.Lost: {"lost connection", "lost connections"}, breaker.TimedOut: {"timeout", "timeouts"}, breaker.Internal: {"error -32603", "errors -32603"},
	breaker.BadStatus: {"answer with a status of 500 or more", "answers with a status of 500 or more"}, breaker.Unusable: {"unusable answer", "unusable answers"},
	breaker.Refused: {"refusal of what another replica answers", "refusals of what another replica answers"}, breaker.Silent: {"failed ping", "failed pings"},
}

// failures words the failures by kind, such as "; failures since the start: 10 timeouts"; empty: there were none.
func failures(counts map[string]int) string {
	var parts []string
	for _, kind := range breaker.Kinds() {
		if n := counts[kind.String()]; n > 0 {
			texts := kindTexts[kind]
			parts = append(parts, fmt.Sprint(n, " ", texts[min(n, 2)-1]))
		}
	}
	if parts == nil {
		return ""
	}
	return "; failures since the start: " + strings.Join(parts, ", ")
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
	if len(s.Replicas) == 1 { // without replicas the state of the server says the rest
		if s.Replicas[0].Breaker == "open" {
			return "its breaker is open"
		}
		return ""
	}
	n := 0
	for _, r := range s.Replicas {
		if r.Breaker == "open" || r.Conns == 0 || r.Out != "" {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 of %d replicas gets no calls", len(s.Replicas))
	}
	return fmt.Sprintf("%d of %d replicas get no calls", n, len(s.Replicas))
}
