package board

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/stray"
	"github.com/patchbay-dev/patchbay/metrics"
)

// manyProcesses is the number of processes of one server from which Remarks mentions them.
const manyProcesses = 5

// Remarks returns what a person should know about a running server beyond its row.
func Remarks(s *health.Server, now time.Time) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if s.Minute != nil {
		lines = append(lines, "in the last minute "+Traffic(s.Minute.Stats))
	}
	if s.Tokens > 0 {
		lines = append(lines, tokens(s))
	}
	lines = append(lines, ofReplicas(s, now)...)
	if s.Cache != nil {
		say("the cache has answered %d of %s of read-only tools", s.Cache.Hits, counted(s.Cache.Hits+s.Cache.Misses, "call"))
	}
	lines = append(lines, Strays(s)...)
	if s.Lost != "" {
		say("a connection ended %s ago: %s", screen.Age(s.LostAt, now), screen.OneLine(s.Lost))
	}
	if len(s.Debug) > 0 {
		say("a debugger can attach to %s", strings.Join(s.Debug, ", "))
	}
	if len(s.Shadowed) > 0 {
		say("%d of its URIs are read from another server, earlier in name order, such as %s", len(s.Shadowed), s.Shadowed[0])
	}
	perSession := s.Share == gateway.PerSession.String()
	if s.Asks && !perSession && s.Share != gateway.PerPrincipal.String() {
		say("callers that share a connection take turns, as its questions do not name a call")
	}
	if turns := Turns(s, now); turns != "" {
		say("%s", turns)
	}
	if s.Roots {
		say("it asks for roots, so each session with roots has its own connection: %d processes%s", s.Processes, inMemory(s.Memory))
	} else if perSession && s.Processes >= manyProcesses {
		say(`%d processes%s, one per session; "share": "principal" or "shared" needs fewer`, s.Processes, inMemory(s.Memory))
	}
	if s.Losses > 0 {
		say("clients lost their state %s, and got an error each time", screen.Quantity(s.Losses, "time"))
	}
	if s.Evicted > 0 {
		say("closed %s to make room for others", screen.Quantity(s.Evicted, "quiet connection"))
	}
	if s.Refused > 0 {
		say(`%s got no connection; "clients" sets the maximum`, screen.Quantity(s.Refused, "request"))
	}
	return lines
}

// Strays says that a server prints lines to its standard output that are not messages, and what to do; nil: it does not.
func Strays(s *health.Server) []string {
	if s.Strays == 0 {
		return nil
	}
	first := ""
	if s.Stray != "" { // people who are not administrators do not see it
		first = fmt.Sprintf(", first %q", s.Stray)
	}
	return []string{fmt.Sprintf("it printed %s besides messages%s", screen.Quantity(s.Strays, "line"), first), stray.Advice}
}

// Turns describes the calls that wait for their turn, such as "2 calls wait for their turn; a question
// to carl has been open for 58s", or the open question alone. It is empty if there are neither.
func Turns(s *health.Server, now time.Time) string {
	switch {
	case s.Waiting == 0 && s.Question.IsZero():
		return ""
	case s.Waiting == 0:
		return fmt.Sprintf("a question to %s has been open for %s", cmp.Or(screen.OneLine(s.Asked), "a caller"), screen.Age(s.Question, now))
	}
	out := counted(uint64(s.Waiting), "call") + " wait for their turn"
	if s.Waiting == 1 {
		out = "1 call waits for its turn"
	}
	if s.Question.IsZero() {
		return out
	}
	return fmt.Sprintf("%s; a question to %s has been open for %s", out, cmp.Or(screen.OneLine(s.Asked), "another caller"), screen.Age(s.Question, now))
}

// Traffic describes calls, such as "12 calls, p95 80 ms, 3 errors (2 tool, 1 deadline), 1 canceled".
func Traffic(s metrics.Stats) string {
	out := counted(s.Calls, "call")
	if s.Calls > 0 {
		out += ", p95 " + Took(s.P95)
	}
	if n := s.Errors.Sum(); n > 0 {
		out += ", " + counted(n, "error") + " (" + Kinds(s.Errors) + ")"
	}
	if s.Canceled > 0 {
		out += fmt.Sprintf(", %d canceled", s.Canceled)
	}
	if s.Open > 0 {
		out += fmt.Sprintf(", %d running", s.Open)
	}
	return out
}

func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Sent describes the telemetry that a gateway has sent, such as "telemetry to http://collector:4318:
// 120 spans sent, 4 lost: the collector answered 503 Service Unavailable".
func Sent(t *health.Telemetry) string {
	out := "telemetry to " + t.Endpoint + ": " + counted(t.Sent, "span") + " sent"
	if t.Dropped > 0 {
		out += fmt.Sprintf(", %d dropped", t.Dropped)
	}
	if t.Lost > 0 {
		out += fmt.Sprintf(", %d lost", t.Lost)
	}
	if t.Fault != "" {
		out += ": " + screen.OneLine(t.Fault)
	}
	return out
}

// Kinds lists the kinds of errors that have occurred, with their numbers.
func Kinds(e metrics.Errors) string {
	var out []string
	for _, kind := range []struct {
		name string
		n    uint64
	}{{"tool", e.Tool}, {"protocol", e.Protocol}, {"transport", e.Transport}, {"policy", e.Policy}, {"limit", e.Limit}, {"deadline", e.Deadline}, {"audit", e.Audit}, {"unsent", e.Unsent}} {
		if kind.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", kind.n, kind.name))
		}
	}
	return strings.Join(out, ", ")
}

// Took words a latency, with two or three digits.
func Took(l metrics.Latency) string {
	switch ms := float64(l.Microseconds()) / 1000; {
	case ms >= 10_000:
		return fmt.Sprintf("%.0f s", ms/1000)
	case ms >= 1000:
		return fmt.Sprintf("%.1f s", ms/1000)
	case ms >= 10:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f ms", ms)
	}
}

// PerSession returns lines about the servers that run a process per session, with the memory of one process each;
// none if no server does.
func PerSession(servers []health.Server, shown func(string) string) []string {
	var names []string
	var memory int64
	for _, s := range servers {
		if s.Share == gateway.PerSession.String() && s.Processes > 0 && !s.Roots {
			names = append(names, s.Name)
			memory += s.Memory / int64(s.Processes)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf("Each session that uses %s starts its own process%s. --share principal: one for", shown(strings.Join(names, ", ")), inMemory(memory)),
		"each person; --share shared: one for all.",
	}
}

// inMemory describes the memory of processes, or "" if it is not known.
func inMemory(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(" with %d MB", (bytes+500_000)/1_000_000)
}
