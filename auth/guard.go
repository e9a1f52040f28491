package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// A Guard passes requests to an HTTP handler if one of its verifiers accepts their credential, and
// puts the caller into their context, where [From] finds it. With a Resource it is a resource
// server of OAuth 2.1.
//
//	guard := &auth.Guard{
//		Verifiers: []auth.Verifier{&auth.JWT{Issuer: "https://login.example.com"}},
//		Resource:  &auth.ResourceMetadata{Resource: "https://mcp.example.com/mcp"},
//	}
//	mux.Handle("/mcp", guard.Protect(srv))
//
// Two kinds of requests are answered without a credential: those for the metadata of the Resource,
// and the preflights of browsers, which the handler answers. The challenge of a 401 names the URL
// of the server itself with the query oauth-protected-resource, where Protect serves the metadata
// wherever it is mounted. Clients take that URL since 2025-06-18. A client that looks at the
// well-known paths before it has seen a challenge needs Protect there too: around the whole mux,
// or mounted at /.well-known/oauth-protected-resource and everything below.
//
// The answer is 401 to a request without a credential, or with one that is not valid; 403 if the
// credential is valid, but lacks a scope; 400 if it is malformed, or is in the query; 503 if it
// cannot be checked at the moment. The answer does not say what is wrong with a credential, except
// that a valid token is for another resource than this one; the Logger gets that.
//
// A stream of events, and a connection that was taken over, end when the credential of their
// request expires. Once a second, the Verifiers see the headers of its request again: the stream
// ends too when they refuse the credential, or name another principal, other scopes or other
// roles. [ErrUnavailable] ends nothing. A call that was admitted runs to its end, and is answered.
// No field may change after the first request.
//
// Specification: 2025-11-25 and 2026-07-28, basic/authorization; RFC 6750; RFC 9728.
type Guard struct {
	// Verifiers are asked in order; the first that knows the credential decides.
	Verifiers []Verifier

	// Resource is the metadata of the server. If nil, there is none, and each verifier of tokens
	// needs its own Audience.
	Resource *ResourceMetadata

	// Scopes are the scopes that every caller must have. Verifiers of credentials without scopes,
	// such as client certificates, have to grant them.
	Scopes []string

	// Implied are the scopes that a scope includes: {"admin": {"read", "write"}}.
	Implied map[string][]string

	// Anonymous admits requests without a credential, with no caller. A credential that is not
	// valid is refused all the same.
	Anonymous bool

	// Realm names the server in the password dialog of a browser. Empty: "MCP".
	Realm string

	// Logger gets the reasons of refusals: a second has at most one line about each, and 8 lines. The
	// attribute more counts the refusals without a line since the last one. If nil, only faults of the configuration are
	// logged, because of which all requests are refused, to [slog.Default].
	Logger *slog.Logger

	// Refused is called for each request that is not admitted, before it is answered, with the error
	// code of the answer: unauthorized (there is no credential), invalid_token, invalid_request,
	// insufficient_scope, temporarily_unavailable or server_error. The error says why, without the
	// credential; the client does not see it. It may be nil.
	Refused func(r *http.Request, code string, err error)

	once   sync.Once
	fault  error     // of the fields
	at     *resource // nil: there is no Resource
	basic  bool      // passwords are taken
	tokens bool      // what a Bearer challenge asks for is taken

	mu     sync.Mutex
	logged map[string]time.Time // when reasons were logged, within the last logEvery; guarded by mu
	quiet  int                  // refusals without a line since the last line; guarded by mu
}

// Methods that a Guard looks for in the verifiers of this package.
type (
	// tokenVerifier checks tokens that are made for a resource.
	tokenVerifier interface {
		verifyFor(r *http.Request, resource string) (*Principal, error)
		issuer() string
	}

	// checker finds faults in its fields before the first request.
	checker interface{ check(resource string) error }
)

// Check returns what is wrong with the fields, also those of the verifiers. A Guard with such an
// error answers all requests with 500.
func (g *Guard) Check() error {
	g.once.Do(g.prepare)
	return g.fault
}

// Faults returns what the method Fault of each verifier that has one returns, as [APIKeys.Fault] does,
// without nil: the files of credentials that are not, or not all, in use.
func (g *Guard) Faults() (faults []error) {
	for _, v := range g.Verifiers {
		if f, ok := v.(interface{ Fault() error }); ok {
			if err := f.Fault(); err != nil {
				faults = append(faults, err)
			}
		}
	}
	return faults
}

func (g *Guard) prepare() {
	var issuers []string
	for _, v := range g.Verifiers {
		switch v.(type) {
		case *Basic:
			g.basic = true
		case *MTLS:
		default:
			g.tokens = true
			if t, ok := v.(tokenVerifier); ok && t.issuer() != "" && !slices.Contains(issuers, t.issuer()) {
				issuers = append(issuers, t.issuer())
			}
		}
	}
	if len(g.Verifiers) == 0 {
		g.fault = errors.New("auth: Guard: there are no Verifiers, so no caller could be admitted")
		return
	}
	uri := ""
	if g.Resource != nil {
		var err error
		if g.at, err = g.Resource.resolve(issuers); err != nil {
			g.fault = fmt.Errorf("auth: Guard: %w", err)
			return
		}
		uri = g.at.uri
	}
	for _, s := range g.Scopes {
		if !oauth.IsScope(s) || s == oauth.OfflineAccess {
			g.fault = fmt.Errorf("auth: Guard: %q is not a scope of a server", text.Short(s))
			return
		}
	}
	for i, v := range g.Verifiers {
		if v == nil {
			g.fault = fmt.Errorf("auth: Guard: Verifiers[%d] is nil", i)
			return
		}
		if c, ok := v.(checker); ok {
			if err := c.check(uri); err != nil {
				g.fault = fmt.Errorf("auth: Guard: %w", err)
				return
			}
		}
	}
}

func (g *Guard) realm() string {
	if g.Realm == "" {
		return "MCP"
	}
	return g.Realm
}

// Protect returns a handler that passes the requests that the Guard admits to next.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.Check(); err != nil {
			g.logTo(cmp.Or(g.Logger, slog.Default()), "requests are refused because of the configuration", r, err)
			g.answer(w, r, http.StatusInternalServerError, "server_error", err)
			return
		}
		if g.at.serves(r) {
			g.at.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != "" {
			next.ServeHTTP(w, r) // a browser's preflight has no credentials (Fetch, 4.8)
			return
		}
		p, err := g.identify(r)
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		var ctx context.Context = &callerContext{r.Context(), caller{p, g, r.RequestURI}}
		if p != nil && lasting(r) {
			var stop context.CancelFunc
			ctx, stop = g.whileValid(ctx, r, p)
			defer stop()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

var (
	errExpired = errors.New("the credential has expired")
	errChanged = errors.New("the principal, scopes or roles of the credential have changed")
)

// whileValid returns a context that ends when the credential of an open request expires, or when
// the verifiers, which are asked every checkEvery, do not accept it any more as that of the same
// principal. It ends with ctx too, and by stop, which must be called.
func (g *Guard) whileValid(ctx context.Context, r *http.Request, p *Principal) (_ context.Context, stop context.CancelFunc) {
	end := func() {}
	if !p.Expires.IsZero() {
		ctx, end = context.WithDeadlineCause(ctx, p.Expires, errExpired)
	}
	ctx, revoke := context.WithCancelCause(ctx)
	again := r.Clone(ctx) // the handler has the headers and the body of r
	again.Body = http.NoBody
	var timer *time.Timer
	started := make(chan struct{}) // closed when timer is set
	timer = time.AfterFunc(checkEvery, func() {
		<-started
		if ctx.Err() != nil {
			return
		}
		now, err := g.identify(again)
		if err == nil && !now.same(p) {
			err = errChanged
		}
		switch {
		case ctx.Err() != nil:
		case err == nil, errors.Is(err, ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			timer.Reset(checkEvery)
		default:
			g.log("stream ended with its credential", again, err)
			revoke(err)
		}
	})
	close(started)
	return ctx, func() {
		timer.Stop()
		revoke(context.Canceled)
		end()
	}
}

// lasting reports whether a request may stay open for long: a stream of events, a WebSocket, or a
// subscription of 2026-07-28, whose header is compared with its body later.
func lasting(r *http.Request) bool {
	return r.Method == http.MethodGet || strings.EqualFold(r.Header.Get("Mcp-Method"), "subscriptions/listen")
}

// identify returns the caller of a request; nil: it has no credential and needs none.
func (g *Guard) identify(r *http.Request) (*Principal, error) {
	if strings.Contains(r.URL.RawQuery, "access_token=") && r.URL.Query().Has("access_token") {
		return nil, fmt.Errorf("%w: a token in the query, where logs would keep it", errMalformed)
	}
	if _, err := credentialOf(r); err != nil {
		return nil, err
	}
	var reasons []string
	for _, v := range g.Verifiers {
		var p *Principal
		var err error
		if t, ok := v.(tokenVerifier); ok && g.at != nil {
			p, err = t.verifyFor(r, g.at.uri)
		} else {
			p, err = v.Verify(r)
		}
		switch {
		case err == nil && (p == nil || p.ID == ""):
			return nil, fmt.Errorf("%T returned a principal without an ID", v)
		case err == nil && p.expired(time.Now()):
			return nil, fmt.Errorf("the credential of %q has expired", text.Short(p.ID))
		case err == nil:
			return g.admit(p)
		case !errors.Is(err, ErrNoCredential):
			return nil, err
		case err != ErrNoCredential:
			reasons = append(reasons, err.Error())
		}
	}
	switch {
	case reasons != nil: // there is a credential, in whatever header
		return nil, errors.New(strings.Join(reasons, "; "))
	case r.Header["Authorization"] != nil:
		return nil, errUnknown
	case g.Anonymous:
		return nil, nil
	}
	return nil, ErrNoCredential
}

var (
	errUnknown = errors.New("no verifier accepts this kind of credential")
	errMissing = errors.New("the request has no credential")
)

// admit adds the implied scopes to those of a principal, and checks the scopes that every caller
// must have.
func (g *Guard) admit(p *Principal) (*Principal, error) {
	if g.Implied != nil {
		if all := g.imply(p.Scopes); len(all) > len(p.Scopes) {
			more := *p
			more.Scopes = all
			p = &more
		}
	}
	for _, s := range g.Scopes {
		if !p.HasScope(s) {
			return nil, &lacking{p, &InsufficientScopeError{Scopes: g.Scopes}}
		}
	}
	return p, nil
}

// imply returns scopes with those that they imply, also indirectly.
func (g *Guard) imply(scopes []string) []string {
	all := slices.Clone(scopes)
	for i := 0; i < len(all); i++ {
		for _, s := range g.Implied[all[i]] {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// lacking says that a known caller lacks a scope that every caller must have.
type lacking struct {
	who *Principal
	*InsufficientScopeError
}

func (e *lacking) Unwrap() error { return e.InsufficientScopeError }

// refuse answers a request that is not admitted.
//
// Specification: OAuth 2.1, 5.3; 2026-07-28, basic/authorization, Error Handling.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	// The body of a refused request is not read for long.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusalTime))
	h := w.Header()
	// Clients in browsers need to see where to log in. A page of another origin learns no more
	// than that there is a server.
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "www-authenticate")
	h.Set("Cache-Control", "no-store")
	var no *lacking
	switch {
	case err == ErrNoCredential:
		g.challenge(h, r.RequestURI, "", g.Scopes)
		g.answer(w, r, http.StatusUnauthorized, "unauthorized", errMissing)
		return
	case errors.As(err, &no):
		err = fmt.Errorf("%q: %w", text.Short(no.who.ID), err)
		g.log("caller refused", r, err)
		g.challenge(h, r.RequestURI, oauth.InsufficientScope, no.Scopes)
		g.answer(w, r, http.StatusForbidden, oauth.InsufficientScope, err)
		return
	case errors.Is(err, errMalformed):
		g.challenge(h, r.RequestURI, "invalid_request", g.Scopes)
		g.answer(w, r, http.StatusBadRequest, "invalid_request", err)
	case errors.Is(err, ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		h.Set("Retry-After", "5")
		g.answer(w, r, http.StatusServiceUnavailable, "temporarily_unavailable", err)
	default:
		g.challenge(h, r.RequestURI, "invalid_token", g.Scopes)
		g.answer(w, r, http.StatusUnauthorized, "invalid_token", err)
	}
	g.log("credential refused", r, err)
}

// refusalTime bounds the wait for the body of a refused request: net/http reads it before it
// answers.
const refusalTime = 5 * time.Second

// checkEvery is the time between two checks of the credential of an open stream. With the time in
// which a changed file is read, it is less than 2 seconds.
const checkEvery = time.Second

// answer refuses a request, and reports that.
func (g *Guard) answer(w http.ResponseWriter, r *http.Request, status int, code string, err error) {
	if g.Refused != nil {
		g.Refused(r, code, err)
	}
	description := ""
	if _, other := errors.AsType[otherAudience](err); other && g.at != nil {
		description = fmt.Sprintf("the token is for another resource than %s", g.at.uri)
	}
	answerRefusal(w, status, code, description)
}

// answerRefusal writes a body for people, and for programs that read no headers.
func answerRefusal(w http.ResponseWriter, status int, code, description string) {
	body := jsonx.AppendString([]byte(`{"error":`), code)
	if description != "" {
		body = jsonx.AppendString(append(body, `,"error_description":`...), description)
	}
	body = append(body, '}')
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

// Refused callers can neither fill the log nor hide the reasons of others.
const (
	logEvery   = time.Second // between two lines with the same reason
	maxReasons = 8           // lines within that time
)

func (g *Guard) log(what string, r *http.Request, err error) {
	if g.Logger != nil {
		g.logTo(g.Logger, what, r, err)
	}
}

func (g *Guard) logTo(logger *slog.Logger, what string, r *http.Request, err error) {
	now, reason := time.Now(), what+": "+err.Error()
	g.mu.Lock()
	maps.DeleteFunc(g.logged, func(_ string, at time.Time) bool { return now.Sub(at) >= logEvery })
	if _, again := g.logged[reason]; again || len(g.logged) == maxReasons {
		g.quiet++
		g.mu.Unlock()
		return
	}
	if g.logged == nil {
		g.logged = map[string]time.Time{}
	}
	more := g.quiet
	g.logged[reason], g.quiet = now, 0
	g.mu.Unlock()
	logger.Warn(what, "client", r.RemoteAddr, "err", err, "more", more)
}
