package main

import (
	"cmp"
	"errors"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/upreport"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/metrics"
)

// report returns the state of this run, with the servers in the order of the configuration.
func (h *upServer) report() *health.Report {
	r := &health.Report{Version: Version, PID: os.Getpid(), URL: h.url, Page: h.pageURL, From: h.from, Since: h.began}
	ready := deploy.Ready{Wait: health.ReadyTime}
	if set := h.ready.Load(); set != nil {
		ready = *set
	}
	upreport.Fill(r, h.board, h.servers, h.gateway, h.counters, ready)
	h.chain.Report(r)
	r.Steers = h.steers != nil && h.views != nil // verbs act on up, not on inspect
	r.Record = h.a.recordState()
	h.member.Report(r)
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
	who, seen := steer.Taken(a.ctx, address)
	if who != nil {
		f.Err = who
	}
	if seen {
		return f.Hint("patchbay status shows it; " + a.elsewhere("listen.http", "--http 127.0.0.1:0 takes any free port"))
	}
	return f
}
