package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers"
)

type serveCmd struct {
	Name string   `arg:"" optional:"" help:"Name of a built-in server."`
	Args []string `arg:"" optional:"" name:"flags" help:"Flags of the server."`
	HTTP string   `name:"http" placeholder:"ADDR" help:"Serve Streamable HTTP on this address; default: stdio."`
	protection
	governed
}

// shutdownTime bounds the end of serving: calls in progress may finish until then.
const shutdownTime = 5 * time.Second

func (c *serveCmd) Run(a *app) error {
	if a.Server != "" {
		return usagef("serve takes the name itself, not -s").hint("patchbay serve " + a.Server)
	}
	if c.Name == "" {
		return usagef("which server? built in are %s", strings.Join(servers.Names(), ", ")).hint("patchbay serve " + servers.Names()[0])
	}
	srv, err := newBuiltin(c.Name, append(c.Args, a.command...), a.logger())
	if err != nil {
		return err
	}
	policy, err := c.rules(a)
	if err != nil {
		return err
	}
	var around []mcp.Middleware
	if policy != nil {
		around = append(around, policy.middleware(c.Name))
		ctx, stop := context.WithCancel(a.ctx)
		var following sync.WaitGroup
		following.Go(func() { policy.follow(ctx, a, func() {}) })
		defer following.Wait()
		defer stop()
	}
	return a.serve(srv, append(c.Args, a.command...), c.HTTP, c.protection, around...)
}

// serve serves a server that was given args over HTTP, or over stdio without an
// address, until the client leaves or the program is told to end. Middleware stands behind
// the bounds for callers.
func (a *app) serve(srv *mcp.Server, args []string, address string, p protection, mw ...mcp.Middleware) error {
	client, err := a.newClient(config.Server{Args: args}) // for its checks of the flags
	if err != nil {
		return err
	}
	srv.Revisions, srv.OnFrame = client.Revisions, client.OnFrame
	if address != "" {
		return a.serveHTTP(srv, address, p, mw...)
	}
	if err := p.check(true); err != nil {
		return err
	}
	if _, err := p.limit(srv, false); err != nil {
		return err
	}
	srv.Use(mw...)
	return a.serveStdio(a.ctx, srv)
}

// serveStdio serves a server over stdio until the client leaves or ctx ends.
func (a *app) serveStdio(ctx context.Context, srv *mcp.Server) error {
	a.noteStdio()
	err := srv.ServeStdio(ctx)
	ended := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if shut := srv.Shutdown(ctx); err == nil || ended {
		err = shut
	}
	return err
}

// noteStdio says at a terminal why nothing happens: a host should be where a person sits.
func (a *app) noteStdio() {
	if a.tty.in {
		a.talk.note("waiting for MCP messages on standard input, which hosts send; --http 127.0.0.1:7421 serves HTTP instead, ctrl-C ends this")
	}
}

// endpoint is where a server is served.
const endpoint = "/mcp"

// serveHTTP serves a server until the program is told to end.
func (a *app) serveHTTP(srv *mcp.Server, address string, p protection, mw ...mcp.Middleware) error {
	web, err := a.listen(srv, address, p)
	if err != nil {
		return err
	}
	srv.Use(mw...)
	a.talk.always("listening on " + web.url)
	served := web.serve()
	select {
	case err := <-served:
		return err
	case <-a.ctx.Done():
	}
	return web.end(a.ctx, shutdownTime)
}

// web is a server behind a listener.
type web struct {
	url      string
	srv      *mcp.Server
	listener net.Listener
	mux      *http.ServeMux // of http
	guard    *auth.Guard    // nil: everybody is let in
	limit    *limit.Limiter // nil: there is no bound
	http     *http.Server
}

// maxHeader bounds the header of a request, in bytes. The arguments of tools that travel in
// headers have room in it.
const maxHeader = 64 << 10

// maxStreams bounds the requests that an HTTP/2 connection has open at once; RFC 9113, section
// 6.5.2, recommends no less. Of requests that were reset before a handler saw them net/http keeps
// four times as many, each with its header.
const maxStreams = 100

// listen opens a listener for a server; [web.serve] serves it.
func (a *app) listen(srv *mcp.Server, address string, p protection) (*web, error) {
	if err := p.check(false); err != nil {
		return nil, err
	}
	secure, err := p.secure(a)
	if err != nil {
		return nil, err
	}
	address, err = listenAddress(address, p.shared())
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		f := &fault{code: exitLocal, err: plainListen(address, err)}
		return nil, f.hint("--http 127.0.0.1:0")
	}
	g, err := p.guard(a, listener.Addr())
	if err != nil {
		listener.Close()
		return nil, err
	}
	l, err := p.limit(srv, true)
	if err != nil {
		listener.Close()
		return nil, err
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		if g == nil {
			a.talk.always("patchbay: warning: everybody who reaches " + listener.Addr().String() + " can use the server, without authentication")
		} else if secure == nil {
			a.talk.always("patchbay: warning: credentials come to " + listener.Addr().String() + " over plain HTTP; use --tls-cert, or put a proxy with TLS in front")
		}
	}
	p.admit(a, srv)
	w := &web{url: p.scheme() + shownAddress(listener.Addr()) + endpoint, srv: srv, limit: l, listener: listener, mux: http.NewServeMux()}
	if g != nil {
		w.protect(g)
	}
	w.handle(endpoint, srv)
	w.mux.HandleFunc("/", elsewhere)
	w.listener = boundConnections(listener, a.tooMany())
	w.http = &http.Server{
		Handler: hop.Refuse(boundBodies(w.mux)), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog: slog.NewLogLogger(a.logger().Handler(), slog.LevelWarn),
	}
	if secure != nil {
		w.http.TLSConfig = secure.listener()
	}
	return w, nil
}

// asked is how questions for the health of the server come that its listener gets.
func (w *web) asked() asked {
	if w.guard != nil {
		return overGuarded
	}
	return overLoopback
}

// serve serves in the background; the channel tells how that ended.
func (w *web) serve() <-chan error {
	served := make(chan error, 1)
	go func() {
		if w.http.TLSConfig != nil {
			served <- w.http.ServeTLS(w.listener, "", "")
		} else {
			served <- w.http.Serve(w.listener)
		}
	}()
	return served
}

// end lets calls in progress finish for at most d, and then ends them.
func (w *web) end(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	defer cancel()
	if err := errors.Join(w.srv.Shutdown(ctx), w.http.Shutdown(ctx)); err != nil {
		w.http.Close()
		return fmt.Errorf("shut down within %v: %w", d, err)
	}
	return nil
}

// listenAddress completes an address and checks that only this machine reaches it,
// unless that is not wanted. A bare port is one of loopback.
func listenAddress(address string, insecure bool) (string, error) {
	if !strings.Contains(address, ":") {
		address = ":" + address
		if !insecure {
			address = "127.0.0.1" + address
		}
	}
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return "", usagef("--http %s: %v", address, err).hint("--http 127.0.0.1:7420")
	}
	if !addr.IP.IsLoopback() && !insecure {
		return "", usagef("--http %s: everybody who reaches this address could use the server, as there is no authentication", address).
			hint(fmt.Sprintf("--http 127.0.0.1:%d serves this machine alone, --auth those who are known, --insecure-no-auth everybody", addr.Port))
	}
	return address, nil
}

// shownAddress is an address to connect to.
func shownAddress(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}
