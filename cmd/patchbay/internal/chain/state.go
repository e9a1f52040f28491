package chain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/follow"
	"github.com/patchbay-dev/patchbay/internal/health"
)

// Report adds the state of the chain to that of a program: the telemetry, the audit log, the tokens of
// tools, and the changed files that are not in use. While calls are refused for the audit log, the program is failing.
func (c *Chain) Report(r *health.Report) {
	r.Telemetry, r.Unapplied = c.Telemetry(), c.unapplied()
	if c.views != nil {
		c.views.report(r)
		c.answered(r)
	}
	if c.trail == nil {
		return
	}
	s := c.trail.Log.Stats()
	r.Audit = &health.Audit{File: c.auditFile, Lines: s.Lines, Queued: s.Queued, Dropped: s.Dropped, Lag: float64(s.Lag.Microseconds()) / 1000, Changed: s.Changed}
	if s.Err == nil {
		return
	}
	r.Audit.Error = s.Err.Error()
	if c.trail.OnFailure == audit.Refuse {
		r.State, r.Reason = health.Failing, "calls are refused, because the audit log cannot be written"
	}
}

// unapplied returns why changed files are not, or not all, in use, each in one line.
func (c *Chain) unapplied() []string {
	list := c.followed.list()
	if g := c.guard.Load(); g != nil {
		for _, err := range g.Faults() {
			list = append(list, inLine(err.Error()))
		}
	}
	if f := c.secured.Load(); f != nil {
		if err := f.Fault(); err != nil {
			list = append(list, inLine("certificates not reloaded; the earlier ones stay in use: "+err.Error()))
		}
	}
	return list
}

// followed has the followed files whose content is not in use.
type followed struct {
	mu     sync.Mutex
	faults map[string]string // reasons by path, in one line; guarded by mu
}

// set notes why a file is not in use; empty: it is.
func (f *followed) set(path, fault string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fault == "" {
		delete(f.faults, path)
		return
	}
	if f.faults == nil {
		f.faults = map[string]string{}
	}
	f.faults[path] = inLine(strings.TrimPrefix(fault, "patchbay: "))
}

// inLine returns the first reason of a fault, whose further lines are reasons, and the number of others.
func inLine(fault string) string {
	first, others, _ := strings.Cut(fault, "\n")
	if others != "" {
		lines := strings.Split(others, "\n")
		first += ": " + strings.TrimSpace(lines[0])
		if more := len(lines) - 1; more > 0 {
			first += fmt.Sprintf(" (and %d more)", more)
		}
	}
	return first
}

// list returns the reasons in the order of the paths.
func (f *followed) list() (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(f.faults)) {
		list = append(list, f.faults[path])
	}
	return list
}

// follow follows a file until ctx ends, see [follow.File]. The person gets each new fault.
func (c *Chain) follow(ctx context.Context, path string, look func() follow.Look) {
	follow.File(ctx, path, func() follow.Look {
		l := look()
		if l.Fault == "" {
			c.followed.set(path, "")
		}
		return l
	}, func(fault string) {
		c.followed.set(path, fault)
		c.program.Talk.Always(fault)
	}, func() { c.program.Talk.Note("%s is valid again", path) })
}
