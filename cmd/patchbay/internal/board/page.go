package board

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
)

// Page prints for people: a line at a time, wide columns at most, with the text of servers cleaned
// by Shown and headings by Bold.
type Page struct {
	Print func(line string)
	Shown func(text string) string
	Bold  func(text string) string
	Width int // in columns; 0: lines are not cut
}

// Up prints the state of a gateway.
func (p *Page) Up(r *health.Report, now time.Time) {
	if r.PID == 0 {
		p.Print(r.State)
		p.Print("(patchbay status on its machine shows its servers)")
		return
	}
	p.Print(fmt.Sprintf("patchbay %s, %s: %s", p.Shown(r.Version), p.Shown(r.Where()), p.Shown(r.State)))
	p.Print(fmt.Sprintf("(pid %d for %s, %s)", r.PID, screen.Age(r.Since, now), p.Shown(r.From)))
	for _, reason := range r.Unapplied {
		p.Print(p.Shown(screen.OneLine(reason)))
	}
	if s := r.Telemetry; s != nil {
		p.Print(p.Shown(Sent(s)))
	}
	if r.Audit != nil {
		p.Print(p.Shown(AuditLine(r.Audit)))
	}
	if r.Record != nil {
		lost := ""
		if r.Record.Lost > 0 {
			lost = fmt.Sprintf(", %d lost", r.Record.Lost)
		}
		p.Print(p.Shown("(frames " + r.Record.Dir + lost + ")"))
		if r.Record.Error != "" {
			p.Print(p.Shown("frames are not recorded: " + screen.OneLine(r.Record.Error)))
		}
	}
	for _, line := range Views(r) {
		p.Print(p.Shown(line))
	}
	p.Print("")
	t := &screen.Grid{Right: []bool{false, false, true, true, false, true, true, true}}
	t.Add("SERVER", "STATE", "SINCE", "RESTARTS", "SHARE", "CLIENTS", "PROCESSES", "TOOLS", "ABOUT")
	for _, s := range r.Servers {
		about := s.Server
		if s.Reason != "" {
			about = s.Reason
		}
		clients := "-"
		if s.Share == gateway.PerSession.String() || s.Share == gateway.PerPrincipal.String() {
			clients = strconv.Itoa(s.Clients)
		}
		t.Add(s.Name, s.State, screen.Age(s.Since, now), strconv.Itoa(s.Restarts), s.Share, clients, strconv.Itoa(s.Processes), Count(s.Tools), about)
		if s.Running() {
			t.Below(Remarks(&s, now)...)
		} else {
			t.Below(slices.Concat(s.Said, Strays(&s))...)
		}
	}
	t.Print(p.Width, p.Bold, p.Print)
}

// AuditLine describes the audit log of a gateway.
func AuditLine(s *health.Audit) string {
	line := fmt.Sprintf("(audit log %s, %s", s.File, screen.Quantity(int(s.Lines), "line"))
	if s.Queued > 0 {
		line += fmt.Sprintf(", %d waiting", s.Queued)
	}
	if s.Dropped > 0 {
		line += fmt.Sprintf(", %d lost", s.Dropped)
	}
	line += ")"
	if s.Error != "" {
		line += "\n" + screen.OneLine(s.Error)
	}
	if s.Changed != "" {
		line += "\n" + s.Changed + "; patchbay audit verify " + s.File + " says more"
	}
	return line
}

// Count returns a number of tools and the like; "-": not known.
func Count(n int) string {
	if n < 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
