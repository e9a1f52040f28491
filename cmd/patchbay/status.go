package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
)

var statusVerb = verb{
	name: "status", summary: "Show the state of running gateways.", usage: "[-s URL]",
	examples: []string{"patchbay status", "patchbay status --json", "patchbay status -s http://127.0.0.1:7420/mcp"},
	server:   namedServer | urlIsServer,
	details: `Shows each patchbay up of yours on this machine, or the one at URL, with the
last output of servers that failed. Exit code 4: none is running.`,
	command: func() command { return new(statusCmd) },
}

// statusCmd shows the state of the servers of each running up.
type statusCmd struct{}

// Run prints a table per run of up, or all as a JSON array.
func (*statusCmd) Run(a *app) error {
	ups, err := a.askedUps()
	if err != nil {
		return err
	}
	answered := false
	if a.JSON {
		reports := []*health.Report{}
		for _, u := range ups {
			if u.Report != nil {
				reports = append(reports, u.Report)
			}
		}
		if err := json.NewEncoder(a.out).Encode(reports); err != nil {
			return err
		}
		ups = slices.DeleteFunc(ups, func(u health.Found) bool { return u.Err == nil }) // what is left is a warning
		answered = len(reports) > 0
	}
	for i, u := range ups {
		if i > 0 && !a.JSON {
			a.print("")
		}
		if u.Err != nil {
			a.talk.Always("patchbay: warning: the gateway at " + u.Path + " does not report its state: " + visible(u.Err.Error()))
			continue
		}
		answered = true
		a.showUp(u.Report, time.Now())
	}
	if !answered {
		return noUp()
	}
	return nil
}

// noUp returns the error of a search that has found no gateway.
func noUp() error {
	folder, err := health.Folder()
	if err != nil {
		return fmt.Errorf("find a patchbay up: %w", err)
	}
	f := &fault{code: exitUnreachable, err: fmt.Errorf("no patchbay up is running here; %s has no socket of one", folder)}
	return f.hint("patchbay up, or -s URL for one of another user")
}

// askedUps returns the runs of up that the command line selects.
func (a *app) askedUps() ([]health.Found, error) {
	if a.Server == "" {
		return health.Gateways(a.ctx)
	}
	u, err := url.Parse(a.Server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, usagef("-s %q is not the URL of a patchbay up", a.Server).hint("patchbay status -s http://127.0.0.1:7420/mcp")
	}
	client := http.DefaultClient
	secure, err := clientTLS(a.withTLS(config.Server{Name: u.Host, URL: a.Server}))
	if err != nil {
		return nil, err
	}
	if secure != nil {
		client = &http.Client{Transport: tlsfiles.Transport(secure)}
	}
	report, err := health.Ask(a.ctx, client, u.Scheme+"://"+u.Host)
	if err != nil {
		f := &fault{code: exitUnreachable, err: fmt.Errorf("%s%w", netfault.Words(err), netfault.Quiet(err))}
		return nil, f.hint("patchbay status shows those on this machine")
	}
	return []health.Found{{Report: report, Path: a.Server}}, nil
}

// showUp prints the state of one up.
func (a *app) showUp(r *health.Report, now time.Time) {
	if r.PID == 0 {
		a.print(r.State)
		a.print("(patchbay status on its machine shows its servers)")
		return
	}
	where := r.URL
	if where == "" {
		where = "over stdio"
	}
	a.print(fmt.Sprintf("patchbay %s, %s: %s", a.shown(r.Version), a.shown(where), a.shown(r.State)))
	a.print(fmt.Sprintf("(pid %d for %s, %s)", r.PID, age(r.Since, now), a.shown(r.From)))
	for _, reason := range r.Unapplied {
		a.print(a.shown(oneLine(reason)))
	}
	if s := r.Telemetry; s != nil {
		a.print(a.shown(board.Sent(s)))
	}
	if r.Audit != nil {
		a.print(a.shown(auditLine(r.Audit)))
	}
	if r.Record != nil {
		lost := ""
		if r.Record.Lost > 0 {
			lost = fmt.Sprintf(", %d lost", r.Record.Lost)
		}
		a.print(a.shown("(frames " + r.Record.Dir + lost + ")"))
		if r.Record.Error != "" {
			a.print(a.shown("frames are not recorded: " + oneLine(r.Record.Error)))
		}
	}
	a.print("")
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
		t.Add(s.Name, s.State, age(s.Since, now), strconv.Itoa(s.Restarts), s.Share, clients, strconv.Itoa(s.Processes), count(s.Tools), about)
		if s.Running() {
			t.Below(board.Remarks(&s, now)...)
		} else {
			t.Below(s.Said...)
		}
	}
	a.printGrid(t)
}

// auditLine describes the audit log of a gateway.
func auditLine(s *health.Audit) string {
	line := fmt.Sprintf("(audit log %s, %s", s.File, quantity(int(s.Lines), "line"))
	if s.Queued > 0 {
		line += fmt.Sprintf(", %d waiting", s.Queued)
	}
	if s.Dropped > 0 {
		line += fmt.Sprintf(", %d lost", s.Dropped)
	}
	line += ")"
	if s.Error != "" {
		line += "\n" + oneLine(s.Error)
	}
	if s.Changed != "" {
		line += "\n" + s.Changed + "; patchbay audit verify " + s.File + " says more"
	}
	return line
}
