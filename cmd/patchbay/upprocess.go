package main

import (
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/gateway"
)

// warnOfProcesses prints the servers that run a process per session, and the memory of one process.
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
	h.a.print(fmt.Sprintf("Each session that uses %s starts its own process%s. --share principal: one for", h.a.shown(strings.Join(names, ", ")), board.InMemory(memory)))
	h.a.print("each person; --share shared: one for all.")
}
