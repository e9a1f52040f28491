package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/metrics"
)

// report returns the state of this run, with the servers in the order of the configuration.
func (h *upServer) report() *health.Report {
	r := &health.Report{Version: Version, PID: os.Getpid(), URL: h.url, From: h.from, Since: h.began}
	names := h.servers.Names()
	states := map[string]gateway.Status{}
	for _, s := range h.gateway.Status() {
		states[s.Name] = s
	}
	left, traffic := h.servers.NotStarted(), h.counters.Read(metrics.Minute)
	ready := deploy.Ready{Wait: health.ReadyTime}
	if set := h.ready.Load(); set != nil {
		ready = *set
	}
	for _, name := range names {
		s, ok := states[name]
		if why := left[name]; why != "" {
			s = gateway.Status{Name: name, State: health.LeftOut, Reason: why, Since: h.began, Tools: -1, Prompts: -1, Resources: -1}
		} else if !ok { // about to be added
			s = gateway.Status{Name: name, State: gateway.Starting, Since: time.Now(), Tools: -1, Prompts: -1, Resources: -1}
		}
		row := health.Server{
			Name: name, State: string(s.State), Required: h.servers.Requires(name) || slices.Contains(ready.Require, name), Since: s.Since, Share: s.Share.String(), Clients: s.Clients,
			Asks: s.Asks, Waiting: s.Waiting, Question: s.Question, Asked: s.Asked, Roots: s.Roots, Losses: s.Losses, Evicted: s.Evicted, Refused: s.Refused, Conns: s.Conns, Tools: s.Tools, Prompts: s.Prompts, Resources: s.Resources, Shadowed: s.Shadowed,
		}
		row.Restarts = h.servers.Restarted(name)
		row.Minute = traffic.Server(name)
		row.Processes, row.Memory = h.servers.Processes(name)
		row.Replicas = board.Replicas(h.servers.Replicas(name))
		row.Debug = h.servers.Debuggers(name)
		row.Reason, row.Said = board.Apart(s.Reason)
		row.Lost, _ = board.Apart(s.Lost)
		row.LostAt = s.LostAt
		if s.State == gateway.NeedsLogin {
			row.Login = row.Reason
		}
		if s.Server.Name != "" {
			row.Server = oneLine(strings.TrimSpace(s.Server.Name+" "+s.Server.Version)) + ", " + string(s.Revision)
		}
		r.Servers = append(r.Servers, row)
	}
	for _, name := range ready.Require {
		if !slices.Contains(names, name) {
			r.Servers = append(r.Servers, health.Server{Name: name, State: string(gateway.Failing), Required: true, Since: h.began, Reason: "required, but not in " + h.from, Tools: -1, Prompts: -1, Resources: -1})
		}
	}
	r.State = health.StateOf(r.Servers, h.board.Starting(names), time.Since(h.began), ready.Wait)
	h.chain.Report(r)
	r.Steers = h.steers != nil
	r.Record = h.a.recordState()
	if h.ending.Load() {
		r.State = health.Ending
	}
	return r
}

// openSocket lets "patchbay status" find this program. Close of the result ends that.
func (a *app) openSocket(report func() *health.Report, further map[string]http.Handler) *health.Socket {
	socket, err := health.OpenSocket(report, further)
	switch {
	case err == nil:
	case runtime.GOOS == "windows": // it may have no Unix sockets
		a.logger().Debug("patchbay status cannot find this program", "err", err)
	default:
		a.talk.Note("warning: patchbay status cannot find this program: %v", err)
	}
	return socket
}

// ownReport returns the state of a server of this program, which serves at url.
func (a *app) ownReport(name, url string, began time.Time, made *chain.Chain, counters *metrics.Counters) *health.Report {
	traffic := counters.Read(metrics.Minute)
	row := health.Server{Name: cmp.Or(name, "mock"), State: string(gateway.Ready), Since: began, Tools: -1, Prompts: -1, Resources: -1, Minute: traffic.Server(name)}
	r := &health.Report{State: health.Ready, Version: Version, PID: os.Getpid(), URL: url, From: "serve", Since: began, Servers: []health.Server{row}, Record: a.recordState()}
	if name == "" {
		r.From = row.Name
	}
	made.Report(r)
	if a.ctx.Err() != nil {
		r.State = health.Ending
	}
	return r
}

// deployed takes the readiness of gateway.yaml, if there is one.
func (h *upServer) deployed() {
	if h.a.deployed != nil {
		h.readiness(h.a.deployed.Ready)
	}
}

// readiness changes when the gateway may get traffic.
func (h *upServer) readiness(r deploy.Ready) { h.ready.Store(&r) }

// wayTo returns how health requests reach an endpoint: past a guard, or over loopback.
func wayTo(e *listen.Endpoint) health.Way {
	if e.Guarded() {
		return health.OverGuarded
	}
	return health.OverLoopback
}

// explainTaken adds to the error for a taken address which "patchbay up" has taken it, if one has.
func (a *app) explainTaken(address string, err error) error {
	var f *fault
	if !errors.As(err, &f) || f.Code != exitLocal {
		return err
	}
	_, port, splitErr := net.SplitHostPort(address)
	if splitErr != nil {
		port = address
	}
	if ups, askErr := health.Gateways(a.ctx); askErr == nil {
		for _, u := range ups {
			if u.Report != nil && u.URL != "" && strings.HasSuffix(strings.TrimSuffix(u.URL, listen.Path), ":"+port) {
				f.Err = fmt.Errorf("another patchbay already serves %s: pid %d, %s", u.URL, u.PID, u.From)
				return f.Hint("patchbay status shows it; " + a.elsewhere("listen.http", "--http 127.0.0.1:0 takes any free port"))
			}
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy
	if _, askErr := health.Ask(a.ctx, client, "http://"+net.JoinHostPort("127.0.0.1", port)); askErr == nil {
		f.Err = fmt.Errorf("port %s is used by a patchbay up that patchbay status cannot see: of another user, in a container, or with another XDG_RUNTIME_DIR", port)
	}
	return f
}
