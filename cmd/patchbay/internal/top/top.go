// Package top draws what the gateways of a person are doing: a table of their servers and of the
// busiest tools, with the calls of the last minute, and redraws it every second.
//
// [Lines] makes the table; [Run] shows it on a terminal until the person ends it with q.
//
// # Guarantees
//
//   - A table has as many lines as there is room for. Tools are left out first, and a line says how
//     many lines are missing.
//   - Text from servers has no control characters.
//   - Run restores the terminal when it returns.
package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/metrics"
)

// maxTools is the number of tools that are shown of one server.
const maxTools = 5

// Lines returns the table for a terminal of width columns and height rows; zero means no bound. The
// function bold paints headings.
func Lines(found []health.Found, width, height int, now time.Time, bold func(string) string) []string {
	for tools := maxTools; ; tools-- {
		lines := lines(found, width, tools, now, bold)
		if height == 0 || len(lines) <= height {
			return lines
		}
		if tools == 0 {
			missing := len(lines) - height + 1
			return append(lines[:max(height-1, 0)], screen.Cut(fmt.Sprintf("… %d more lines", missing), width))
		}
	}
}

// lines is Lines with a number of tools, and without a bound of the height.
func lines(found []health.Found, width, tools int, now time.Time, bold func(string) string) (out []string) {
	add := func(s string) { out = append(out, screen.Cut(s, width)) }
	if len(found) == 0 {
		add("no patchbay up is running here; waiting for one")
	}
	for i, f := range found {
		if i > 0 {
			add("")
		}
		if f.Err != nil {
			add(screen.OneLine(fmt.Sprintf("the gateway at %s does not report its state: %v", f.Path, f.Err)))
			continue
		}
		where := cmp.Or(f.URL, "over stdio")
		if f.PID == 0 {
			add(screen.OneLine(fmt.Sprintf("%s: %s", f.Path, f.State)))
			continue
		}
		add(screen.OneLine(fmt.Sprintf("patchbay %s, %s: %s, pid %d for %s", f.Version, where, f.State, f.PID, screen.Age(f.Since, now))))
		for _, reason := range slices.Concat([]string{f.Reason}, f.Unapplied) {
			if reason != "" {
				add(screen.OneLine(reason))
			}
		}
		table(f.Servers, tools, now).Print(width, bold, add)
	}
	return out
}

// table returns the table of one gateway, the servers with most calls first.
func table(servers []health.Server, tools int, now time.Time) *screen.Grid {
	g := &screen.Grid{Right: []bool{false, false, true, true, true, true, true, true, true}}
	g.Add("SERVER", "STATE", "CALLS/MIN", "ERRORS", "P50", "P95", "P99", "ITSELF", "OPEN", "ABOUT")
	calls := func(s health.Server) uint64 {
		if s.Minute == nil {
			return 0
		}
		return s.Minute.Calls
	}
	servers = slices.Clone(servers)
	slices.SortStableFunc(servers, func(a, b health.Server) int { return cmp.Compare(calls(b), calls(a)) })
	for _, s := range servers {
		about := cmp.Or(s.Reason, board.Away(&s), board.Turns(&s, now))
		if s.Minute == nil {
			g.Add(s.Name, s.State, "0", "0", "-", "-", "-", "-", "0", about)
			g.Below(board.Strays(&s)...)
			continue
		}
		add(g, s.Name, s.State, s.Minute.Stats, s.Minute.Upstream, about)
		g.Below(board.Strays(&s)...)
		for _, t := range s.Minute.Busiest(tools) {
			add(g, "· "+t.Name, "", t.Stats, t.Upstream, "")
		}
	}
	return g
}

// add adds a row. Its last column is what a person should know: about, else why calls have failed, and
// how many were canceled.
func add(g *screen.Grid, name, state string, s, upstream metrics.Stats, about string) {
	if about == "" {
		about = board.Kinds(s.Errors)
		if s.Canceled > 0 {
			about = strings.TrimPrefix(about+fmt.Sprintf(", %d canceled", s.Canceled), ", ")
		}
	}
	took := func(s metrics.Stats, l metrics.Latency) string {
		if s.Calls == 0 {
			return "-"
		}
		return board.Took(l)
	}
	g.Add(name, state, strconv.FormatUint(s.Calls, 10), strconv.FormatUint(s.Errors.Sum(), 10),
		took(s, s.P50), took(s, s.P95), took(s, s.P99), took(upstream, upstream.P95), strconv.FormatInt(s.Open, 10), about)
}
