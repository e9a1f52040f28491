package main

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/launch"
)

var restartVerb = verb{
	name: "restart", summary: "Start a server of a running gateway again.", usage: "SERVER",
	examples: []string{"patchbay restart memory", "patchbay restart memory --drain 5s", "patchbay restart jira --replica jira2.example"},
	minor:    true,
	details: `New calls go to the new process at once. Calls in progress may finish; those
that take longer fail, and their callers learn that the outcome is unknown.
Replicas are restarted one after another, while calls go on at the others.
Exit code 4: the server does not start.`,
	server:  gatewayServer,
	command: func() command { return new(restartCmd) },
}

type restartCmd struct {
	Server  string        `arg:"" help:"A server of the gateway."`
	Drain   time.Duration `default:"30s" placeholder:"TIME" help:"Time for calls in progress, at most 30s."`
	Replica string        `placeholder:"NAME" help:"Only this replica of the server."`
	steer.Where
}

func (c *restartCmd) Run(a *app) error {
	if c.Drain < 0 || c.Drain > steer.MaxDrain {
		return usagef("--drain %v is not from 0s to %v", c.Drain, steer.MaxDrain).Hint("--drain 5s")
	}
	return a.act(&c.Where, steer.Restart, c.Server, c.Replica, c.Drain)
}

var disableVerb = verb{
	name: "disable", summary: "Take a server of a running gateway out of use.", usage: "SERVER",
	examples: []string{"patchbay disable memory"},
	minor:    true,
	details: `Its tools leave the lists, and calls of them fail and say so. Calls in progress
may finish, for at most 30 seconds. It stays disabled, whatever changes in
mcp.json, until patchbay enable or the end of the gateway.`,
	server:  gatewayServer,
	command: func() command { return new(disableCmd) },
}

type disableCmd struct {
	Server  string `arg:"" help:"A server of the gateway."`
	Replica string `placeholder:"NAME" help:"Only this replica of the server."`
	steer.Where
}

func (c *disableCmd) Run(a *app) error {
	return a.act(&c.Where, steer.Disable, c.Server, c.Replica, -1)
}

var enableVerb = verb{
	name: "enable", summary: "Put a disabled server back into use.", usage: "SERVER",
	examples: []string{"patchbay enable memory"},
	minor:    true,
	details:  `Starts the server. Exit code 4: it does not start.`,
	server:   gatewayServer,
	command:  func() command { return new(enableCmd) },
}

type enableCmd struct {
	Server  string `arg:"" help:"A server that patchbay disable has named."`
	Replica string `placeholder:"NAME" help:"Only this replica of the server."`
	steer.Where
}

func (c *enableCmd) Run(a *app) error {
	return a.act(&c.Where, steer.Enable, c.Server, c.Replica, -1)
}

var logsVerb = verb{
	name: "logs", summary: "Show the last lines of a server of a running gateway.", usage: "SERVER [-f]",
	examples: []string{"patchbay logs memory", "patchbay logs memory -f"},
	minor:    true,
	details: `Prints what the server has written to standard error, and behind two dashes what
has happened to it. The gateway keeps 1000 lines and 256 KiB for each server.`,
	server:  gatewayServer,
	command: func() command { return new(logsCmd) },
}

type logsCmd struct {
	Server string `arg:"" help:"A server of the gateway."`
	Follow bool   `short:"f" help:"Go on with lines as they come, over restarts, until ctrl-C."`
	N      int    `name:"lines" short:"n" default:"50" placeholder:"N" help:"Number of lines, at most 1000."`
	steer.Where
}

func (c *logsCmd) Run(a *app) error {
	if c.N < 0 || c.N > 1000 {
		return usagef("--lines %d is not from 0 to 1000", c.N)
	}
	to, err := a.gateway(&c.Where, c.Server)
	if err != nil {
		return err
	}
	return to.Logs(a.ctx, c.Server, c.N, c.Follow, func(line launch.Line, raw []byte) error {
		if a.JSON {
			a.print(a.shown(string(raw)))
		} else {
			a.print(a.shown(steer.Words(line)))
		}
		return a.out.Flush()
	})
}

// gateway finds the running gateway that the flags select.
func (a *app) gateway(w *steer.Where, server string) (*steer.Client, error) {
	header := http.Header{}
	if err := a.addHeaders(header); err != nil {
		return nil, err
	}
	at := a.withTLS(config.Server{Name: w.Admin, URL: w.URL()})
	secure, err := clientTLS(at)
	if err != nil {
		return nil, err
	}
	var transport http.RoundTripper = http.DefaultTransport
	if secure != nil {
		transport = tlsfiles.Transport(secure)
	}
	if launch.CanLogIn(at) && header.Get("Authorization") == "" {
		if t, err := a.transport(at); err == nil {
			transport = t // sends the login of patchbay login, if there is one
		}
	}
	w.PID = a.PID
	return w.Dial(a.ctx, server, header, transport, noUp)
}

// runningUp returns the running up that -s up means: that of --pid, else the only one of this user.
func (a *app) runningUp() (*health.Found, error) {
	ups, err := steer.Running(a.ctx)
	if err != nil {
		return nil, err
	}
	return steer.Only(ups, a.PID, noUp)
}

// serverOf returns a running up as a server.
func serverOf(u *health.Found) (config.Server, error) {
	at, err := steer.Endpoint(u)
	return config.Server{Name: steer.Up, URL: at}, err
}

// onlyUp returns the running up of this user if the command line names no server. It prints which one that
// is. With several, the error lists them; one over stdio does not count.
func (a *app) onlyUp() (s config.Server, found bool, err error) {
	ups, err := steer.Running(a.ctx)
	ups = slices.DeleteFunc(ups, func(u health.Found) bool { return u.URL == "" })
	if err != nil || len(ups) == 0 {
		return s, false, nil // the caller explains that a server is missing
	}
	u, err := steer.Only(ups, a.PID, noUp)
	if err != nil {
		return s, false, err
	}
	if s, err = serverOf(u); err != nil {
		return s, false, err
	}
	a.Server, a.Servers = steer.Up, []string{steer.Up}
	a.talk.Note("using the running patchbay up: %s (pid %d, %s)", s.URL, u.PID, oneLine(u.From))
	return s, true, nil
}

// act does an action on a server of a running gateway, or on one of its replicas.
func (a *app) act(w *steer.Where, action, server, replica string, drain time.Duration) error {
	to, err := a.gateway(w, server)
	if err != nil {
		return err
	}
	o, raw, err := to.Act(a.ctx, action, server, replica, drain)
	if err != nil {
		return err
	}
	if a.JSON {
		a.print(a.shown(string(raw)))
	} else {
		a.print(a.shown(oneLine(o.Text)) + " (" + to.Named() + ")")
	}
	if !o.Usable() {
		f := &fault{Code: exitUnreachable, Err: errors.New(o.Unusable())}
		return f.Hint(shell([]string{"patchbay", "logs", server}) + " shows its last lines")
	}
	return nil
}

// gatewayServers returns the servers of the running gateways.
func (a *app) gatewayServers() (out []complete.Candidate) {
	ups, err := health.Gateways(a.ctx)
	if err != nil || len(a.words) > 0 {
		return nil
	}
	for _, u := range ups {
		if u.Report == nil || !u.Steers {
			continue
		}
		for _, s := range u.Servers {
			out = append(out, complete.Candidate{Text: s.Name, About: s.State})
		}
	}
	return out
}

func (*restartCmd) candidates(a *app, _ string) []complete.Candidate { return a.gatewayServers() }
func (*disableCmd) candidates(a *app, _ string) []complete.Candidate { return a.gatewayServers() }
func (*enableCmd) candidates(a *app, _ string) []complete.Candidate  { return a.gatewayServers() }
func (*logsCmd) candidates(a *app, _ string) []complete.Candidate    { return a.gatewayServers() }
