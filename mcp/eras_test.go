package mcp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

// Trap 14: a command that always ends is started twice when nothing is known of it, and once per
// try after that, also by other Clients that share Eras. It recovers, whatever its era turns out
// to be. Its last words are in the error once.
func TestStartsPerTry(t *testing.T) {
	mcptest.LeakCheck(t)
	type try struct {
		kind   string
		starts int
		rev    mcp.Revision // empty: it does not open
	}
	tests := map[string][]try{
		"always broken":                         {{"broken", 2, ""}, {"broken", 1, ""}, {"broken", 1, ""}, {"broken", 1, ""}, {"broken", 1, ""}},
		"modern after it was broken":            {{"broken", 2, ""}, {"broken", 1, ""}, {"modern", 1, mcp.V2026_07_28}, {"broken", 1, ""}, {"modern", 1, mcp.V2026_07_28}},
		"ends at the probe":                     {{"fussy", 2, mcp.V2025_11_25}, {"fussy", 1, mcp.V2025_11_25}, {"broken", 1, ""}, {"fussy", 1, mcp.V2025_11_25}},
		"ends at the probe after it was broken": {{"broken", 2, ""}, {"fussy", 1, ""}, {"fussy", 1, ""}, {"fussy", 1, ""}, {"fussy", 1, mcp.V2025_11_25}},
		"legacy, then modern":                   {{"legacy", 1, mcp.V2025_11_25}, {"modern", 1, mcp.V2025_11_25}},
	}
	for name, tries := range tests {
		t.Run(name, func(t *testing.T) {
			var eras mcp.Eras
			for i, try := range tries {
				starts, last := 0, 0
				c := user()
				c.Eras = &eras
				c.OnFrame = func(f trace.Frame) {
					if f.Kind == trace.KindStart {
						starts++
						fmt.Sscanf(f.Note, "pid %d", &last)
					}
				}
				cmd := program(try.kind)
				cmd.Args = []string{"same"}
				s, err := c.Start(t.Context(), cmd)
				if s != nil {
					if pid := cmd.Process.Pid; pid != last {
						t.Errorf("try %d: %s: process %d of the command is not the one that runs, %d", i, try.kind, pid, last)
					}
					if try.rev == "" || s.Revision() != try.rev {
						t.Errorf("try %d: %s speaks %s (%s), want %q", i, try.kind, s.Revision(), s.Negotiation(), try.rev)
					}
					s.Close()
				}
				var exit *mcp.ExitError
				if err != nil && (try.rev != "" || !errors.As(err, &exit) || try.kind == "broken" && strings.Count(err.Error(), "no configuration found") != 1) {
					t.Errorf("try %d: %s: %v", i, try.kind, err)
				}
				if starts != try.starts {
					t.Errorf("try %d: %s was started %d times, want %d", i, try.kind, starts, try.starts)
				}
			}
		})
	}
}
