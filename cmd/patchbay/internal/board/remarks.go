package board

import (
	"fmt"
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
		say("a connection to it ended %s ago: %s", screen.Age(s.LostAt, now), screen.OneLine(s.Lost))
	}
	if len(s.Shadowed) > 0 {
		say("%d of its URIs are read from a server whose name comes earlier, such as %s", len(s.Shadowed), s.Shadowed[0])
	}
	perSession := s.Share == gateway.PerSession.String()
	if s.Asks && !perSession && s.Share != gateway.PerPrincipal.String() {
		say("callers who share a connection take turns, as its questions name no call")
	}
	if s.Roots {
		say("it asks for roots, so each session that has some has a connection of its own: %d processes%s", s.Processes, InMemory(s.Memory))
	} else if perSession && s.Processes >= manyProcesses {
		say(`%d processes%s, one for each session; with "share": "principal" or "shared" there are fewer`, s.Processes, InMemory(s.Memory))
	}
	if s.Losses > 0 {
		say("%d times a client lost what it kept for that client, and was told", s.Losses)
	}
	if s.Evicted > 0 {
		say("%d connections that had only read made room for others", s.Evicted)
	}
	if s.Refused > 0 {
		say(`%d requests found no place for a connection; "clients" says how many there are`, s.Refused)
	}
	return lines
}

// InMemory describes the memory of processes; empty if it is not known.
func InMemory(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(" with %d MB", (bytes+500_000)/1_000_000)
}
