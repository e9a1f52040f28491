package main

import (
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// table prints one line per server.
func (h *upServer) table() {
	t := &screen.Grid{Right: []bool{false, true, true, true}}
	t.Add("SERVER", "TOOLS", "PROMPTS", "RESOURCES", "STATE")
	for _, s := range h.report().Servers {
		what := s.State
		switch {
		case s.Running() && s.Server != "":
			what = s.Server
		case s.Reason != "":
			what += ": " + s.Reason
		}
		t.Add(s.Name, board.Count(s.Tools), board.Count(s.Prompts), board.Count(s.Resources), what)
		t.Below(s.Said...)
	}
	h.a.printGrid(t)
}
