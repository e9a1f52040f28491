package inspector

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/limit"
)

// A person logs in at the authorization server of the Guard, by the authorization code flow with PKCE, as every client
// of the endpoint does (package login):
//
//   - The page posts to /ui/login, and gets the address of a page of the authorization server, and a cookie. The cookie
//     ties the login to the browser that began it: nobody can bring another person in as themselves by a link. Each login has
//     a cookie of its own, so several may run in a browser, and an answer with another state ends none of them.
//   - The authorization server sends the browser to /in, exactly, at the host of the endpoint. The page posts the query of
//     it to /ui/in. Package login checks state and iss, and trades the code with the verifier for a token.
//   - Then it shows the screen that the person wanted when the login began, if it is one of the page.
//   - The token is asked for the endpoint (its resource), and the Guard checks it as one that was pasted, now and with
//     each request: when it expires or is revoked, the session and its streams end.
//
// There is no ID token and so no nonce: the person is the one of the access token, which came from the token endpoint.
// Neither the token nor the code reaches a script beside the query of /in, whose code is worth nothing without the
// verifier.

const (
	signInTime = 10 * time.Minute // that a login may take
	maxSignIns = 64               // that run at once; the oldest of the network with the most gives way
	backPath   = "in"             // to which the authorization server sends the browser

	maxScreenPath = 4 << 10 // bytes of the path of a screen with its query
)

// signIns are the logins that have begun. Each owns a goroutine, which ends with it: by the browser, as one of too
// many, at the end of the page, or after signInTime. The zero value has none.
type signIns struct {
	mu     sync.Mutex
	list   []*signIn // the oldest first; guarded by mu
	closed bool      // guarded by mu
	wg     sync.WaitGroup
}

// signIn is one login.
type signIn struct {
	value  secret     // of the cookie
	from   netip.Addr // the network of the browser
	state  string     // that the answer has to have; empty: not known yet; guarded by signIns.mu
	screen string     // to show after it: a path of the page with its query
	cancel context.CancelFunc
	page   chan string   // capacity 1: of the authorization server
	back   chan *url.URL // capacity 1: where the browser came back to
	done   chan struct{} // closed when it has ended

	token string // set before done is closed
	err   error  // set before done is closed
}

// issuer is the authorization server at which people log in to this page; empty: they do not, or there are several.
func (p *Page) issuer() (name string) {
	if p.Client == "" || p.Guard == nil || p.Guard.Resource == nil {
		return ""
	}
	for _, v := range p.Guard.Verifiers {
		of := ""
		switch v := v.(type) {
		case *auth.JWT:
			if of = v.Issuer; v.Secret != "" {
				of = "" // no client can log in there
			}
		case *auth.Introspection:
			of = v.Issuer
		}
		if of != "" && name != "" && of != name {
			return ""
		}
		if of != "" {
			name = of
		}
	}
	return name
}

// screenPath returns the path of a screen of this page that a browser has said, with its query. It is / unless browsers
// read it as exactly that path here: not as another host, and with no part that leads elsewhere.
func screenPath(said string) string {
	odd := func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' || c == '#' }
	u, err := url.Parse(said)
	if err != nil || len(said) > maxScreenPath || strings.ContainsFunc(said, odd) || u.Scheme != "" || u.Host != "" || !isScreen(u.Path) || u.Path == "/"+backPath {
		return "/"
	}
	rest, rooted := strings.CutPrefix(u.EscapedPath(), "/")
	for part := range strings.SplitSeq(rest, "/") {
		if name, err := url.PathUnescape(part); !rooted || err != nil || part == "" && rest != "" || name == "." || name == ".." {
			return "/"
		}
	}
	return said
}

// begin starts a login, and answers with the page to which the person goes. The body has the screen that they want.
func (p *Page) begin(w http.ResponseWriter, r *http.Request) (any, error) {
	issuer := p.issuer()
	if issuer == "" {
		return nil, fail(http.StatusNotFound, "nobody logs in to this page at an authorization server")
	}
	var wants struct {
		Screen string `json:"screen"`
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2*maxScreenPath))
	if err == nil {
		err = strictly(raw, &wants, "screen")
	}
	if err != nil {
		return nil, fail(http.StatusBadRequest, "the body is not an object with the member screen")
	}
	site, err := p.site()
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(site.Host, r.Host) { // the browser would come back to another host, without the cookie
		return nil, fail(http.StatusConflict, "logins are at %s alone, where the authorization server sends the browser back to", site)
	}
	ctx, cancel := context.WithTimeout(context.Background(), signInTime)
	value, hash := newSecret()
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	s := &signIn{value: hash, from: limit.Network(remote.Addr()), screen: screenPath(wants.Screen), cancel: cancel, page: make(chan string, 1), back: make(chan *url.URL, 1), done: make(chan struct{})}
	t := &login.Transport{
		Server: p.Guard.Resource.Resource, RedirectURL: site.JoinPath(backPath).String(), Base: p.own(site), Visit: s.visit,
		Registered: func(_ context.Context, _, of string) (*login.Credentials, error) {
			if of != issuer {
				return nil, nil
			}
			return &login.Credentials{ID: p.Client}, nil
		},
	}
	if !p.signIns.add(s, func() {
		defer cancel()
		defer close(s.done)
		if s.err = t.Login(ctx); s.err == nil {
			var got *login.Record
			if got, s.err = t.Token(ctx); s.err == nil {
				s.token = string(got.Access)
			}
		}
	}) {
		cancel()
		return nil, fail(http.StatusServiceUnavailable, "%s", closing)
	}
	select {
	case page := <-s.page:
		p.signIns.sent(s, page)
		http.SetCookie(w, p.signInCookie(r, rand.Text()[:8], value))
		return map[string]string{"page": page}, nil
	case <-s.done:
		p.signIns.remove(s)
		return nil, s.refused()
	case <-r.Context().Done():
		p.signIns.remove(s)
		cancel()
		return nil, context.Cause(r.Context())
	}
}

// site is the address of the page for browsers that come back: the root of the host that clients know the endpoint by. It
// does not depend on a request, so the redirect URI is always the same.
func (p *Page) site() (*url.URL, error) {
	u, err := url.Parse(p.Guard.Resource.Resource)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}, nil
}

// signInCookie is the cookie of a login; an empty value removes it. The page posts it from its own document, so it can be
// a strict one, although the browser comes from elsewhere.
func (p *Page) signInCookie(r *http.Request, name, value string) *http.Cookie {
	c := &http.Cookie{Name: p.signInName() + name, Value: value, Path: "/ui/in", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil, MaxAge: int(signInTime.Seconds())}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// signInName is where the names of the cookies of logins begin.
func (p *Page) signInName() string { return p.cookieName() + "-login-" }

// own sends requests to the endpoint to the Guard itself: it answers what a client needs for a login, and passes nothing
// on. The operator has chosen the authorization server, so its address may be anywhere.
func (p *Page) own(site *url.URL) http.RoundTripper {
	guard := p.Guard.Protect(http.NotFoundHandler())
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != site.Host || r.URL.Scheme != site.Scheme {
			return http.DefaultTransport.RoundTrip(r)
		}
		seen := r.Clone(r.Context())
		seen.Host, seen.RequestURI, seen.Body = r.URL.Host, r.URL.RequestURI(), http.NoBody
		answer := &guardAnswer{unsent: unsent{header: http.Header{}}}
		guard.ServeHTTP(answer, seen)
		return &http.Response{StatusCode: answer.status, Header: answer.header, Body: io.NopCloser(&answer.body), ProtoMajor: 1, ProtoMinor: 1, Request: r}, nil
	})
}

// guardAnswer is the answer of a guard.
type guardAnswer struct {
	unsent
	body bytes.Buffer
}

func (g *guardAnswer) Write(b []byte) (int, error) {
	g.WriteHeader(http.StatusOK)
	return g.body.Write(b)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// visit gives the page of the authorization server to the person, and waits until their browser is back.
func (s *signIn) visit(ctx context.Context, page string) (*url.URL, error) {
	s.page <- page
	select {
	case at := <-s.back:
		return at, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// refused says why a login that has ended brought no token.
func (s *signIn) refused() error {
	var as *login.RefusedError
	if errors.As(s.err, &as) {
		return fail(http.StatusUnauthorized, "the authorization server refuses the login: %q (%q)", text.Clip(as.Code, 100), text.Clip(as.Description, 200))
	}
	return fail(http.StatusUnauthorized, "the login failed: %s", text.Clip(s.err.Error(), 500))
}

// finish takes a browser that is back, with the query of its address, and returns the token, and the screen to show.
func (p *Page) finish(w http.ResponseWriter, r *http.Request, query string) (token, screen string, err error) {
	site, err := p.site()
	if err != nil {
		return "", "", err
	}
	at := site.JoinPath(backPath)
	at.RawQuery = strings.TrimPrefix(query, "?")
	var s *signIn
	for _, c := range r.Cookies() {
		if name, is := strings.CutPrefix(c.Name, p.signInName()); is && s == nil {
			if s = p.signIns.take(sha256.Sum256([]byte(c.Value)), at.Query().Get("state")); s != nil {
				http.SetCookie(w, p.signInCookie(r, name, ""))
			}
		}
	}
	if s == nil {
		return "", "", fail(http.StatusUnauthorized, "this browser has begun no such login here, or too long ago")
	}
	s.back <- at // the login is taken once
	select {
	case <-s.done:
	case <-r.Context().Done():
		s.cancel()
		return "", "", context.Cause(r.Context())
	}
	if s.err != nil {
		return "", "", s.refused()
	}
	return s.token, s.screen, nil
}

// add keeps a login and runs it in a goroutine; false: the page has ended.
func (l *signIns) add(s *signIn, run func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if len(l.list) >= maxSignIns {
		s := l.leastLocked()
		s.cancel()
		l.removeLocked(s)
	}
	l.list = append(l.list, s)
	l.wg.Go(run)
	return true
}

// leastLocked returns the login that gives way to another one. A network that begins many ends none of the others.
func (l *signIns) leastLocked() *signIn {
	of := map[netip.Addr]int{}
	for _, s := range l.list {
		of[s.from]++
	}
	least := l.list[0]
	for _, s := range l.list {
		if of[s.from] > of[least.from] {
			least = s
		}
	}
	return least
}

// sent takes note of the page of the authorization server to which the person goes.
func (l *signIns) sent(s *signIn, page string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u, err := url.Parse(page); err == nil {
		s.state = u.Query().Get("state")
	}
}

// take removes the login of a cookie whose answer has a state, and returns it; nil: there is none.
func (l *signIns) take(value secret, state string) *signIn {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.list {
		if s.value.same(value) && s.state != "" && s.state == state {
			l.removeLocked(s)
			return s
		}
	}
	return nil
}

func (l *signIns) remove(s *signIn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(s)
}

func (l *signIns) removeLocked(s *signIn) {
	if i := slices.Index(l.list, s); i >= 0 {
		l.list = slices.Delete(l.list, i, i+1)
	}
}

// close cancels all logins, and waits for them.
func (l *signIns) close() {
	l.mu.Lock()
	l.closed = true
	for _, s := range l.list {
		s.cancel()
	}
	l.mu.Unlock()
	l.wg.Wait()
}
