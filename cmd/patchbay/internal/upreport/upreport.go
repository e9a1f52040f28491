// Package upreport adds the servers of a run of up, bridge or inspect to its report.
package upreport

import (
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/metrics"
)

// Fill adds the servers of a run to its report, in the order of its configuration, and the state of all. The board knows
// which of them are starting.
func Fill(r *health.Report, b *board.Board, of *launch.Servers, gw *gateway.Gateway, counters *metrics.Counters, ready deploy.Ready) {
	names := of.Names()
	states := map[string]gateway.Status{}
	for _, s := range gw.Status() {
		states[s.Name] = s
	}
	left, traffic := of.NotStarted(), counters.Read(metrics.Minute)
	for _, name := range names {
		s, ok := states[name]
		if why := left[name]; why != "" {
			s = gateway.Status{Name: name, State: health.LeftOut, Reason: why, Since: r.Since, Tools: -1, Prompts: -1, Resources: -1}
		} else if !ok { // about to be added
			s = gateway.Status{Name: name, State: gateway.Starting, Since: time.Now(), Tools: -1, Prompts: -1, Resources: -1}
		}
		row := health.Server{
			Name: name, State: string(s.State), Required: of.Requires(name) || slices.Contains(ready.Require, name), Since: s.Since, Share: s.Share.String(), Clients: s.Clients,
			Asks: s.Asks, Waiting: s.Waiting, Question: s.Question, Asked: s.Asked, Roots: s.Roots, Losses: s.Losses, Evicted: s.Evicted, Refused: s.Refused, Conns: s.Conns, Tools: s.Tools, Prompts: s.Prompts, Resources: s.Resources, Shadowed: s.Shadowed,
		}
		row.Restarts = of.Restarted(name)
		row.Minute = traffic.Server(name)
		row.Processes, row.Memory = of.Processes(name)
		row.Replicas = board.Replicas(of.Replicas(name))
		row.Debug = of.Debuggers(name)
		row.Strays, row.Stray = of.Stray(name)
		row.Reason, row.Said = board.Apart(s.Reason)
		row.Lost, _ = board.Apart(s.Lost)
		row.LostAt = s.LostAt
		if s.State == gateway.NeedsLogin {
			row.Login = row.Reason
		}
		if s.Server.Name != "" {
			row.Server = screen.OneLine(strings.TrimSpace(s.Server.Name+" "+s.Server.Version)) + ", " + string(s.Revision)
		}
		r.Servers = append(r.Servers, row)
	}
	for _, name := range ready.Require {
		if !slices.Contains(names, name) {
			r.Servers = append(r.Servers, health.Server{Name: name, State: string(gateway.Failing), Required: true, Since: r.Since, Reason: "required, but not in " + r.From, Tools: -1, Prompts: -1, Resources: -1})
		}
	}
	r.State = health.StateOf(r.Servers, b.Starting(names), time.Since(r.Since), ready.Wait)
}
