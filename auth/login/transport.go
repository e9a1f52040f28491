package login

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/nonblock"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// A Transport carries the requests of one client to one server, and logs in when the server asks
// for it. Server is required, and so are RedirectURL and Visit if there is no Grant; no field may
// change after the first request. Requests to other origins, and those that have an Authorization
// header already, pass unchanged.
//
// A request is sent again after a login if its body can be read again (GetBody of http.Request,
// which http.NewRequest sets for bytes in memory); else the server's refusal is the answer. The
// refusal is the answer too if a login cannot help: the server refuses a token less than a minute
// old that it never accepted, or it asks for scopes that were requested already. A login that
// fails is the error of the request, with a [*RefusedError] in it if the user or the authorization
// server refused.
//
// A Transport may be used by several goroutines at once. While it gets a token it runs a goroutine
// of its own, which ends at most a minute after the last request has stopped waiting for it.
//
// Specification: 2025-11-25 and 2026-07-28, basic/authorization.
type Transport struct {
	// Server is the URL of the MCP server: https, or http on loopback.
	Server string

	// RedirectURL is the URL to which authorization servers send the browser back: http on
	// loopback, or https. See [Loopback.RedirectURL].
	RedirectURL string

	// Visit brings the user to a page, and returns the URL that the page sent the browser back to,
	// which begins with RedirectURL. The page's URL is https, or http on loopback; it must not be
	// given to a shell. The context ends when no request is waiting for the login any more, or after 10
	// minutes. See [Loopback.Visit].
	//
	// Nil, with a Store: there is no user. Where one would have to log in, the server's refusal is
	// the answer. RedirectURL is not needed then.
	Visit func(ctx context.Context, page string) (back *url.URL, err error)

	// Grant is the way to get tokens. Nil: the user's browser, by RedirectURL and Visit.
	Grant Grant

	// DPoP binds all tokens to a key of this Transport (RFC 9449): a stolen token is useless
	// without the key. A server that demands this gets it in any case.
	DPoP bool

	// ClientName is the name of the client in registrations, which users see. Empty: "patchbay".
	ClientName string

	// DocumentURL is the client id for authorization servers that take Client ID Metadata
	// Documents: the https URL of this client's document, which must list RedirectURL. Empty:
	// there is none.
	DocumentURL string

	// Registered returns the credentials that were registered with an issuer before, and nil if
	// there are none. It is asked before DocumentURL is used or a client registered. The server
	// names the issuer: return a secret only for the issuer that it belongs to.
	Registered func(ctx context.Context, server, issuer string) (*Credentials, error)

	// Store keeps logins for later processes, and shares them with others: one process refreshes
	// for all. If nil, they are kept in memory. See package auth/vault.
	Store Store

	// TLS secures connections to Server, if that needs other authorities than those of the system,
	// or a client certificate. Authorization servers are checked with the same authorities, and
	// get no certificate. Nil: as usual. With a Base it is not used.
	TLS *tls.Config

	// Base sends all requests, also those to authorization servers, and decides which addresses
	// may be connected to. Nil: a transport like http.DefaultTransport for Server, and for
	// authorization servers one that checks addresses.
	Base http.RoundTripper

	// Wrap, if not nil, is put around what sends requests to Server, and around what sends those to
	// authorization servers: it sees all that goes over the wire, secrets included. Addresses are
	// checked below it.
	Wrap func(http.RoundTripper) http.RoundTripper

	// OnLogin is called for each login for the server that is done, refused or ended, for an audit log.
	// A request that a refresh helps is none of them. It must not block.
	OnLogin func(Event)

	once    sync.Once
	restore sync.Once // of the token from Store

	exchanging sync.RWMutex // read-locked while a refresh token is spent and its successor stored

	fault  error // of the fields
	server *url.URL
	own    http.RoundTripper // for requests to server
	fetch  *finder
	prover prover

	mu         sync.Mutex
	token      *token               // guarded by mu
	flight     *flight              // to a new token; nil: none; guarded by mu
	identities map[string]*identity // registered by us, by issuer; guarded by mu
}

// Bounds of one request.
const (
	maxSends   = 6        // of the request
	maxStepUps = 2        // logins for more scopes
	maxRefusal = 64 << 10 // bytes that are kept of an answer, for when it stands
)

func (t *Transport) prepare() {
	u, err := url.Parse(t.Server)
	if err == nil {
		u, err = oauth.CheckURL(t.Server, u)
	}
	if err != nil {
		t.fault = fmt.Errorf("login: Server: %w", err)
		return
	}
	if t.DocumentURL != "" {
		t.fault = checkDocumentURL(t.DocumentURL)
	}
	if t.Grant != nil && t.fault == nil {
		t.fault = t.Grant.check()
	}
	if t.fault != nil {
		t.fault = fmt.Errorf("login: %w", t.fault)
		return
	}
	t.server, t.own = u, t.Base
	switch {
	case t.Base != nil:
	case t.TLS != nil:
		t.own = newOwnBase(t.TLS)
	default:
		t.own = ownBase()
	}
	others := t.fetchBase(u, t.own)
	if t.Wrap != nil {
		if others == nil {
			others = oauth.Guarded(u, nil)
		}
		t.own, others = t.Wrap(t.own), t.Wrap(others)
	}
	t.fetch = &finder{oauth.NewFetcher(u, others), t.Grant == nil}
	if !t.fetch.pages {
		return
	}
	r, err := url.Parse(t.RedirectURL)
	switch {
	case t.Visit == nil && t.Store != nil:
	case err != nil || r.Host == "" || r.Fragment != "" || r.RawQuery != "" || r.Scheme != "https" && (r.Scheme != "http" || !oauth.IsLoopback(r.Hostname())):
		t.fault = fmt.Errorf("login: RedirectURL %q is neither https nor http on loopback, or has a query", text.Short(t.RedirectURL))
	case t.Visit == nil:
		t.fault = errors.New("login: Visit or Grant must be set")
	}
}

// fetchBase returns the RoundTripper for requests to authorization servers, on behalf of a server that
// own sends requests to; nil: the default of the Fetcher.
func (t *Transport) fetchBase(server *url.URL, own http.RoundTripper) http.RoundTripper {
	if t.Base != nil || t.TLS == nil {
		return t.Base
	}
	others := oauth.Guarded(server, t.TLS.RootCAs)
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if oauth.Origin(req.URL) == oauth.Origin(t.server) {
			return own.RoundTrip(req) // which may ask for the client certificate
		}
		return others.RoundTrip(req)
	})
}

// ownBase sends requests to servers: it is like http.DefaultTransport, with more connections to
// one server, which a gateway needs.
var ownBase = sync.OnceValue(func() http.RoundTripper { return newOwnBase(nil) })

func newOwnBase(c *tls.Config) http.RoundTripper {
	own := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout: 90 * time.Second, ExpectContinueTimeout: time.Second,
	}
	std, ok := http.DefaultTransport.(*http.Transport)
	if ok {
		own = std.Clone()
	} else if c == nil {
		return http.DefaultTransport
	}
	if c != nil {
		own.TLSClientConfig = c
	}
	own.MaxIdleConns, own.MaxIdleConnsPerHost = 256, 128
	own.DialContext = nonblock.Dial(own.DialContext)
	return own
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.once.Do(t.prepare)
	switch {
	case t.fault != nil:
		closeBody(req)
		return nil, t.fault
	case oauth.Origin(req.URL) != oauth.Origin(t.server) || req.Header.Get("Authorization") != "":
		return t.own.RoundTrip(req)
	}
	res, err := t.roundTrip(req, t.own)
	if err != nil {
		closeBody(req)
	}
	return res, err
}

func (t *Transport) roundTrip(req *http.Request, base http.RoundTripper) (*http.Response, error) {
	ctx := req.Context()
	w := why{version: req.Header.Get("MCP-Protocol-Version")}
	if w.version == "" {
		w.version = oauth.Revision
	}
	stepUps, nonced := 0, false
	for sent := 1; ; sent++ {
		used := t.current()
		if used != nil && used.unsaved.Load() || used.refreshable() && used.aged() {
			w.challenge, w.quietly = challenge{}, true
			var err error
			if used, err = t.renew(ctx, used, w); err != nil {
				return nil, err
			}
		}
		try := req
		if sent > 1 || used != nil {
			try = req.Clone(ctx)
		}
		if sent > 1 && req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			try.Body = body
		}
		if used != nil {
			try.Header.Set("Authorization", used.from.scheme()+" "+used.access)
			if used.from.bound {
				proof, err := t.prover.proof(try.Method, try.URL, used.access)
				if err != nil {
					return nil, err
				}
				try.Header.Set(schemeDPoP, proof)
			}
		}
		res, err := base.RoundTrip(try)
		if err != nil {
			return nil, err
		}
		fresh := used != nil && used.from.bound && t.prover.learn(req.URL, res.Header)
		w.challenge, w.quietly = challenge{}, false
		switch res.StatusCode {
		case http.StatusUnauthorized:
			w.challenge = readChallenge(res.Header)
			w.errorCode = "" // whatever it is, the token was refused
			if fresh && w.nonce && !nonced && again(req) {
				nonced = true
				discard(res)
				continue // the proof was refused, and not the token
			}
		case http.StatusForbidden:
			w.challenge = readChallenge(res.Header)
			fallthrough
		default:
			if used != nil {
				used.accepted.Store(true)
			}
			if w.errorCode != oauth.InsufficientScope || used == nil {
				return res, nil
			}
		}
		if t.final(used, w, stepUps) || sent == maxSends || !again(req) {
			return res, nil
		}
		if w.errorCode == oauth.InsufficientScope {
			stepUps++
		}
		refusal, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
		res.Body.Close()
		switch _, err := t.renew(ctx, used, w); {
		case errors.Is(err, ErrNeeded):
			res.Body = io.NopCloser(bytes.NewReader(refusal))
			res.ContentLength = int64(len(refusal))
			return res, nil
		case err != nil:
			return nil, err
		}
	}
}

// again reports whether a request can be sent once more.
func again(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

func discard(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
	res.Body.Close()
}

// final reports whether a refusal stands because no login would change it.
func (t *Transport) final(used *token, w why, stepUps int) bool {
	if t.current() != used {
		return false // there is a newer token to try
	}
	if w.errorCode == oauth.InsufficientScope {
		return stepUps == maxStepUps || len(oauth.Union(used.asked, w.scope)) == len(used.asked)
	}
	return used != nil && used.login && used.unwanted()
}

func (t *Transport) current() *token {
	if t.Store != nil {
		t.restore.Do(t.load)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.token
}

// A flight gets one new token, by refresh or login. It owns a goroutine, which ends when no
// request waits for it.
type flight struct {
	done   chan struct{}
	cancel context.CancelCauseFunc

	waiting   int   // guarded by Transport.mu
	abandoned bool  // all who waited left; guarded by Transport.mu
	err       error // after done
}

var errAbandoned = errors.New("no request is waiting for the login any more")

// renew returns a newer token than used. Calls that come while one is under way wait for the same
// token.
func (t *Transport) renew(ctx context.Context, used *token, w why) (*token, error) {
	for {
		t.mu.Lock()
		if t.token != used {
			defer t.mu.Unlock()
			return t.token, nil
		}
		f := t.flight
		if f == nil {
			f = t.start(ctx, used, w)
		}
		f.waiting++
		t.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
		}
		t.mu.Lock()
		f.waiting--
		if f.waiting == 0 && ctx.Err() != nil {
			f.abandoned = true
			f.cancel(errAbandoned)
		}
		again := f.abandoned // by others: then its end says nothing about this request
		t.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case again:
			continue
		case f.err != nil:
			return nil, f.err
		}
		return t.current(), nil
	}
}

// start starts a flight, with t.mu held.
func (t *Transport) start(ctx context.Context, used *token, w why) *flight {
	// All requests that wait share it: keep the values of the first, and drop its deadline.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &flight{done: make(chan struct{}), cancel: cancel}
	t.flight = f
	go func() {
		defer cancel(nil)
		ctx, stop := context.WithTimeoutCause(ctx, loginTimeout, fmt.Errorf("no login within %v", loginTimeout))
		defer stop()
		k, err := t.obtain(ctx, used, w)
		t.mu.Lock()
		defer t.mu.Unlock()
		if k != nil { // even with an error: it could not be stored, and is the valid one
			t.token = k
		}
		t.flight, f.err = nil, err
		close(f.done)
	}()
	return f
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}
