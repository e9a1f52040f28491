package listen

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Page serves one path, or a handler of several, on a listener of its own.
type Page struct {
	URL string // of the page

	listeners []net.Listener // of one port
	http      *http.Server
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
		URL:       "http://" + reachable(l.Addr()) + path,
		listeners: []net.Listener{boundConnections(l, logRefused(log))},
		http: &http.Server{
			Handler: boundBodies(mux, nil), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
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
	srv.Handler = boundBodies(h, nil)
	return &Page{URL: scheme + reachable(l.Addr()), listeners: []net.Listener{boundConnections(l, logRefused(log))}, http: srv}
}

// Loopback listens on a free port of this machine, at 127.0.0.1 and, where there is IPv6, at ::1 too, so that no other
// program gets what browsers send to localhost at this port.
func Loopback() ([]net.Listener, error) {
	for range loopbackTries {
		four, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		six, err := net.Listen("tcp", net.JoinHostPort("::1", strconv.Itoa(four.Addr().(*net.TCPAddr).Port)))
		if err == nil {
			return []net.Listener{four, six}, nil
		}
		other, err := net.Listen("tcp", "[::1]:0") // systems have different errors for a port that is taken
		if err != nil {
			return []net.Listener{four}, nil // there is no IPv6
		}
		other.Close()
		four.Close()
	}
	return nil, errors.New("no port is free at both 127.0.0.1 and ::1")
}

// loopbackTries bounds the search for a port that is free at both addresses.
const loopbackTries = 20

// NewOwn puts a handler, which checks hosts and origins itself, behind the listeners of one port. Over is called when End
// begins to wait for connections, to end streams.
func NewOwn(listeners []net.Listener, h http.Handler, over func(), log *slog.Logger) *Page {
	p := NewService(listeners[0], nil, h, log)
	for _, l := range listeners[1:] {
		p.listeners = append(p.listeners, boundConnections(l, logRefused(log)))
	}
	p.http.RegisterOnShutdown(over)
	return p
}

// Serve serves in the background; the channel receives the error that ended it.
func (p *Page) Serve() <-chan error {
	served, secure := make(chan error, len(p.listeners)), p.http.TLSConfig != nil
	for _, l := range p.listeners {
		go func() { // ends with the server
			if secure {
				served <- p.http.ServeTLS(l, "", "")
			} else {
				served <- p.http.Serve(l)
			}
		}()
	}
	return served
}

// End lets the calls of MCP servers behind the page finish for at most d, and then cancels them. It does not return
// earlier, even if ctx ends.
func (p *Page) End(ctx context.Context, d time.Duration, servers ...*mcp.Server) error {
	return web.End(ctx, d, func(ctx context.Context) error {
		var all sync.WaitGroup
		for _, srv := range servers {
			all.Go(func() { _ = srv.Shutdown(ctx) })
		}
		all.Wait()
		return nil
	}, p.http)
}

// Close closes the listeners and all their connections.
func (p *Page) Close() error { return p.http.Close() }
