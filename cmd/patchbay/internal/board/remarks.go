package board

import (
	"fmt"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
)

// manyProcesses is the number of processes of one server from which Remarks mentions them.
const manyProcesses = 5

// Remarks returns what a person should know about a running server beyond its row.
func Remarks(s *health.Server, now time.Time) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
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
	if s.Roots {
		say("it asks for roots, so each session with roots has its own connection: %d processes%s", s.Processes, InMemory(s.Memory))
	} else if perSession && s.Processes >= manyProcesses {
		say(`%d processes%s, one per session; "share": "principal" or "shared" needs fewer`, s.Processes, InMemory(s.Memory))
	}
	if s.Losses > 0 {
		say("clients lost their state %d times, and got an error each time", s.Losses)
	}
	if s.Evicted > 0 {
		say("closed %d quiet connections to make room for others", s.Evicted)
	}
	if s.Refused > 0 {
		say(`%d requests got no connection; "clients" sets the maximum`, s.Refused)
	}
	return lines
}

// InMemory describes the memory of processes, or "" if it is not known.
func InMemory(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(" with %d MB", (bytes+500_000)/1_000_000)
}
