package inspector

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// The rules for requests, in their order:
//
//   - Host is that of URL, or one of Hosts. Else a page of another site could reach this one under a name of its own
//     (DNS rebinding).
//   - Origin is absent or that of the page. Sec-Fetch-Site, which browsers send and no script can set, is same-origin; for
//     a document also none or, as a document of a window of its own, any.
//   - Requests but GET have the header Patchbay-Page, for which a browser asks first if the page is from elsewhere.
//   - Below /ui there is a cookie of a session. Its name has the port, because browsers send the cookies of one port to
//     all, and its value is good for this process alone.
//
// The first three answer with 403, the last with 401. No answer has a header that lets pages of elsewhere read it.

// pageHeader is in all requests of the page but GET.
const pageHeader = "Patchbay-Page"

// Link returns a link that lets one person in, once, within 5 minutes. Its code stands behind #, so that no log of a
// server has it, and nothing that follows links ahead of people uses it up. When the link is used, or does not work any
// more, over is called; nil: nothing is.
func (p *Page) Link(over func()) string {
	return strings.TrimSuffix(p.URL, "/") + "/#in=" + p.door.issue(over)
}

// Close ends all sessions, with their streams and calls. Nobody comes in any more.
func (p *Page) Close() {
	p.release(true)
	p.door.shut()
	p.signIns.close()
}

// secure sets the headers of every answer.
func (p *Page) secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; connect-src 'self'; "+p.frames()+"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Origin-Agent-Cluster", "?1") // a sandbox of the same site gets a process of its own
	h.Set("Cache-Control", "no-store")
}

// ServeHTTP answers a request for the page.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.once.Do(p.route)
	p.secure(w.Header())
	if own := p.sandboxHost(); own != "" && strings.EqualFold(own, r.Host) {
		p.sandbox(w, r)
		return
	}
	if err := p.foreign(r); err != nil {
		refuse(w, err)
		return
	}
	path, below := strings.CutPrefix(r.URL.Path, "/ui/")
	switch {
	case !below:
		p.mux.ServeHTTP(w, r)
	case path == "in":
		p.in(w, r)
	case path == "login" && r.Method == http.MethodPost:
		v, err := p.begin(w, r)
		if err != nil {
			p.refuseEntry(w, err)
			return
		}
		write(w, http.StatusOK, "application/json", v)
	default:
		p.known(w, r)
	}
}

// foreign returns why a request is not one of this page; nil: it is.
func (p *Page) foreign(r *http.Request) error {
	if !p.ownHost(r.Host) {
		return fail(http.StatusForbidden, "requests for the host %q are refused here: this page is at %s", text.Clip(r.Host, 100), p.URL)
	}
	if origins := r.Header["Origin"]; len(origins) > 1 || len(origins) == 1 && !sameOrigin(origins[0], r.Host) {
		return fail(http.StatusForbidden, "requests of pages of the origin %q are refused here", text.Clip(origins[0], 100))
	}
	sites := r.Header["Sec-Fetch-Site"]
	site := strings.Join(sites, ",")
	switch below := strings.HasPrefix(r.URL.Path, "/ui/"); {
	case site == "same-origin":
	case !below && (site == "none" || site == ""):
	case !below && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && len(sites) == 1: // a link
	case site == "":
		return fail(http.StatusForbidden, "requests below /ui/ need the header Sec-Fetch-Site, which browsers send to this machine and over HTTPS")
	default:
		return fail(http.StatusForbidden, "requests of pages of other sites are refused here (Sec-Fetch-Site: %s)", text.Clip(site, 50))
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get(pageHeader) != "1" {
		return fail(http.StatusForbidden, "requests of the method %s need the header %s: 1", text.Clip(r.Method, 20), pageHeader)
	}
	return nil
}

// ownHost reports whether a Host is one that the page has.
func (p *Page) ownHost(host string) bool {
	if u, err := url.Parse(p.URL); err != nil || u.Host == "" {
		return false
	} else if strings.EqualFold(u.Host, host) {
		return true
	}
	name, port, err := net.SplitHostPort(host)
	if err == nil && (port == "" || strings.Trim(port, "0123456789") != "") {
		return false
	}
	for _, own := range p.Hosts {
		if strings.EqualFold(own, host) || err == nil && strings.EqualFold(own, name) {
			return host != ""
		}
	}
	return false
}

// sameOrigin reports whether an Origin has the host and the port of Host. The scheme is left out, because a page behind a
// proxy with TLS does not know its own.
func sameOrigin(origin, host string) bool {
	scheme, rest, ok := strings.Cut(origin, "://")
	port := map[string]string{"http": ":80", "https": ":443"}[strings.ToLower(scheme)]
	return ok && port != "" && rest != "" && strings.EqualFold(strings.TrimSuffix(rest, port), strings.TrimSuffix(host, port))
}

// cookieName returns the name of the cookie: browsers keep those of all ports together.
func (p *Page) cookieName() string {
	u, err := url.Parse(p.URL)
	if err != nil || u.Port() == "" {
		return "patchbay"
	}
	return "patchbay-" + u.Port()
}

// setCookie sets the cookie of a session; an empty value removes it.
func (p *Page) setCookie(w http.ResponseWriter, r *http.Request, value string) {
	c := &http.Cookie{Name: p.cookieName(), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// session returns the session of a request; nil: there is none. Then why says how it has ended; empty: it never was.
func (p *Page) session(r *http.Request) (_ *session, why reason) {
	for _, c := range r.CookiesNamed(p.cookieName()) {
		s, gone := p.door.find(c.Value)
		if s != nil {
			return s, ""
		}
		if gone != "" {
			why = gone
		}
	}
	return nil, why
}

// stranger answers a request without a session.
func (p *Page) stranger(w http.ResponseWriter, why reason) {
	err := fail(http.StatusUnauthorized, "this page needs a link from the program that serves it: run %s", p.again())
	if why != "" {
		err = fail(http.StatusUnauthorized, "%s. For a new link run %s", why, p.again())
	}
	p.refuseEntry(w, err)
}

// again returns the command that makes another link.
func (p *Page) again() string {
	if p.Again == "" {
		return "patchbay page"
	}
	return p.Again
}

// refuseEntry answers somebody who is not in, and says how they come in.
func (p *Page) refuseEntry(w http.ResponseWriter, err error) {
	var as *problem
	if errors.As(err, &as) && as.Status == http.StatusUnauthorized {
		as.Ways = p.ways()
	}
	refuse(w, err)
}

// ways returns how people come in.
func (p *Page) ways() []string {
	list := []string{"link"}
	if p.Guard == nil {
		return list
	}
	if p.issuer() != "" {
		list = append(list, "login")
	}
	for _, v := range p.Guard.Verifiers {
		switch v.(type) {
		case *auth.Basic:
			list = append(list, "password")
		case *auth.MTLS:
			list = append(list, "certificate")
		default:
			list = append(list, "key")
		}
	}
	return list
}

// known answers a request of somebody who is in.
func (p *Page) known(w http.ResponseWriter, r *http.Request) {
	s, why := p.session(r)
	if s == nil {
		p.stranger(w, why)
		return
	}
	answer := func(ctx context.Context, who person) {
		ctx, cancel := context.WithCancelCause(context.WithValue(ctx, personKey{}, who))
		defer cancel(nil)
		defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
		r := r.WithContext(ctx)
		if r.URL.Path == "/ui/out" && r.Method == http.MethodPost {
			p.door.close(s, left)
			p.setCookie(w, r, "")
			write(w, http.StatusOK, "application/json", struct{}{})
			return
		}
		if who.Admin && r.URL.Path == "/ui/events" {
			defer p.looks()()
		}
		p.mux.ServeHTTP(w, r)
	}
	if s.credential == nil {
		answer(auth.With(r.Context(), p.Local), person{p.Local, true})
		return
	}
	err := p.checked(r, s.credential, s.tls, func(ctx context.Context, who person) error {
		if who.Principal.ID != s.id {
			return errOther
		}
		answer(ctx, who)
		return nil
	})
	switch {
	case errors.Is(err, errBusy):
		refuse(w, err)
	case err != nil:
		p.door.close(s, revoked)
		p.stranger(w, revoked)
	}
}

var (
	errOther = errors.New("the credential names another principal")
	errBusy  = fail(http.StatusServiceUnavailable, "the credential cannot be checked at the moment; try again")
)

// checked calls then for the person of a credential, as long as the guard accepts it: the context of a stream ends with
// the credential.
func (p *Page) checked(r *http.Request, credential http.Header, state *tls.ConnectionState, then func(ctx context.Context, who person) error) error {
	// The guard sees the request as far as it decides about it, and its answer stays here: a challenge would make the
	// browser ask for a password by itself.
	seen := (&http.Request{Method: r.Method, URL: &url.URL{Path: r.URL.Path}, RequestURI: r.URL.Path, Host: r.Host, RemoteAddr: r.RemoteAddr, Proto: r.Proto, Header: credential.Clone(), Body: http.NoBody, TLS: state}).WithContext(r.Context())
	if about := r.Header.Get("Mcp-Method"); about != "" {
		seen.Header.Set("Mcp-Method", about) // a subscription is a stream
	}
	reached := false
	var refusal error
	answer := &unsent{header: http.Header{}}
	p.Guard.Protect(http.HandlerFunc(func(_ http.ResponseWriter, admitted *http.Request) {
		reached = true
		ctx := admitted.Context()
		who := person{Principal: auth.From(ctx)}
		if who.Principal == nil {
			refusal = fail(http.StatusUnauthorized, "a credential is missing")
			return
		}
		enters := who.Principal.HasRole(adminRole)
		who.Admin = enters
		if !enters && p.Admits != nil {
			enters = p.Admits(ctx)
		}
		if !enters {
			refusal = fail(http.StatusForbidden, "%s may not open this page: it needs the role %q, or a rule of the policy that allows kind == \"page\"", who.Principal.ID, adminRole)
			return
		}
		refusal = then(ctx, who)
	})).ServeHTTP(answer, seen)
	switch {
	case reached:
		return refusal
	case answer.status >= http.StatusInternalServerError:
		return errBusy
	case answer.status == http.StatusForbidden:
		return fail(http.StatusForbidden, "the credential lacks a scope that every caller needs")
	}
	return fail(http.StatusUnauthorized, "the credential is not valid")
}

// adminRole is the role of people who may do everything that the owner of the program may.
const adminRole = "admin"

// unsent takes the answer of a guard.
type unsent struct {
	header http.Header
	status int
}

func (u *unsent) Header() http.Header { return u.header }
func (u *unsent) WriteHeader(status int) {
	if u.status == 0 {
		u.status = status
	}
}
func (u *unsent) Write(b []byte) (int, error) {
	u.WriteHeader(http.StatusOK)
	return len(b), nil
}

// entry is the body of /ui/in: the code of a link, the query with which the browser is back from the authorization server,
// or a credential. Without them, the certificate of the connection is the credential.
type entry struct {
	Code     string `json:"code"`
	Back     string `json:"back"`
	Key      string `json:"key"` // an API key or a token
	User     string `json:"user"`
	Password string `json:"password"`
}

// in lets somebody in.
func (p *Page) in(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		refuse(w, fail(http.StatusMethodNotAllowed, "%s takes POST", r.URL.Path))
		return
	}
	value, screen, byLink, err := p.enter(w, r)
	if err != nil {
		p.refuseEntry(w, err)
		return
	}
	if old, _ := p.session(r); old != nil { // a browser has one session
		p.door.close(old, left)
	}
	p.setCookie(w, r, value)
	answer := struct {
		Screen string `json:"screen"`
		State  *State `json:"state,omitempty"` // of somebody who came by a link, who need not ask for it
	}{Screen: screen}
	if byLink {
		answer.State = p.state(context.WithValue(auth.With(r.Context(), p.Local), personKey{}, person{p.Local, true}), r.Host)
	}
	write(w, http.StatusOK, "application/json", answer)
}

// enter makes a session of the body of a request, and says which screen comes after a login; empty: the one that the
// browser shows. It reports whether somebody came by a link.
func (p *Page) enter(w http.ResponseWriter, r *http.Request) (value, screen string, byLink bool, err error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCredential))
	if err != nil {
		return "", "", false, fail(http.StatusBadRequest, "the body cannot be read, or has more than %d bytes", maxCredential)
	}
	var body entry
	if err := strictly(raw, &body, "code", "back", "key", "user", "password"); err != nil {
		return "", "", false, fail(http.StatusBadRequest, "the body is not an object with the member code, back or key, or with user and password")
	}
	if body.Code != "" {
		value, err = p.door.enter(body.Code)
		return value, "", true, err
	}
	if p.Guard == nil {
		return "", "", false, fail(http.StatusUnauthorized, "this page needs a link from the program that serves it: run %s", p.again())
	}
	if body.Back != "" {
		if body.Key, screen, err = p.finish(w, r, body.Back); err != nil {
			return "", "", false, err
		}
	}
	credential := http.Header{}
	switch {
	case body.Key != "" && strings.ContainsFunc(body.Key, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", "", false, fail(http.StatusUnauthorized, "the credential is not valid")
	case body.Key != "":
		credential.Set("Authorization", "Bearer "+body.Key)
	case body.User+body.Password != "":
		credential.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(body.User+":"+body.Password)))
	}
	err = p.checked(r, credential, r.TLS, func(_ context.Context, who person) error {
		value, err = p.door.admit(&session{credential: credential, tls: r.TLS, id: who.Principal.ID})
		return err
	})
	return value, screen, false, err
}
