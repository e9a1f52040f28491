package main

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/mcp"
)

// bridgeCmd serves one server over another transport, in every revision: a command over
// HTTP, or a URL over stdio. Nothing is renamed or merged; the questions of the server go to
// the clients of the bridge.
type bridgeCmd struct {
	HTTP  string        `name:"http" placeholder:"ADDR" help:"Serve HTTP; default for a command: 127.0.0.1:7421."`
	Stdio bool          `help:"Serve stdio; default for a URL."`
	SSE   bool          `name:"sse" help:"Serve HTTP+SSE too, the transport of 2024-11-05, at /sse."`
	Share string        `placeholder:"HOW" help:"Its connections: auto, shared, session or principal."`
	Idle  time.Duration `placeholder:"TIME" help:"End a session with it that nobody used for so long."`
	protection
	governed
}

const (
	bridgeAddress = "127.0.0.1:7421"
	sseEndpoint   = "/sse"
	ssePosts      = "/messages"
)

func (c *bridgeCmd) Run(a *app) error {
	s, err := a.target()
	if err != nil {
		return err
	}
	if err := c.check(s); err != nil {
		return err
	}
	if err := c.protection.check(c.Stdio); err != nil {
		return err
	}
	if c.Stdio { // standard input is the client's
		a.answers.silence()
	}
	if s, err = a.resolve(s); err != nil {
		return err
	}
	if s, err = a.withEnv(s); err != nil {
		return err
	}
	a.server = &s
	share, err := gateway.ParseShare(cmp.Or(c.Share, s.Share))
	if err != nil {
		return usagef("--share %w", err)
	}
	if c.Stdio { // there is one client
		share = gateway.Shared
	}
	policy, err := c.rules(a)
	if err != nil {
		return err
	}
	known, news := make(chan struct{}), a.bridgeNews()
	once := sync.OnceFunc(func() { close(known) })
	g := &gateway.Gateway{ID: hop.Self, Name: "patchbay bridge", Version: Version, Logger: a.logger(), OnStatus: func(s gateway.Status) { once(); news(s) }}
	if policy != nil {
		g.Middleware = policy.around(func(string) bool { return trustedServer(s) })
	}
	front := &mcp.Server{Name: "patchbay bridge", Version: Version, Handler: g.Direct(s.Name), Logger: a.logger()}
	if front.OnFrame, err = a.recorder(); err != nil {
		return err
	}
	log := &serverLog{name: s.Name, secrets: a.secrets}
	if a.Verbose {
		log.to = a.talk
	}
	a.noteUnused("bridge", s)
	bound, _ := a.startTimeout(s)
	ctx, stop := context.WithCancel(context.WithoutCancel(a.ctx))
	var running sync.WaitGroup
	running.Go(func() { policy.follow(ctx, a, func() {}) })
	running.Go(func() {
		g.Run(ctx, gateway.Source{
			Name: s.Name, Share: share, Idle: cmp.Or(c.Idle, s.Idle), StartTimeout: bound, Stderr: log.last,
			MaxClients: s.Clients, Queue: s.Queue, Offers: offersOf(s),
			Open: func(ctx context.Context) (gateway.Upstream, error) {
				u, err := a.openUpstream(ctx, s, log)
				if err != nil {
					return nil, err
				}
				return u, nil
			},
		}) // an error would be of what stands here
	})
	a.atEnd = append(a.atEnd, func() {
		stop()
		within(time.Second, running.Wait) // what has not ended by then is the guards' to end
	})
	<-known // before that the gateway has no such server
	if c.Stdio {
		if _, err := c.limit(front, false); err != nil {
			return err
		}
		return a.serveStdio(front)
	}
	return c.serveHTTP(a, front)
}

// check completes the flags.
func (c *bridgeCmd) check(s config.Server) error {
	switch {
	case c.Stdio && (c.HTTP != "" || c.SSE):
		return usagef("--stdio excludes --http and --sse; a bridge has one side")
	case c.Idle < 0:
		return usagef("--idle %v is negative", c.Idle)
	case c.HTTP == "" && !c.SSE && s.URL != "":
		c.Stdio = true
	case c.HTTP == "":
		c.HTTP = bridgeAddress
	}
	return nil
}

// bridgeNews tells a person what becomes of the server, if that is not what they expect.
func (a *app) bridgeNews() func(gateway.Status) {
	failed := false
	return func(s gateway.Status) {
		switch {
		case s.State == gateway.Failing || s.State == gateway.Crashing || s.State == gateway.NeedsLogin:
			failed = true
			a.talk.note("%s: %s: %s", s.Name, s.State, s.Reason)
		case s.State == gateway.Ready && (failed || a.Verbose):
			failed = false
			a.talk.note("%s is ready: %s %s, revision %s", s.Name, s.Server.Name, s.Server.Version, s.Revision)
		}
	}
}

// serveHTTP serves the bridge over HTTP until ctrl-C.
func (c *bridgeCmd) serveHTTP(a *app, front *mcp.Server) error {
	web, err := a.listen(front, c.HTTP, c.protection)
	if err != nil {
		return err
	}
	a.talk.always("listening on " + web.url)
	if c.SSE {
		sse := front.SSE(ssePosts)
		web.handle(sseEndpoint, sse)
		web.handle(ssePosts, sse)
		a.talk.always("and for clients of 2024-11-05 on " + web.url[:len(web.url)-len(endpoint)] + sseEndpoint)
	}
	served := web.serve()
	select {
	case err := <-served:
		return err
	case <-a.ctx.Done():
	}
	// A handler that ignores its end must not hold up the program's.
	within(drainTime+drainTime/2, func() { web.end(a.ctx, drainTime) })
	return nil
}
