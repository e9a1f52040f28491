package main

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/httpapi"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

var bridgeVerb = verb{
	name: "bridge", summary: "Serve a stdio server over HTTP, or an HTTP server over stdio.", usage: "[--http ADDR | --stdio] [SERVER]",
	examples: []string{"patchbay bridge -- npx -y @modelcontextprotocol/server-memory"},
	server:   oneServer | wordIsServer | programIsServer | serverExplained,
	details:  `SERVER is -s NAME, -s URL or -- COMMAND; default: the only server in mcp.json.`,
	command:  func() command { return new(bridgeCmd) },
}

// bridgeCmd serves one server over another transport, in every revision: a command over HTTP, or a
// URL over stdio. Names stay as the server gives them. Questions that the server asks go to the
// client whose call they belong to.
type bridgeCmd struct {
	HTTP  string        `name:"http" placeholder:"ADDR" help:"Serve HTTP; default for a command: 127.0.0.1:7421."`
	Stdio bool          `help:"Serve stdio; default for a URL."`
	Share string        `placeholder:"CLASS" help:"Share connections: auto, shared, session, principal."`
	Idle  time.Duration `placeholder:"TIME" help:"End sessions that are idle for this long."`
	protection
	governed
	measured
}

const bridgeAddress = "127.0.0.1:7421"

func (c *bridgeCmd) Run(a *app) error {
	if err := a.deploy(&c.governed, &c.Limits, &reached{&c.protection, &c.measured, &c.HTTP, c.Stdio}); err != nil {
		return err
	}
	s, err := a.target()
	if err != nil {
		return err
	}
	if err := c.check(s); err != nil {
		return err
	}
	if err := c.protection.Check(c.Stdio); err != nil {
		return err
	}
	if c.Stdio { // standard input and output belong to the client
		a.wire = a.rawOut
		a.answers.Silence()
	}
	share, err := gateway.ParseShare(cmp.Or(c.Share, s.Share))
	if err != nil {
		return usagef("--share %w", err)
	}
	if c.Stdio { // there is one client
		share = gateway.Shared
	}
	s.Share, s.Idle = share.String(), cmp.Or(c.Idle, s.Idle)
	if err := c.startable(a, s); err != nil {
		return err
	}
	made, err := a.protectedChain(&c.protection, c.governed, !c.Stdio)
	if err != nil {
		return err
	}
	a.record.Dir = c.Record
	h := &upServer{a: a, began: time.Now(), plan: &plan{from: "bridge to " + s.Name}, board: board.New(a.talk), chain: made}
	h.gateway = &gateway.Gateway{ID: hop.Self, Name: "patchbay bridge", Version: Version, Logger: a.logger(), OnStatus: h.changed}
	ctx, stop := context.WithCancelCause(a.ctx)
	defer stop(nil)
	h.servers = h.newServers("", false) // before the counters, which report on them
	h.servers.Alone = c.Stdio
	h.servers.LeftOut = func(_, why string) { stop(&fault{Code: exitLoop, Err: errors.New(why)}) }
	h.counters = h.newCounters(func(tool string) (string, string) { return s.Name, tool })
	made.Count(h.counters)
	h.deployed()
	h.gateway.Middleware = made.Around(h.known)
	h.front = &mcp.Server{Name: "patchbay bridge", Version: Version, Handler: h.gateway.Direct(s.Name), Logger: a.logger(), OnSession: h.counters.Session}
	if h.front.OnFrame, h.front.Watched, err = a.recorder(); err != nil {
		return err
	}
	var w *listen.Endpoint
	if !c.Stdio {
		if w, err = a.listen(h.front, c.HTTP, c.protection, made, made.Front); err != nil {
			return err
		}
		h.url = w.URL
		c.ServeAPI(w, &httpapi.API{Version: Version, Only: s.Name})
		health.Handle(w.Mux, wayTo(w), h.front, h.report)
	} else if err := a.inFront(h.front, made); err != nil {
		return err
	}
	h.board.Report()
	unmeasured, err := c.serveMetrics(a, h.counters)
	if err != nil {
		return err
	}
	defer unmeasured()
	h.servers.Set([]config.Server{s}, nil, "")
	if !a.env.Nested() { // else it is a server of another patchbay, whose status shows it
		defer a.openSocket(h.report, nil).Close()
	}
	var following sync.WaitGroup
	following.Go(func() { h.followLogins(ctx) })
	following.Go(func() { made.Follow(ctx, func() {}, h.readiness) })
	a.atEnd = append(a.atEnd, func() {
		stop(nil)
		following.Wait()
		within(time.Second, h.servers.Close) // the guards end processes that are still running
	})
	if c.Stdio {
		err = a.serveStdio(ctx, h.front)
	} else {
		err = c.serveHTTP(ctx, h, w)
	}
	var loop *fault
	if errors.As(context.Cause(ctx), &loop) {
		return loop
	}
	return err
}

// startable returns an error if the server can never be started as it is written. Then the bridge
// ends at once. It asks for missing inputs.
func (c *bridgeCmd) startable(a *app, s config.Server) error {
	if _, err := a.withEnv(s); err != nil {
		return err
	}
	s, err := a.env.Resolve(s)
	if err != nil {
		return err
	}
	a.server = &s
	if err := a.env.Check(s); err != nil {
		return &launch.Error{Server: s.Name, Err: err}
	}
	return nil
}

// check validates the flags and sets defaults.
func (c *bridgeCmd) check(s config.Server) error {
	switch {
	case c.Stdio && (c.HTTP != "" || c.SSE):
		return usagef("--stdio excludes --http and --sse")
	case c.Idle < 0:
		return usagef("--idle %v is negative", c.Idle)
	case c.HTTP == "" && !c.SSE && s.URL != "":
		c.Stdio = true
	case c.HTTP == "":
		c.HTTP = bridgeAddress
	}
	return nil
}

// serveHTTP serves the bridge over HTTP until ctx ends.
func (c *bridgeCmd) serveHTTP(ctx context.Context, h *upServer, w *listen.Endpoint) error {
	a := h.a
	a.noteListening(w)
	served := w.Serve()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	h.ending.Store(true)
	// A handler that ignores the end of its context must not delay the end of the program.
	within(drainTime+drainTime/2, func() { w.End(a.ctx, drainTime) })
	return nil
}
