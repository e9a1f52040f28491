// Package steer acts on a running gateway: it restarts, disables and enables servers, ends the logins of
// people, and shows the last lines of servers, the calls in progress, the sessions and the audit log.
//
// [API] serves that at /admin/v1, over the socket that only the user of the gateway can open, and over
// the listener listen.admin of gateway.yaml. [Client] is the other side, which the verbs restart,
// disable, enable and logs use.
//
// # Guarantees
//
//   - No request adds a server or changes a command.
//   - Each action has a line in the audit log, with the person, and a line on standard error.
//   - Over a listener, callers need the role admin, or the listener is on loopback. Requests of web
//     pages from elsewhere, and with rebound host names, are refused.
//   - Bodies have at most 4 KiB, answers at most 1000 lines. A reader who is too slow to follow a log
//     misses lines, is told how many, and delays nothing.
package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Path is the beginning of the paths of the API.
const Path = "/admin/v1"

// The actions on a server.
const (
	Restart = "restart"
	Disable = "disable"
	Enable  = "enable"
)

// MaxDrain is the longest time that calls in progress have to finish.
const MaxDrain = 30 * time.Second

// settleTime bounds the wait for a server that starts.
const settleTime = 60 * time.Second

// Gateway is a running gateway. All fields but People are required.
type Gateway struct {
	Servers  *launch.Servers
	Report   func() *health.Report
	Calls    *Calls
	Sessions *Sessions
	AuditLog string // path of the audit log; empty: none
	People   People // nil: nobody logs in at the gateway

	// Tools returns the tools that a server has listed, by its own names, in the form of tools/list; nil:
	// unknown. It asks no server.
	Tools func(server string) mcp.Result

	// Acted is called after each action on a server, LoggedOut after the logins of a person have ended, and
	// Refused for each request of a caller who may not act.
	Acted     func(by string, o *Outcome)
	LoggedOut func(by string, e *Ended)
	Refused   func(by, request string)
}

// Outcome says what an action has done.
type Outcome struct {
	Server  string    `json:"server"`
	Action  string    `json:"action"`  // restart, disable or enable
	Changed bool      `json:"changed"` // false: nothing had to be done, or another request was doing it
	State   string    `json:"state"`   // of the server now
	Reason  string    `json:"reason,omitempty"`
	Calls   int       `json:"calls"`          // in progress over the connections from before
	Until   time.Time `json:"until,omitzero"` // when those end at the latest
	Text    string    `json:"text"`           // all of it, for people
}

// Unknown is the error for a name that no server has.
type Unknown struct {
	Name  string
	Names []string // of the servers
}

func (e *Unknown) Error() string {
	if len(e.Names) == 0 {
		return fmt.Sprintf("no server %q; the gateway has none", e.Name)
	}
	return fmt.Sprintf("no server %q; servers: %s%s", e.Name, strings.Join(e.Names, ", "), screen.DidYouMean(e.Name, e.Names))
}

// EnableCommand returns the command that enables a server.
func EnableCommand(server string) string { return screen.Shell([]string{"patchbay", "enable", server}) }

// Do acts on a server, for a person. Calls in progress have drain to finish when it is restarted.
func (g *Gateway) Do(ctx context.Context, action, server string, drain time.Duration, by string) (*Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	o := &Outcome{Server: server, Action: action}
	if action != Restart || drain < 0 || drain > MaxDrain {
		drain = MaxDrain
	}
	calls, until := g.Calls.Of(server), time.Now().Add(drain)
	var did *launch.Steered
	var err error
	switch action {
	case Restart:
		did, err = g.Servers.Restart(ctx, server, drain)
	case Disable:
		did, err = g.Servers.Disable(server, EnableCommand(server))
	case Enable:
		did, err = g.Servers.Enable(ctx, server)
	default:
		return nil, fmt.Errorf("there is no action %q", action)
	}
	switch {
	case errors.Is(err, launch.ErrNoServer):
		return nil, &Unknown{server, slices.Sorted(slices.Values(g.Servers.Names()))}
	case errors.Is(err, launch.ErrDisabled):
		return nil, fmt.Errorf("server %q is disabled, so it cannot be restarted: %s", server, EnableCommand(server))
	case err != nil:
		return nil, err
	}
	o.Changed = !did.Joined && !did.Already
	o.State, o.Reason = string(did.Status.State), screen.OneLine(did.Status.Reason)
	if o.Changed && action != Enable && calls > 0 {
		o.Calls, o.Until = calls, until
	}
	o.Text = o.words(did)
	g.Acted(by, o)
	return o, nil
}

// words describes an outcome.
func (o *Outcome) words(did *launch.Steered) string {
	state := o.State
	if did.Status.State == gateway.Ready && did.Status.Revision != "" {
		state += " (" + string(did.Status.Revision) + ")"
	}
	if o.Reason != "" && did.Status.State != gateway.Disabled {
		state += ": " + o.Reason
	}
	text := o.Server + ": "
	switch {
	case o.Action == Disable && did.Already:
		text += "was disabled already; " + EnableCommand(o.Server) + " enables it"
	case o.Action == Disable:
		text += "disabled, until " + EnableCommand(o.Server) + " or the end of this gateway"
	case o.Action == Enable && did.Already:
		text += "was not disabled; it is " + state
	case o.Action == Enable:
		text += "enabled; it is " + state
	case did.Joined:
		text += "was being restarted already; it is " + state
	default:
		text += "restarted; it is " + state
	}
	if o.Calls > 0 {
		text += fmt.Sprintf("; %s in progress may finish until %s", screen.Quantity(o.Calls, "call"), o.Until.Format(time.TimeOnly))
	}
	return text
}

// Usable reports whether callers can use the server now, or nobody shall.
func (o *Outcome) Usable() bool {
	return slices.Contains([]gateway.State{gateway.Ready, gateway.Idle, gateway.Disabled}, gateway.State(o.State))
}
