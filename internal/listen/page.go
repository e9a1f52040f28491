package listen

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Page serves one path, or a handler of several, on a listener of its own.
type Page struct {
	URL string // of the page

	listener net.Listener
	http     *http.Server
}

// NewPage puts a handler behind a listener, at a path. Connections and headers have the bounds of
// the package. On loopback, requests for the names of other hosts are refused, and so are those of
// web pages everywhere, except for a link that a person follows.
func NewPage(l net.Listener, path string, h http.Handler, log *slog.Logger) *Page {
	guard, mux := new(web.Guard), http.NewServeMux()
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Dest") != "document": // such as an image
			web.Refuse(w, http.StatusForbidden, jsonrpc.CodeInvalidRequest, "requests from pages of other sites are refused here")
		case guard.Admit(w, r, "GET"):
			h.ServeHTTP(w, r)
		}
	})
	return &Page{
		URL:      "http://" + reachable(l.Addr()) + path,
		listener: boundConnections(l, logRefused(log)),
		http: &http.Server{
			Handler: boundBodies(mux), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}
}

// NewService puts a handler behind a listener of its own, beside an endpoint, whose certificate and limiter
// it has, and whose Options.Admin or guard; with a nil endpoint it has none. The handler checks hosts and
// origins.
func NewService(l net.Listener, beside *Endpoint, h http.Handler, log *slog.Logger) *Page {
	srv := &http.Server{
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	scheme := "http://"
	if beside != nil {
		if guard := cmp.Or(beside.options.Admin, beside.options.Guard); guard != nil {
			h = guard.Protect(h)
		}
		if beside.options.Limit != nil {
			h = beside.options.Limit(h)
		}
		if beside.options.TLS != nil {
			scheme, srv.TLSConfig = "https://", beside.options.TLS.Config(func(*tls.ClientHelloInfo) bool { return false })
		}
	}
	srv.Handler = boundBodies(h)
	return &Page{URL: scheme + reachable(l.Addr()), listener: boundConnections(l, logRefused(log)), http: srv}
}

// Serve serves in the background; the channel receives the error that ended it.
func (p *Page) Serve() <-chan error { return web.Serve(p.http, p.listener) }

// Close closes the listener and all its connections.
func (p *Page) Close() error { return p.http.Close() }
