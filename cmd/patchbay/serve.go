package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/httpapi"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/observe"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/servers"
)

var serveVerb = verb{
	name: "serve", summary: "Serve a built-in server.", usage: "NAME [--http ADDR] [ARGUMENTS OF THE SERVER]",
	examples: []string{"patchbay serve everything --http 127.0.0.1:7420", "patchbay serve files --read-only docs src"},
	server:   wordsBehindDashes | foreignFlags,
	details: `Serves stdio, or with --http Streamable HTTP at http://ADDR/mcp; port 0 is any
free port. Passes arguments after -- on unchanged. Servers (help serve NAME):
` + strings.Join(servers.Names(), ", ") + ", " + observe.Name,
	command: func() command { return new(serveCmd) },
}

type serveCmd struct {
	Name string   `arg:"" optional:"" help:"Name of a built-in server."`
	Args []string `arg:"" optional:"" name:"flags" help:"Flags of the server."`
	HTTP string   `name:"http" placeholder:"ADDR" help:"Serve Streamable HTTP on this address; default: stdio."`
	protection
	governed
	measured
}

func (*serveCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	if len(a.words) > 0 {
		return nil
	}
	return a.serverNames("")
}

// shutdownTime bounds the time that calls in progress have to finish at shutdown.
const shutdownTime = 5 * time.Second

func (c *serveCmd) Run(a *app) error {
	if c.Name == "" {
		return usagef("which server? available: %s", strings.Join(servers.Names(), ", ")).Hint("patchbay serve " + servers.Names()[0])
	}
	if err := a.deploy(&c.governed, &c.Limits, &reached{&c.protection, &c.measured, &c.HTTP, false}); err != nil {
		return err
	}
	srv, err := newBuiltin(c.Name, append(c.Args, a.command...), a.logger())
	if c.Name == observe.Name {
		srv, err = observe.New(Version, append(c.Args, a.command...), c.HTTP, a.logger())
	}
	if err != nil {
		return err
	}
	return a.serve(srv, c.Name, append(c.Args, a.command...), c.HTTP, c.protection, c.governed, c.measured)
}

// serve serves a server of this program over HTTP or, without an address, over stdio, until the client
// leaves or the program is told to end. The policy knows the server by its name, and args are its
// arguments.
func (a *app) serve(srv *mcp.Server, name string, args []string, address string, p protection, g governed, m measured) error {
	if address == "" {
		a.wire = a.rawOut
	}
	made, err := a.protectedChain(&p, g, address != "")
	if err != nil {
		return err
	}
	own := func() ([]mcp.Middleware, error) {
		return made.Own(name, chain.Server{Trusted: true, Config: config.Server{Name: name, Builtin: name, Args: args}})
	}
	ctx, stop := context.WithCancel(a.ctx)
	var following sync.WaitGroup
	following.Go(func() { made.Follow(ctx, func() {}, func(deploy.Ready) {}) })
	defer following.Wait()
	defer stop()
	a.record.Dir = p.Record
	client, err := a.newClient(config.Server{Args: args}) // checks the flags
	if err != nil {
		return err
	}
	srv.Revisions, srv.OnFrame = client.Revisions, client.OnFrame
	counters := &metrics.Counters{Version: Version, Owner: func(tool string) (string, string) { return name, tool }}
	made.Count(counters)
	srv.OnSession = counters.Session
	unmeasured, err := m.serveMetrics(a, counters)
	if err != nil {
		return err
	}
	defer unmeasured()
	if address != "" {
		return a.serveHTTP(srv, name, address, p, made, own, counters)
	}
	if err := p.Check(true); err != nil {
		return err
	}
	mw, err := own()
	if err != nil {
		return chainFault(err)
	}
	srv.Use(mw...)
	return a.serveStdio(a.ctx, srv)
}

// serveStdio serves a server over stdio until the client leaves or ctx ends.
func (a *app) serveStdio(ctx context.Context, srv *mcp.Server) error {
	a.noteStdio()
	err := srv.ServeStdio(ctx)
	a.leave()
	ended := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if shut := srv.Shutdown(ctx); err == nil || ended {
		err = shut
	}
	return err
}

// noteStdio explains at a terminal that the program waits for a host's messages.
func (a *app) noteStdio() {
	if a.tty.in {
		a.talk.Note("waiting for MCP messages on standard input, which hosts send; --http 127.0.0.1:7421 serves HTTP instead, ctrl-C quits")
	}
}

// serveHTTP serves a server until the program is told to end.
func (a *app) serveHTTP(srv *mcp.Server, name, address string, p protection, made *chain.Chain, own func() ([]mcp.Middleware, error), counters *metrics.Counters) error {
	web, err := a.listen(srv, address, p, made, own)
	if err != nil {
		return err
	}
	p.ServeAPI(web, &httpapi.API{Version: Version, Only: name})
	began := time.Now()
	report := func() *health.Report { return a.ownReport(name, web.URL, began, made, counters) }
	health.Handle(web.Mux, wayTo(web), srv, report)
	if !a.env.Nested() { // as a bridge
		defer a.openSocket(report, nil).Close()
	}
	a.noteListening(web)
	served := web.Serve()
	select {
	case err := <-served:
		return err
	case <-a.ctx.Done():
	}
	return web.End(a.ctx, shutdownTime)
}

// noteListening prints the addresses of an endpoint.
func (a *app) noteListening(e *listen.Endpoint) {
	a.talk.Always("listening on " + e.URL)
	for _, note := range e.Notes() {
		a.talk.Always(note)
	}
}

// listen opens a listener for a server; Serve of the endpoint serves it. The function middlewares is
// Own or Front of the chain.
func (a *app) listen(srv *mcp.Server, address string, p protection, made *chain.Chain, middlewares func() ([]mcp.Middleware, error)) (*listen.Endpoint, error) {
	if err := p.Check(false); err != nil {
		return nil, err
	}
	secure, err := p.Secure(a.logger())
	if err != nil {
		return nil, err
	}
	address, port, err := listen.Address(address, p.Shared())
	switch {
	case errors.Is(err, listen.ErrShared) && a.deployed != nil && a.deployed.Has("listen.http"):
		return nil, usagef("%s", chain.Shared(a.deployed))
	case errors.Is(err, listen.ErrShared):
		return nil, usagef("--http %s: %v", address, err).
			Hint(fmt.Sprintf("--http 127.0.0.1:%d serves only this machine, --auth known callers, --insecure-no-auth everyone", port))
	case err != nil:
		return nil, usagef("--http %s: %v", address, err).Hint("--http 127.0.0.1:7420")
	}
	l, err := listen.Open(address)
	if err != nil {
		f := &fault{Code: exitLocal, Err: netfault.Listen(address, err)}
		return nil, f.Hint(a.elsewhere("listen.http", "--http 127.0.0.1:0"))
	}
	o := listen.Options{TLS: secure, SSE: p.SSE, Log: a.logger(), Note: a.talk.Note}
	var mw []mcp.Middleware
	if o.Login, err = p.People(l.Addr(), a.logger()); err == nil {
		o.Guard, err = p.Guard(l.Addr(), o.Login, a.logger())
	}
	if err == nil {
		o.Admin, err = p.AdminGuard(o.Guard, o.Login, a.logger())
	}
	if err == nil {
		mw, err = middlewares()
	}
	if err != nil {
		l.Close()
		return nil, chainFault(err)
	}
	srv.Use(mw...)
	made.Listen(&o)
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		if o.Guard == nil {
			a.talk.Always("patchbay: warning: anyone who reaches " + l.Addr().String() + " can use the server, without authentication")
		} else if secure == nil {
			a.talk.Always("patchbay: warning: credentials reach " + l.Addr().String() + " over plain HTTP; use --tls-cert, or put a proxy with TLS in front")
		}
	}
	p.Admit(srv, a.talk)
	return listen.New(srv, l, o), nil
}
