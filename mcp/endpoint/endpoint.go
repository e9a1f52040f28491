// Package endpoint serves an MCP server over HTTP with what a deployment needs: paths for health
// checks, and an end that lets calls in progress finish.
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	err := (&endpoint.HTTP{Server: srv}).ListenAndServe(ctx, "127.0.0.1:7420")
//
// # Guarantees
//
//   - /healthz answers 200 as long as the process answers. /readyz answers 200 while the server takes
//     requests, and 503 from the moment ctx ends, after another call of the server's Shutdown, and while
//     OnStart fails, which /readyz calls again then. Both answer without a credential, and tell nothing else.
//   - When ctx ends, calls in progress finish within Grace, and event streams end. Later requests are
//     refused.
//   - Serve returns when everything has ended, at most 6 seconds after Grace.
package endpoint

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/mcp"
)

// HTTP is an MCP server at an address. Only Server is required. The fields are read when serving
// starts and not after. An HTTP is served once, and a Server by one HTTP: it ends with the first.
type HTTP struct {
	Server *mcp.Server

	// Path of the Server, and of nothing below it. Empty: "/mcp".
	Path string

	// Protect wraps the handler of Path, for instance auth.Guard.Protect or limit.Limiter.Protect.
	// If nil, callers need no credential.
	Protect func(http.Handler) http.Handler

	// Handler serves all other paths: the pages of the program, its metrics, the metadata of an
	// auth.Guard, or [mcp.Server.SSE]. If nil, they get 404 and the name of Path.
	Handler http.Handler

	// Ready reports why the program cannot take requests at the moment, for instance because a
	// database is away. Then /readyz answers 503, without the error. It is called with each request
	// for /readyz, also by several goroutines at once. If nil, the program is ready.
	Ready func(ctx context.Context) error

	// Delay is the time between the end of ctx and the refusal of requests, in which load balancers
	// notice that /readyz answers 503. Zero: none.
	Delay time.Duration

	// Grace is the time that calls in progress, and requests to Handler, have to finish after that.
	// Then they are canceled. Zero: 10 seconds.
	Grace time.Duration

	// TLS, if not nil, serves HTTPS. It needs a certificate.
	TLS *tls.Config

	served, ending atomic.Bool
}

// ListenAndServe listens on a TCP address such as "127.0.0.1:7420", and serves until ctx ends, as
// Serve does.
func (h *HTTP) ListenAndServe(ctx context.Context, addr string) error {
	if err := h.check(); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return h.Serve(ctx, ln)
}

// Serve serves until ctx ends, and then ends gracefully. It closes ln, also when it fails. Unless the
// fields have a fault or h is served already, it shuts the Server down. The error is nil if all requests
// have ended.
func (h *HTTP) Serve(ctx context.Context, ln net.Listener) error {
	defer ln.Close()
	if err := h.check(); err != nil {
		return err
	}
	if h.served.Swap(true) {
		return errors.New("endpoint: this HTTP is served already, or was; make another one for each address, with a Server of its own")
	}
	srv := &http.Server{Handler: h.handler(), TLSConfig: h.TLS, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	if log := h.Server.Logger; log != nil {
		srv.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	}
	served := web.Serve(srv, ln)
	var failed error
	select {
	case failed = <-served:
	case <-ctx.Done():
		h.ending.Store(true)
		select {
		case failed = <-served:
		case <-time.After(h.Delay):
		}
	}
	h.ending.Store(true)
	return errors.Join(failed, web.End(ctx, cmp.Or(h.Grace, 10*time.Second), h.Server.Shutdown, srv))
}

// check returns the first fault in the fields.
func (h *HTTP) check() error {
	switch {
	case h.Server == nil:
		return errors.New("endpoint: HTTP.Server is nil; give the *mcp.Server to serve")
	case h.Path != "" && !strings.HasPrefix(h.Path, "/") || strings.ContainsAny(h.Path, " {}"):
		return fmt.Errorf("endpoint: HTTP.Path %q is not a path; give one such as /mcp", h.Path)
	case h.Path != "" && !isPath(h.Path):
		return fmt.Errorf("endpoint: HTTP.Path %q cannot be requested; give a plain path without a query, such as /mcp", h.Path)
	case h.Path == "/healthz" || h.Path == "/readyz":
		return fmt.Errorf("endpoint: HTTP.Path %s is the path of a health check; give another, such as /mcp", h.Path)
	case h.Grace < 0 || h.Delay < 0:
		return fmt.Errorf("endpoint: HTTP.Grace %v or HTTP.Delay %v is negative", h.Grace, h.Delay)
	}
	return h.Server.Check()
}

// isPath reports whether requests can have a path: it has no query, no empty and no dot segments.
func isPath(p string) bool {
	u, err := url.ParseRequestURI(p)
	return err == nil && u.EscapedPath() == p && !strings.Contains(p, "#") && (p == "/" || path.Clean(p) == strings.TrimSuffix(p, "/"))
}

func (h *HTTP) handler() http.Handler {
	path := cmp.Or(h.Path, "/mcp")
	var server, other http.Handler = h.Server, h.Handler
	if h.Protect != nil {
		server = h.Protect(server)
	}
	if other == nil {
		other = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the MCP endpoint is at "+path, http.StatusNotFound)
		})
	}
	guard := &web.Guard{AllowedHosts: h.Server.HTTP.AllowedHosts, AllowedOrigins: h.Server.HTTP.AllowedOrigins}
	mux := http.NewServeMux()
	mux.Handle("/", other)
	web.HandleState(mux, guard, func(r *http.Request) string {
		err := h.Server.Check()
		switch {
		case h.ending.Load(), errors.Is(err, mcp.ErrClosed):
			return "ending"
		case err != nil, h.Ready != nil && h.Ready(r.Context()) != nil:
			return "not ready"
		}
		return "ready"
	})
	if strings.HasSuffix(path, "/") {
		mux.Handle(path+"{$}", server) // without the paths below, which may be those of Handler
	} else {
		mux.Handle(path, server)
	}
	return mux
}
