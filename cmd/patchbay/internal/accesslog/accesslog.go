// Package accesslog writes a JSON line for each request to a server.
//
//	{"time":"2026-07-28T10:00:00.000Z","transport":"http","address":"192.0.2.7","caller":"apikey#alice","id":"7","trace":"4bf92f3577b34da6a3ce929d0e0e4736","status":200,"method":"tools/call","tool":"echo","ms":1.25,"outcome":"ok"}
//
// Begin with [Open] or [New]. [Log.Middleware] goes in front of all other middleware of a server but
// that of telemetry, whose trace ids it writes, and [Log.Handler] around its HTTP handlers, and
// [Log.Caller] behind their authentication.
//
// # Guarantees
//
//   - Each request of MCP that reaches the middleware has one line, so all but pings. So has each HTTP
//     request that is refused before, by authentication for instance. Event streams have a line at
//     their end.
//   - Arguments, results, credentials and the texts of errors are never written, but for the reason why a
//     credential is refused.
//   - Characters that a terminal obeys are written as \u escapes.
//   - Each line of a file is whole, also after the disk was full.
//   - Requests do not wait for the file. If it cannot be written, lines are lost: the first fault is
//     reported, and a line with "lost" counts them when the file can be written again.
package accesslog

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
)

// Log is an access log. Its methods may be used by several goroutines.
type Log struct {
	// Transport of the requests that come without HTTP. It is set before the log is used.
	Transport string

	// Trace returns the trace id of a request; empty: it has none. Nil: lines have none. It is set
	// before the log is used.
	Trace func(ctx context.Context) string

	lines *lines
}

// line is a line of the log.
type line struct {
	Time      string             `json:"time"` // when the request ended
	Transport string             `json:"transport,omitempty"`
	Address   string             `json:"address,omitempty"` // that the HTTP connection comes from
	Caller    string             `json:"caller,omitempty"`  // the authenticated principal
	ID        string             `json:"id,omitempty"`      // of the JSON-RPC request; a string is in quotes
	Trace     string             `json:"trace,omitempty"`
	HTTP      string             `json:"http,omitempty"`   // method and path of a request that is not one of MCP
	Status    int                `json:"status,omitempty"` // of the HTTP answer; zero: there is none
	Method    string             `json:"method,omitempty"`
	Tool      string             `json:"tool,omitempty"`
	Prompt    string             `json:"prompt,omitempty"`
	URI       string             `json:"uri,omitempty"` // of the resource, without its user, the values of its query and its fragment
	MS        float64            `json:"ms"`
	Asked     float64            `json:"asked,omitempty"` // of these milliseconds: the caller had to answer a question
	Outcome   middleware.Outcome `json:"outcome"`
	Code      int                `json:"code,omitempty"`   // of the JSON-RPC error
	Fault     string             `json:"fault,omitempty"`  // "audit": the call was not made, because its line of the audit log could not be written
	Reason    string             `json:"reason,omitempty"` // why the credential is refused
}

// exchange is an HTTP request in the contexts of the requests of MCP that it carries.
type exchange struct {
	transport, address string
	caller, reason     atomic.Pointer[string]

	mu     sync.Mutex
	logged bool   // a request of MCP has a line; guarded by mu
	open   bool   // the status of the answer is to come, and lines wait for it; guarded by mu
	status int    // of the answer; zero: none; guarded by mu
	lines  []line // that wait; guarded by mu
}

type exchangeKey struct{}

func newExchange(transport string, r *http.Request) *exchange {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	return &exchange{transport: transport, address: address}
}

// in returns a request whose context has the exchange.
func (e *exchange) in(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e))
}

// Note returns a handler that notes what [Address] returns, for programs without a log. The handlers
// of a log do so too.
func Note(transport string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, newExchange(transport, r).in(r))
	})
}

// Address returns the address that the HTTP connection of a request comes from; empty: it has come
// without HTTP.
func Address(ctx context.Context) string {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return e.address
	}
	return ""
}

// Via returns "page" for the requests of a person at the page of the program; empty: they are those of a host.
func Via(ctx context.Context) string {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok && e.transport == pageTransport {
		return pageTransport
	}
	return ""
}

// pageTransport is the transport of requests of the page.
const pageTransport = "page"

// Middleware returns a middleware that writes a line for each request. It goes in front of all that
// deny requests. A line of a request that is answered over HTTP is written when the answer begins.
func (l *Log) Middleware() mcp.Middleware {
	return middleware.Observe(func(ctx context.Context, r middleware.Record) {
		out := line{Time: now(), Caller: r.Caller, ID: r.ID, Method: text.Short(r.Method), MS: milliseconds(r.Duration), Asked: milliseconds(wait.From(ctx).Asked()), Outcome: r.Outcome, Code: r.Code}
		e, _ := ctx.Value(exchangeKey{}).(*exchange)
		if e != nil {
			out.Transport, out.Address = e.transport, e.address
		} else {
			out.Transport = l.Transport
		}
		if l.Trace != nil {
			out.Trace = l.Trace(ctx)
		}
		if r.Outcome == middleware.Failed && outcome.Of(ctx, nil, r.Err).Cause == outcome.Unlogged {
			out.Fault = "audit"
		}
		switch r.Method {
		case "tools/call":
			out.Tool = text.Short(r.Name)
		case "prompts/get":
			out.Prompt = text.Short(r.Name)
		case "resources/read":
			out.URI = text.Short(secrets.ShownURI(r.Name))
		}
		if e == nil || !e.keep(&out) {
			l.write(out)
		}
	})
}

// keep notes a line of a request of MCP. It reports whether the line waits for the status of the
// answer; otherwise the line has it.
func (e *exchange) keep(out *line) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.logged = true
	if e.open {
		e.lines = append(e.lines, *out)
	}
	out.Status = e.status
	return e.open
}

// answered notes the status of the answer, and returns the lines that have waited for it.
func (e *exchange) answered(status int) []line {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.open {
		return nil
	}
	e.open, e.status = false, status
	lines := e.lines
	e.lines = nil
	for i := range lines {
		lines[i].Status = status
	}
	return lines
}

// Caller returns a handler that notes the authenticated caller for the line of [Log.Handler]. It goes
// behind the authentication.
func (l *Log) Caller(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
			id := principal.From(r.Context())
			e.caller.Store(&id)
		}
		next.ServeHTTP(w, r)
	})
}

// Refused notes why a credential is refused, for the line of [Log.Handler].
func Refused(r *http.Request, err error) {
	if e, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		reason := text.Short(err.Error())
		e.reason.Store(&reason)
	}
}

// Handler returns a handler that writes a line for each HTTP request that is refused before it is one
// of MCP, and for each event stream. The transport is "http", "sse" or "page".
func (l *Log) Handler(transport string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, start := newExchange(transport, r), time.Now()
		e.open = r.Method == http.MethodPost // others do not answer requests of MCP: a WebSocket has many
		answer := &answer{ResponseWriter: w, log: l, of: e}
		defer func() {
			if answer.status == 0 && r.Context().Err() == nil {
				answer.status = http.StatusOK
			}
			l.write(e.answered(answer.status)...)
			// A POST that was accepted carried a notification or an answer.
			if e.hasLine() || r.Method == http.MethodPost && answer.status < http.StatusBadRequest {
				return
			}
			out := line{Time: now(), Transport: transport, Address: e.address, HTTP: text.Clip(r.Method, maxMethod) + " " + text.Short(r.URL.Path), Status: answer.status, MS: milliseconds(time.Since(start)), Outcome: middleware.OK}
			if id := e.caller.Load(); id != nil {
				out.Caller = *id
			}
			if reason := e.reason.Load(); reason != nil {
				out.Reason = *reason
			}
			switch {
			case answer.status == http.StatusUnauthorized || answer.status == http.StatusForbidden || answer.status == http.StatusTooManyRequests:
				out.Outcome = middleware.Denied
			case answer.status >= http.StatusBadRequest:
				out.Outcome = middleware.Failed
			}
			l.write(out)
		}()
		next.ServeHTTP(answer, e.in(r))
	})
}

// hasLine reports whether a request of MCP has a line.
func (e *exchange) hasLine() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.logged
}

// answer notes the status of an answer.
type answer struct {
	http.ResponseWriter
	log    *Log
	of     *exchange
	status int // zero: none yet
}

func (a *answer) WriteHeader(status int) {
	if a.status < http.StatusOK { // 1xx comes before the others
		a.status = status
	}
	if status >= http.StatusOK {
		a.log.write(a.of.answered(a.status)...)
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status < http.StatusOK {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap lets event streams and deadlines through.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// maxMethod bounds the method of HTTP in a line, which a client chooses.
const maxMethod = 20

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (l *Log) write(list ...line) {
	for _, out := range list {
		if raw, err := json.Marshal(out); err == nil { // no member of it can fail
			l.lines.add(append(text.Escape(nil, string(raw)), '\n'))
		}
	}
}

// Close writes the remaining lines, for at most a second, and closes the file. It is called once.
// Requests that end later have no line.
func (l *Log) Close() { l.lines.close() }
