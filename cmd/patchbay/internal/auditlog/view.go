package auditlog

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/metrics"
)

// stamp is the form of times for people, in their zone.
const stamp = "2006-01-02 15:04:05"

// View shows lines to people, one line each: time, principal, team, server and tool, outcome, and
// the rest as text. Columns widen as they need to. It is for one goroutine.
type View struct {
	Width int                          // columns of the terminal; 0: lines are not cut
	Paint func(s, style string) string // colours text
	Zone  *time.Location               // nil: that of the machine
	wide  [4]int                       // of the columns after the time
}

// bounds of the columns: a longer text moves the rest of its own line alone.
var bounds = [4]int{32, 16, 40, 16}

// Line returns a line of the log.
func (v *View) Line(e *audit.Entry) string {
	zone := cmp.Or(v.Zone, time.Local)
	outcome, style := outcomeOf(e)
	var who string
	if e.Principal != nil {
		who = e.Principal.ID
	}
	var line strings.Builder
	line.WriteString(e.Time.In(zone).Format(stamp + ".000"))
	for i, cell := range []string{who, e.Team, about(e), outcome} {
		cell = screen.OneLine(cell)
		if v.wide[i] = max(v.wide[i], min(screen.Columns(cell), bounds[i])); v.wide[i] > 0 {
			line.WriteString("  " + screen.Pad(cell, v.wide[i]))
		}
	}
	head := strings.TrimRight(line.String(), " ")
	if text := screen.OneLine(rest(e)); text != "" {
		head = line.String() + "  " + text
	}
	return v.Paint(screen.Cut(head, v.Width), style)
}

// about names what a line is about.
func about(e *audit.Entry) string {
	server := ""
	if e.Server != nil {
		server = e.Server.Name
	}
	switch {
	case e.Tool != "":
		return strings.TrimPrefix(server+"/"+e.Tool, "/")
	case e.Method != "":
		return strings.TrimSpace(server + " " + e.Method + " " + e.Name)
	case e.Kind == audit.Node:
		return "log"
	}
	return server
}

// outcomeOf returns the outcome of a line, and the style to paint it.
func outcomeOf(e *audit.Entry) (text, style string) {
	switch {
	case e.Kind == audit.CallBegin:
		return "begin", "2"
	case e.Kind == audit.CallRetry:
		return fmt.Sprintf("attempt %d", e.Attempt), "2"
	case e.Kind == audit.Denied:
		return cmp.Or(e.Outcome, "denied"), "33"
	case e.Kind == audit.Node && (e.Event == audit.EventDropped || e.Event == audit.EventGone):
		return e.Event, "31"
	case e.Kind == audit.Node:
		return e.Event, "2"
	case e.Kind == audit.TaskEnd && failed(e):
		return "task " + e.Outcome, "31"
	case e.Kind == audit.TaskEnd:
		return "task " + e.Outcome, ""
	case failed(e):
		return e.Outcome, "31"
	case e.Outcome != "":
		return e.Outcome, ""
	}
	return string(e.Kind), ""
}

// failed reports whether a call ended with an error.
func failed(e *audit.Entry) bool { return e.Outcome == "tool error" || e.Outcome == "error" }

// rest returns the other facts of a line.
func rest(e *audit.Entry) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.Millis > 0 {
		parts = append(parts, took(e.Millis))
	}
	if e.Bytes > 0 {
		parts = append(parts, screen.Bytes(e.Bytes))
	}
	if e.Cached {
		parts = append(parts, "from the cache")
	}
	if e.Shared != "" {
		add("shared with %s", e.Shared)
	}
	if e.More > 0 {
		add("%d more", e.More)
	}
	if e.Code != 0 {
		add("code %d", e.Code)
	}
	if e.Fault != "" {
		parts = append(parts, e.Fault)
	}
	if d := e.Decision; d != nil {
		if d.Rule != "" {
			add("rule %q", d.Rule)
		}
		if d.By != "" {
			add("by %s", d.By)
		}
	}
	if c := e.Checkpoint; c != nil {
		add("line %d, key %s", c.Seq, c.Key)
	}
	if e.Reason != "" {
		parts = append(parts, e.Reason)
	}
	if len(e.Detail) > 0 {
		parts = append(parts, string(jsonx.Compact(nil, e.Detail)))
	}
	if e.Call != "" {
		add("call %s", e.Call)
	}
	return strings.Join(parts, ", ")
}

// took words a number of milliseconds.
func took(ms float64) string { return board.Took(metrics.Latency{Duration: time.Duration(ms * 1e6)}) }
