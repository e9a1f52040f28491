// Package listen serves an [mcp.Server] over HTTP to callers that need not be trusted.
//
// Begin with [Address], which keeps a server on loopback unless it is meant to be shared, and
// [Open]. [New] puts the server behind that listener.
//
// # Guarantees
//
//   - At most 16384 connections are open at once at an address, 1024 from one address on another machine. Of
//     these, 32 speak HTTP/2, 8 from one address. A connection beyond the bounds is closed, or
//     offered HTTP/1.1; open ones go on.
//   - A request header has at most 64 KiB and arrives within 10 seconds. A body that pauses is
//     given up, on every path. A client that does not read for 30 seconds is disconnected.
//   - The limiter runs first, because it also bounds guesses of credentials, then the guard, then
//     the server.
//   - A request that this process has sent itself, on any route, is refused (package hop).
package listen

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Paths of the server: over Streamable HTTP, and the two of HTTP+SSE.
const (
	Path        = "/mcp"
	ssePath     = "/sse"
	messagePath = "/messages"
)

// maxHeader bounds the header of a request, in bytes. It leaves room for tool arguments that travel
// in headers.
const maxHeader = 64 << 10

// MaxStreams bounds the concurrent requests of an HTTP/2 connection; RFC 9113, section 6.5.2,
// recommends at least 100. Net/http also keeps up to four times as many requests that were reset
// before a handler saw them, each with its header.
const MaxStreams = 100

// Options configure who may use a server, and how to reach it.
type Options struct {
	TLS   *tlsfiles.Server // nil: plain HTTP
	Guard *auth.Guard      // nil: callers need no credential
	Login *issuer.Server   // where the hosts of the guard's callers log in; nil: elsewhere
	Admin *auth.Guard      // of services beside the server; nil: Guard
	SSE   bool             // also serve HTTP+SSE, the HTTP transport of 2024-11-05
	Log   *slog.Logger     // required

	// Note writes a line for people. It may be nil.
	Note func(format string, args ...any)

	// Limit is called for each handler that clients reach, to put a limiter in front of the guard, as
	// the Protect of a limit.Limiter does. It may be nil.
	Limit func(h http.Handler) http.Handler

	// Around is called for each handler that clients reach, before the limiter and the guard. The
	// transport is "http" or "sse", or "page" for the page. It may be nil.
	Around func(transport string, h http.Handler) http.Handler

	// Behind is called for the same handlers, to see the callers that the guard has authenticated.
	// It may be nil.
	Behind func(h http.Handler) http.Handler
}

// Endpoint is a server behind a listener.
type Endpoint struct {
	URL string         // of the server
	SSE string         // URL of the server over HTTP+SSE; empty without Options.SSE
	Mux *http.ServeMux // for further paths, which neither the guard nor the limiter protects

	srv      *mcp.Server
	find     func(path string) *mcp.Server // of further servers; nil: there are none
	api      api                           // for callers that do not speak MCP
	page     http.Handler                  // for people, at all other paths; nil: there is none
	further  sync.Map                      // http.Handler by *mcp.Server, of those that were found
	listener net.Listener
	beside   net.Listener // at the other address of loopback; nil: there is none
	kept     bool         // systemd keeps a socket for the next process
	fronted  bool         // InFront was called
	close    sync.Once
	options  Options
	http     *http.Server
}

// New puts a server behind a listener, at [Path], and with Options.SSE at /sse and /messages too. The
// hosts and origins that srv.HTTP allows also hold for the endpoint. If the listener is on loopback,
// or srv.HTTP.AllowedHosts is set, New adds the host of the guard's resource to srv.HTTP.AllowedHosts,
// because a proxy passes on that name.
func New(srv *mcp.Server, l net.Listener, o Options) *Endpoint {
	scheme := "http://"
	if o.TLS != nil {
		scheme = "https://"
	}
	e := &Endpoint{URL: scheme + reachable(l.Addr()) + Path, Mux: http.NewServeMux(), srv: srv, listener: boundConnections(l, logRefused(o.Log)), options: o}
	if o.Guard != nil && o.Guard.Resource != nil {
		e.handleMetadata(o.Guard)
	}
	if o.Login != nil {
		e.allowHost(o.Login.URL)
		o.Login.Handle(limited{e})
	}
	e.handle("http", Path, srv)
	if o.SSE {
		sse := srv.SSE(messagePath)
		e.handle("sse", ssePath, sse)
		e.handle("sse", ssePath+"/{$}", sse) // as texts and clients write it
		e.handle("sse", messagePath, sse)
		e.SSE = strings.TrimSuffix(e.URL, Path) + ssePath
	}
	e.Mux.HandleFunc("/", e.other)
	e.Mux.HandleFunc(Path+"/", e.below)
	_, e.kept = l.(*socket)
	e.http = &http.Server{
		Handler: hop.Refuse(boundBodies(e.Mux, e.ofAPI)), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: MaxStreams},
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	if o.TLS != nil {
		e.http.TLSConfig = o.TLS.Config(mayHTTP2)
	}
	return e
}

// Login returns where the hosts of callers log in; nil: elsewhere.
func (e *Endpoint) Login() *issuer.Server { return e.options.Login }

// Guarded reports whether callers need a credential.
func (e *Endpoint) Guarded() bool { return e.options.Guard != nil }

// Below serves further servers below [Path]: find returns the server of what follows it and a slash, nil
// if there is none. Each is a resource of its own for clients that log in. It is called before Serve.
func (e *Endpoint) Below(find func(path string) *mcp.Server) { e.find = find }

// InFront puts a handler in front of all that clients of MCP reach, the limiter and the guard too: around is called with what
// serves a request here. Loops are refused before it. Event streams that are not served here end with the endpoint, after the calls
// in progress, and requests go on to be served over open connections until all calls in progress have ended. It is called before Serve.
func (e *Endpoint) InFront(around func(here http.Handler) http.Handler) {
	here := e.http.Handler
	e.fronted = true
	front := around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p, ok := web.As[*paced](w); ok { // else the request came from another node
			p.here = true
		}
		here.ServeHTTP(w, r)
	}))
	ended, end := context.WithCancel(context.Background())
	e.http.RegisterOnShutdown(end)
	e.http.Handler = hop.Refuse(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at := r.URL.Path; at != Path && !strings.HasPrefix(at, Path+"/") && at != ssePath && at != messagePath {
			here.ServeHTTP(w, r)
			return
		}
		p := &paced{ResponseWriter: w}
		if r.Method == http.MethodGet {
			stream, stop := context.WithCancel(r.Context())
			defer stop()
			defer context.AfterFunc(ended, stop)()
			r = r.WithContext(stream)
			if r.ProtoMajor == 1 {
				w.Header().Set("Connection", "close") // also for a stream of another node: a client must not reuse it while this one ends
			}
		}
		front.ServeHTTP(p, r)
		if p.set {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // of the next request on the connection
		}
	}))
}

// paced disconnects a client that does not read the answer to a request that is not served here. The handlers of requests
// that are do that themselves.
type paced struct {
	http.ResponseWriter
	here, set bool
}

// readTime is how long a client may take to read.
const readTime = 30 * time.Second

// Unwrap lets [http.ResponseController] find what the writer can do.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Write implements [http.ResponseWriter].
func (p *paced) Write(b []byte) (int, error) {
	if !p.here {
		p.set = true
		_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(readTime)) // it has one over TCP
	}
	return p.ResponseWriter.Write(b)
}

// HandlePage serves a page for people at all paths that nothing else has, behind the limiter. The page decides itself
// which requests it answers. The function over is called when the endpoint ends, after the calls in progress, to end the
// streams of the page. It is called before Serve.
func (e *Endpoint) HandlePage(page http.Handler, over func()) {
	if e.options.Limit != nil {
		page = e.options.Limit(page)
	}
	if e.options.Around != nil {
		page = e.options.Around("page", page)
	}
	e.page = page
	e.http.RegisterOnShutdown(over)
}

// Hosts returns the values of Host that proxies pass on: names, or names with a port.
func (e *Endpoint) Hosts() []string { return e.srv.HTTP.AllowedHosts }

// Guard returns the authentication of callers; nil: they need no credential.
func (e *Endpoint) Guard() *auth.Guard { return e.options.Guard }

// Shared reports whether the listener is on all addresses of this machine.
func (e *Endpoint) Shared() bool {
	tcp, ok := e.listener.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsUnspecified()
}

// Loopback reports whether only this machine reaches the listener.
func (e *Endpoint) Loopback() bool {
	tcp, ok := e.listener.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Server returns the server of a path below the endpoint, or that of the endpoint for an empty one, for a page that has
// checked its callers; nil: there is none. End ends its calls too.
func (e *Endpoint) Server(path string) *mcp.Server {
	if path == "" {
		return e.srv
	}
	if e.find == nil {
		return nil
	}
	srv := e.find(path)
	if srv != nil {
		e.served(srv, path)
	}
	return srv
}

// other answers a request to a path that nothing else has.
func (e *Endpoint) other(w http.ResponseWriter, r *http.Request) {
	if e.page == nil {
		elsewhere(w, r)
		return
	}
	e.page.ServeHTTP(w, r)
}

// below answers a request to a path below the endpoint.
func (e *Endpoint) below(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, Path+"/")
	var srv *mcp.Server
	if e.find != nil {
		srv = e.find(path)
	}
	if srv == nil {
		web.BoundBody(w, r)
		if e.find == nil {
			elsewhere(w, r)
			return
		}
		guard, h := e.options.Guard, http.Handler(http.HandlerFunc(elsewhere))
		if guard != nil && plain(path) && r.Header.Get("Authorization") == "" {
			// The answer to a stranger is that of a server that is there.
			if guard = e.guardOf(path); r.Method == http.MethodOptions {
				h = e.srv
			}
		}
		e.protected("http", h, guard).ServeHTTP(w, r)
		return
	}
	e.served(srv, path).ServeHTTP(w, r)
}

// served returns the protected handler of a server below the endpoint.
func (e *Endpoint) served(srv *mcp.Server, path string) http.Handler {
	h, ok := e.further.Load(srv)
	if !ok {
		h, _ = e.further.LoadOrStore(srv, e.protected("http", srv, e.guardOf(path)))
	}
	return h.(http.Handler)
}

// guardOf returns the guard of a path below the endpoint.
func (e *Endpoint) guardOf(path string) *auth.Guard {
	g := e.options.Guard
	if g == nil || g.Resource == nil {
		return g
	}
	resource := *g.Resource
	resource.Resource = strings.TrimSuffix(resource.Resource, "/") + "/" + path
	return &auth.Guard{Verifiers: g.Verifiers, Resource: &resource, Scopes: g.Scopes, Implied: g.Implied, Anonymous: g.Anonymous, Realm: g.Realm, Logger: g.Logger, Refused: g.Refused}
}

// handle serves a path behind the limiter and the guard.
func (e *Endpoint) handle(transport, path string, h http.Handler) {
	e.Mux.Handle(path, e.protected(transport, h, e.options.Guard))
}

// limited is the mux of an endpoint, with the limiter and a check of Host in front of each handler.
type limited struct{ e *Endpoint }

func (l limited) Handle(pattern string, next http.Handler) {
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (&web.Guard{AllowedHosts: l.e.srv.HTTP.AllowedHosts}).AdmitHost(w, r) {
			next.ServeHTTP(w, r)
		}
	})
	if l.e.options.Limit != nil {
		h = l.e.options.Limit(h)
	}
	l.e.Mux.Handle(pattern, h)
}

// protected puts the limiter, a guard, and what Options put around them in front of a handler.
func (e *Endpoint) protected(transport string, h http.Handler, guard *auth.Guard) http.Handler {
	if e.options.Behind != nil {
		h = e.options.Behind(h)
	}
	if guard != nil {
		h = guard.Protect(h)
	}
	if e.options.Limit != nil {
		h = e.options.Limit(h)
	}
	if e.options.Around != nil {
		h = e.options.Around(transport, h)
	}
	return h
}

// Serve serves in the background; the channel receives the error that ended it. It is called when all that listens is open: sockets
// of systemd that nothing has taken are closed, with a note.
func (e *Endpoint) Serve() <-chan error {
	for _, line := range unused() {
		if e.options.Note != nil {
			e.options.Note("warning: %s", line)
		}
	}
	if e.beside != nil { // without TLS
		served := make(chan error, 2)
		for _, l := range []net.Listener{e.listener, e.beside} {
			go func() { served <- e.http.Serve(l) }() // ends with the server
		}
		return served
	}
	return web.Serve(e.http, e.listener)
}

// Close takes no more connections, and closes those that have no request at that moment. A proxy then tries another node, which it does not when End
// refuses a call. Connections that were just accepted have a moment to send their request.
func (e *Endpoint) Close() {
	e.close.Do(func() {
		_ = e.listener.Close() // Serve closes it again
		if e.beside != nil {
			_ = e.beside.Close()
		}
		e.http.SetKeepAlivesEnabled(false)
		if e.fronted { // for the request that follows a call whose answer is a stream; its answer ends the connection
			e.http.SetKeepAlivesEnabled(true)
		}
		time.Sleep(acceptedTime)
	})
}

// acceptedTime is how long an accepted connection may take to send its request.
const acceptedTime = 200 * time.Millisecond

// End lets calls in progress finish for at most d, and then cancels them. It does not return
// earlier, even if ctx ends. If systemd keeps the socket, it calls Close first: a connection is served here, or waits for the next process.
func (e *Endpoint) End(ctx context.Context, d time.Duration) error {
	if e.kept {
		e.Close()
	}
	shutdown := func(ctx context.Context) error {
		var all sync.WaitGroup
		e.further.Range(func(srv, _ any) bool {
			all.Go(func() { _ = srv.(*mcp.Server).Shutdown(ctx) })
			return true
		})
		err := e.srv.Shutdown(ctx)
		all.Wait()
		if e.fronted {
			time.Sleep(acceptedTime) // as in Close
		}
		return err
	}
	if e.options.Login != nil {
		defer e.options.Login.Close() // another process may use its folder
	}
	if err := web.End(ctx, d, shutdown, e.http); err != nil {
		return fmt.Errorf("shut down within %v: %w", d, err)
	}
	return nil
}

// handleMetadata serves the metadata that clients need to log in.
func (e *Endpoint) handleMetadata(g *auth.Guard) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	metadata := g.Protect(http.HandlerFunc(elsewhere))
	e.Mux.Handle(wellKnown, metadata)
	e.Mux.HandleFunc(wellKnown+"/", func(w http.ResponseWriter, r *http.Request) {
		if path, below := strings.CutPrefix(r.URL.Path, wellKnown+Path+"/"); below && e.find != nil && (plain(path) || e.find(path) != nil) {
			e.guardOf(path).Protect(http.HandlerFunc(elsewhere)).ServeHTTP(w, r)
			return
		}
		metadata.ServeHTTP(w, r)
	})
	e.allowHost(g.Resource.Resource)
}

// allowHost allows the host of a URL of the endpoint: a proxy passes on the host name that clients use.
func (e *Endpoint) allowHost(at string) {
	if u, err := url.Parse(at); err == nil {
		tcp, ok := e.listener.Addr().(*net.TCPAddr)
		if ok && tcp.IP.IsLoopback() || len(e.srv.HTTP.AllowedHosts) > 0 {
			e.srv.HTTP.AllowedHosts = append(e.srv.HTTP.AllowedHosts, u.Host)
		}
	}
}

// plain reports whether a path below the endpoint is like v/NAME. The metadata of such a path is served
// whether or not there is a server: it is served without a credential, so it must not tell names.
func plain(path string) bool {
	kind, name, _ := strings.Cut(path, "/")
	fits := func(s string) bool {
		return s != "" && len(s) <= 100 && strings.Trim(s, ".") != "" && !strings.ContainsFunc(s, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
		})
	}
	return fits(kind) && fits(name)
}

func elsewhere(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "the MCP endpoint is at "+Path, http.StatusNotFound)
}

// boundBodies bounds the bodies of requests to all paths except the endpoint and those below it, which do
// that themselves, and those that except, which may be nil, reports.
func boundBodies(h http.Handler, except func(r *http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path && !strings.HasPrefix(r.URL.Path, Path+"/") && (except == nil || !except(r)) {
			web.BoundBody(w, r)
		}
		h.ServeHTTP(w, r)
	})
}

// logRefused logs connections that were closed, at most every 10 seconds.
func logRefused(log *slog.Logger) func(netip.Addr) {
	last, more := time.Time{}, 0
	return func(from netip.Addr) { // called only by the goroutine that accepts
		if more++; time.Since(last) >= 10*time.Second {
			log.Warn("connections closed, as there are too many", "client", from.String(), "count", more)
			last, more = time.Now(), 0
		}
	}
}
