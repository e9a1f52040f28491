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
	"github.com/patchbay-dev/patchbay/gateway/spread"
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

// Gateway is a running gateway. All fields but People and Nodes are required.
type Gateway struct {
	Servers  *launch.Servers
	Report   func() *health.Report
	Calls    *Calls
	Sessions *Sessions
	AuditLog string // path of the audit log; empty: none
	AuditKey string // path of the public key that checks its checkpoints; empty: they are not checked
	People   People // nil: nobody logs in at the gateway
	Nodes    Nodes  // nil: the gateway is alone

	// Tools returns the tools that a server has listed, by its own names, in the form of tools/list; nil:
	// unknown. It asks no server.
	Tools func(server string) mcp.Result

	// Acted is called after each action on a server, LoggedOut after the logins of a person have ended, and
	// Refused for each request of a caller who may not act.
	Acted     func(by string, o *Outcome)
	LoggedOut func(by string, e *Ended)
	Refused   func(by, request string)

	flows flows
}

// Outcome says what an action has done.
type Outcome struct {
	Server  string    `json:"server"`
	Replica string    `json:"replica,omitempty"` // the action was on this one only
	Action  string    `json:"action"`            // restart, disable or enable
	Changed bool      `json:"changed"`           // false: nothing had to be done, or another request was doing it
	State   string    `json:"state"`             // of the server now
	Reason  string    `json:"reason,omitempty"`
	Calls   int       `json:"calls"`          // in progress over the connections from before
	Until   time.Time `json:"until,omitzero"` // when those end at the latest
	Text    string    `json:"text"`           // all of it, for people

	Restarted []string `json:"restarted,omitempty"` // replicas, one after another
	Left      []string `json:"left,omitempty"`      // replicas that were not restarted, or not yet
	Fault     string   `json:"fault,omitempty"`     // why the last one did not start again

	at time.Time // of the action
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

// EnableCommand returns the command that enables a server, or with a name one of its replicas.
func EnableCommand(server, replica string) string {
	command := []string{"patchbay", "enable", server}
	if replica != "" {
		command = append(command, "--replica", replica)
	}
	return screen.Shell(command)
}

// Do acts on a server, for a person, or with a name on one of its replicas. Calls in progress have drain to
// finish when it is restarted.
func (g *Gateway) Do(ctx context.Context, action, server, replica string, drain time.Duration, by string) (*Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	o := &Outcome{Server: server, Replica: replica, Action: action}
	if action != Restart || drain < 0 || drain > MaxDrain {
		drain = MaxDrain
	}
	o.at = time.Now()
	calls, until := g.Calls.Of(server), o.at.Add(drain)
	if replica != "" {
		calls = g.callsAt(server, replica)
	}
	did, err := g.did(ctx, o, drain)
	var unknown *spread.UnknownReplica
	switch {
	case errors.Is(err, launch.ErrNoServer):
		return nil, &Unknown{server, slices.Sorted(slices.Values(g.Servers.Names()))}
	case errors.Is(err, launch.ErrDisabled):
		return nil, fmt.Errorf("server %q is disabled, so it cannot be restarted: %s", server, EnableCommand(server, ""))
	case errors.Is(err, spread.ErrDisabled):
		return nil, fmt.Errorf("replica %s of server %q is disabled, so it cannot be restarted: %s", replica, server, EnableCommand(server, replica))
	case errors.Is(err, launch.ErrNoReplicas):
		return nil, fmt.Errorf("server %q has no replicas; without --replica the action is on the server", server)
	case errors.Is(err, launch.ErrLastReplica):
		return nil, fmt.Errorf("replica %s is the last one of server %q in use: patchbay disable without --replica takes the server out of use", replica, server)
	case errors.As(err, &unknown):
		return nil, fmt.Errorf("server %q: %w%s", server, err, screen.DidYouMean(replica, unknown.Names))
	case err != nil:
		return nil, err
	}
	o.Changed = !did.Joined && !did.Already
	o.State, o.Reason = string(did.Status.State), screen.OneLine(did.Status.Reason)
	o.Restarted, o.Left, o.Fault = did.Replicas, did.Left, screen.OneLine(did.Reason)
	if o.Changed && action != Enable && calls > 0 && did.Replicas == nil && did.Left == nil {
		o.Calls, o.Until = calls, until
	}
	o.Text = o.words(did)
	g.Acted(by, o)
	return o, nil
}

// did does an action.
func (g *Gateway) did(ctx context.Context, o *Outcome, drain time.Duration) (*launch.Steered, error) {
	one := o.Replica != ""
	switch {
	case o.Action == Restart && one:
		return g.Servers.RestartReplica(ctx, o.Server, o.Replica, drain)
	case o.Action == Restart:
		return g.Servers.Restart(ctx, o.Server, drain)
	case o.Action == Disable && one:
		return g.Servers.DisableReplica(o.Server, o.Replica, EnableCommand(o.Server, o.Replica))
	case o.Action == Disable:
		return g.Servers.Disable(o.Server, EnableCommand(o.Server, ""))
	case o.Action == Enable && one:
		return g.Servers.EnableReplica(ctx, o.Server, o.Replica)
	case o.Action == Enable:
		return g.Servers.Enable(ctx, o.Server)
	}
	return nil, fmt.Errorf("there is no action %q", o.Action)
}

// callsAt returns the number of calls in progress at a replica.
func (g *Gateway) callsAt(server, replica string) int {
	for _, s := range g.Servers.Replicas(server) {
		if s.Name == replica {
			return s.Calls
		}
	}
	return 0
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
	text, what, enable := o.Server+": ", "it", EnableCommand(o.Server, o.Replica)
	if o.Replica != "" {
		text, what = o.Server+": replica "+o.Replica+": ", "the server"
	}
	switch {
	case o.Action == Disable && did.Already:
		text += "was disabled already; " + enable + " enables it"
	case o.Action == Disable:
		text += "disabled, until " + enable + " or the end of this gateway"
	case o.Action == Enable && did.Already:
		text += "was not disabled; " + what + " is " + state
	case o.Action == Enable && o.Fault != "":
		text += "enabled, but it cannot be connected to: " + o.Fault + "; " + what + " is " + state
	case o.Action == Enable:
		text += "enabled; " + what + " is " + state
	case did.Joined:
		text += "was being restarted already; " + what + " is " + state
	case o.Fault != "":
		text += "restarted, but " + last(o) + " does not start: " + o.Fault
		if len(o.Left) > 0 {
			text += "; not restarted: " + strings.Join(o.Left, ", ")
		}
		text += "; " + what + " is " + state
	case len(o.Left) > 0:
		text += "is still being restarted: " + strings.Join(o.Left, ", ")
	case len(o.Restarted) > 1:
		text += "restarted, one replica after another: " + strings.Join(o.Restarted, ", ") + "; it is " + state
	default:
		text += "restarted; " + what + " is " + state
	}
	if o.Calls > 0 && o.Until.After(o.at) {
		text += fmt.Sprintf("; %s in progress may finish until %s", screen.Quantity(o.Calls, "call"), o.Until.Format(time.TimeOnly))
	} else if o.Calls > 0 {
		text += fmt.Sprintf("; %s in progress had no time to finish (--drain)", screen.Quantity(o.Calls, "call"))
	}
	return text
}

// last names the replica that does not start.
func last(o *Outcome) string {
	if n := len(o.Restarted); n > 0 && o.Replica == "" {
		return "replica " + o.Restarted[n-1]
	}
	return "it"
}

// Usable reports whether callers can use the server now, or nobody shall.
func (o *Outcome) Usable() bool {
	return o.Fault == "" && slices.Contains([]gateway.State{gateway.Ready, gateway.Idle, gateway.Disabled}, gateway.State(o.State))
}

// Unusable says why callers cannot use the server, or a replica of it.
func (o *Outcome) Unusable() string {
	if o.Fault == "" {
		return o.Server + " is " + o.State
	}
	name := o.Replica
	if n := len(o.Restarted); name == "" && n > 0 {
		name = o.Restarted[n-1]
	}
	return "replica " + name + " of " + o.Server + " does not start"
}

// Facts returns what the audit log has of an outcome.
func (o *Outcome) Facts() map[string]any {
	facts := map[string]any{"action": o.Action, "changed": o.Changed, "state": o.State, "calls": o.Calls}
	if o.Replica != "" {
		facts["replica"] = o.Replica
	}
	return facts
}
