package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
)

// manyProcesses of one server are worth a remark.
const manyProcesses = 5

// serverRemarks are what a person should know of a server that is running, beside its row.
func serverRemarks(s *health.Server, now time.Time) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if s.Lost != "" {
		say("a connection to it ended %s ago: %s", age(s.LostAt, now), oneLine(s.Lost))
	}
	if len(s.Shadowed) > 0 {
		say("%d of its URIs are read from a server whose name comes earlier, such as %s", len(s.Shadowed), s.Shadowed[0])
	}
	perSession := s.Share == gateway.PerSession.String()
	if s.Asks && !perSession && s.Share != gateway.PerPrincipal.String() {
		say("callers who share a connection take turns, as its questions name no call")
	}
	if s.Roots {
		say("it asks for roots, so each session that has some has a connection of its own: %d processes%s", s.Processes, inMemory(s.Memory))
	} else if perSession && s.Processes >= manyProcesses {
		say(`%d processes%s, one for each session; with "share": "principal" or "shared" there are fewer`, s.Processes, inMemory(s.Memory))
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

// inMemory words what processes cost, empty if that is not known.
func inMemory(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(" with %d MB", (bytes+500_000)/1_000_000)
}

// warnOfProcesses names the servers of which each session runs a process of its own, and what
// one costs.
func (h *upServer) warnOfProcesses() {
	var names []string
	var memory int64
	for _, s := range h.report().Servers {
		if s.Share == gateway.PerSession.String() && s.Processes > 0 && !s.Roots {
			names = append(names, s.Name)
			memory += s.Memory / int64(s.Processes)
		}
	}
	if len(names) == 0 {
		return
	}
	h.a.print(fmt.Sprintf("Each session that uses %s runs another process of it%s. --share principal: one for", h.a.shown(strings.Join(names, ", ")), inMemory(memory)))
	h.a.print("each person, whatever number of windows; --share shared: one for all.")
}
