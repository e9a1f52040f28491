package issuer_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/issuer"
)

const (
	siteURL     = "https://mcp.example.com"
	resourceURL = siteURL + "/mcp"
	providerURL = "https://login.example.net/tenant"
	hostURL     = "https://host.example.org/callback"
	localURL    = "http://127.0.0.1:4711/callback"
)

type members = map[string]any

// world is a Server, an identity provider, and documents of clients, without a network.
type world struct {
	*testing.T
	server *issuer.Server
	nodes  []*issuer.Server // in place of server, in turn; may be empty
	turn   int              // of the nodes
	key    *ecdsa.PrivateKey
	kid    string                                        // of the key
	base   func(r *http.Request) (*http.Response, error) // answers first; nil, nil: it does not

	mu       sync.Mutex
	log      strings.Builder                                     // of the server; guarded by mu
	codes    map[string]url.Values                               // authorization requests by code; guarded by mu
	forms    []url.Values                                        // of the token endpoint; guarded by mu
	requests []string                                            // host and path of all requests; guarded by mu
	change   map[string]any                                      // of the claims of ID tokens; guarded by mu
	meta     map[string]any                                      // of the metadata; guarded by mu
	answer   func(r *http.Request) (status int, body any)        // instead of the usual answer; guarded by mu
	pages    map[string]func(w http.ResponseWriter, at *url.URL) // documents by URL; guarded by mu
}

func newWorld(t *testing.T, change ...func(*issuer.Server)) *world {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, key: key, kid: "k", codes: map[string]url.Values{}, change: members{}, meta: members{}, pages: map[string]func(http.ResponseWriter, *url.URL){}}
	w.server = &issuer.Server{
		URL: siteURL, Resource: resourceURL, Name: "The tools", Base: w, Scopes: []string{"read", "write"},
		Provider: issuer.Provider{Issuer: providerURL, ClientID: "gateway", Secret: "the secret"},
		Logger:   slog.New(slog.NewTextHandler(w, nil)),
	}
	for _, c := range change {
		c(w.server)
	}
	if err := w.server.Check(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.server.Close() })
	return w
}

// node returns the server of the next request.
func (w *world) node() *issuer.Server {
	if len(w.nodes) == 0 {
		return w.server
	}
	w.turn++
	return w.nodes[w.turn%len(w.nodes)]
}

// Write keeps the log of the server.
func (w *world) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// RoundTrip is the network: the identity provider and the documents of clients.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.requests = append(w.requests, r.URL.Host+r.URL.Path)
	answer, page := w.answer, w.pages[r.URL.String()]
	w.mu.Unlock()
	if w.base != nil {
		if res, err := w.base(r); res != nil || err != nil {
			return res, err
		}
	}
	rec := httptest.NewRecorder()
	status, body := 0, any(nil)
	if answer != nil {
		status, body = answer(r)
	}
	switch {
	case status < 0:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case status != 0:
		writeJSON(rec, status, body)
	case page != nil:
		page(rec, r.URL)
	case r.URL.Host == "login.example.net":
		w.provide(rec, r)
	default:
		return nil, errors.New("no such host")
	}
	res := rec.Result()
	res.Request = r
	return res, nil
}

// provide answers as the identity provider.
func (w *world) provide(rec http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch r.URL.Path {
	case "/tenant/.well-known/openid-configuration":
		writeJSON(rec, 200, with(members{
			"issuer": providerURL, "authorization_endpoint": providerURL + "/authorize", "token_endpoint": providerURL + "/token",
			"jwks_uri": providerURL + "/keys", "authorization_response_iss_parameter_supported": true,
		}, w.meta))
	case "/tenant/keys":
		writeJSON(rec, 200, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: w.key.Public(), KeyID: w.kid, Use: "sig"}}})
	case "/tenant/token":
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		w.forms = append(w.forms, form)
		asked := w.codes[form.Get("code")]
		user, password, _ := r.BasicAuth()
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if asked == nil || user != "gateway" || password != "the+secret" || form.Get("redirect_uri") != asked.Get("redirect_uri") ||
			asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
			writeJSON(rec, 400, members{"error": "invalid_grant", "error_description": "no"})
			return
		}
		delete(w.codes, form.Get("code"))
		writeJSON(rec, 200, members{"access_token": "token of the provider", "token_type": "Bearer", "id_token": w.idToken(asked.Get("nonce"), w.change)})
	case "/tenant/userinfo":
		if r.Header.Get("Authorization") != "Bearer token of the provider" {
			rec.WriteHeader(401)
			return
		}
		writeJSON(rec, 200, members{"sub": "alice", "groups": []string{"eng"}, "name": "Another name"})
	default:
		rec.WriteHeader(404)
	}
}

func (w *world) idToken(nonce string, change members) string {
	now := time.Now()
	return sign(w.T, w.key, w.kid, with(members{
		"iss": providerURL, "sub": "alice", "aud": "gateway", "nonce": nonce, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"name": "Alice", "email": "alice@example.com", "roles": []string{"editor"}, "secret_claim": "hidden",
	}, change))
}

func sign(t *testing.T, key any, kid string, claims members) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", kid))
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := json.Marshal(claims)
	signed, err := s.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, _ := signed.CompactSerialize()
	return token
}

// with changes members; nil removes one.
func with(m, change members) members {
	m = maps.Clone(m)
	maps.Copy(m, change)
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
	return m
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// browser is a browser that follows no redirects. It keeps cookies.
type browser struct {
	*world
	jar *cookiejar.Jar
}

func (w *world) browser() *browser {
	jar, _ := cookiejar.New(nil)
	return &browser{w, jar}
}

// page is an answer to a browser.
type page struct {
	status int
	header http.Header
	body   string
}

// text returns what a page says.
func (p *page) text() string {
	_, text, _ := strings.Cut(p.body, "</style>")
	return text
}

// location returns the target of a redirect.
func (p *page) location(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(p.header.Get("Location"))
	if p.status != http.StatusSeeOther || err != nil {
		t.Fatalf("HTTP %d with the location %q; want a redirect; the page: %s", p.status, p.header.Get("Location"), p.body)
	}
	return u
}

func (b *browser) send(r *http.Request) *page {
	for _, c := range b.jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	rec := httptest.NewRecorder()
	b.node().ServeHTTP(rec, r)
	res := rec.Result()
	b.jar.SetCookies(r.URL, res.Cookies())
	return &page{res.StatusCode, res.Header, rec.Body.String()}
}

func (b *browser) get(at string) *page {
	return b.send(httptest.NewRequest(http.MethodGet, at, nil))
}

var hidden = regexp.MustCompile(`name="request" value="([^"]+)"`)

// answer presses a button of the consent page.
func (b *browser) press(p *page, button string) *page {
	b.Helper()
	m := hidden.FindStringSubmatch(p.body)
	if m == nil {
		b.Fatalf("HTTP %d, and the page has no form: %s", p.status, p.body)
	}
	return b.post(url.Values{"request": {html.UnescapeString(m[1])}, "answer": {button}}, siteURL)
}

func (b *browser) post(form url.Values, origin string) *page {
	r := httptest.NewRequest(http.MethodPost, siteURL+"/oauth/consent", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	return b.send(r)
}

// logsIn is the person who logs in at the identity provider: it returns the URL that the provider
// sends the browser to.
func (w *world) logsIn(at *url.URL) string {
	w.Helper()
	if at.Host != "login.example.net" || at.Path != "/tenant/authorize" {
		w.Fatalf("the browser is sent to %s, want the identity provider", at)
	}
	q := at.Query()
	w.mu.Lock()
	defer w.mu.Unlock()
	code := fmt.Sprint("provider-code-", len(w.forms), "-", len(w.codes))
	w.codes[code] = q
	return q.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {providerURL}}.Encode()
}

// host is an MCP host.
type host struct {
	*world
	id, secret, redirect, verifier string
}

// register registers a host.
func (w *world) register(change members) *host {
	w.Helper()
	status, got := w.post("/oauth/register", with(members{
		"client_name": "Desk", "redirect_uris": []string{hostURL, localURL}, "grant_types": []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_method": "none",
	}, change))
	id, _ := got["client_id"].(string)
	if status != http.StatusCreated || id == "" {
		w.Fatalf("register: HTTP %d, %v", status, got)
	}
	secret, _ := got["client_secret"].(string)
	return &host{w, id, secret, hostURL, strings.Repeat("v", 43)}
}

// post posts JSON, or a form.
func (w *world) post(path string, v any, header ...string) (int, members) {
	w.Helper()
	kind, body := "application/json", []byte(nil)
	switch v := v.(type) {
	case url.Values:
		kind, body = "application/x-www-form-urlencoded", []byte(v.Encode())
	case []byte:
		body = v
	default:
		body, _ = json.Marshal(v)
	}
	r := httptest.NewRequest(http.MethodPost, siteURL+path, bytes.NewReader(body))
	r.Header.Set("Content-Type", kind)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.node().ServeHTTP(rec, r)
	var got members
	_ = json.Unmarshal(rec.Body.Bytes(), &got)
	return rec.Code, got
}

// asks returns the URL of an authorization request, with changes; "-" removes a parameter.
func (h *host) asks(change ...string) string {
	sum := sha256.Sum256([]byte(h.verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {h.id}, "redirect_uri": {h.redirect}, "state": {"state of the host"}, "scope": {"read"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {resourceURL},
	}
	for i := 0; i < len(change); i += 2 {
		if q.Set(change[i], change[i+1]); change[i+1] == "-" {
			q.Del(change[i])
		}
	}
	return siteURL + "/oauth/authorize?" + q.Encode()
}

// code logs a person in with a browser, and returns the code that the host gets.
func (h *host) code(b *browser, change ...string) string {
	h.Helper()
	back := h.answer(b, change...)
	if back.Get("code") == "" || back.Get("iss") != siteURL || back.Get("state") != "state of the host" {
		h.Fatalf("the host gets %v, want a code, its state and the issuer; log: %s", back, h.logged())
	}
	return back.Get("code")
}

// answer is code for any answer.
func (h *host) answer(b *browser, change ...string) url.Values {
	h.Helper()
	p := b.get(h.asks(change...))
	if p.status == http.StatusOK {
		p = b.press(p, "agree")
	}
	to := b.get(h.logsIn(p.location(h.T))).location(h.T)
	if !strings.HasPrefix(to.String(), h.redirect+"?") {
		h.Fatalf("the browser is sent to %s, want %s", to, h.redirect)
	}
	return to.Query()
}

// exchange exchanges a code.
func (h *host) exchange(code string, change ...string) (int, members) {
	h.Helper()
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {h.redirect}, "code_verifier": {h.verifier}, "client_id": {h.id}, "resource": {resourceURL},
	}
	return h.post("/oauth/token", changed(form, change))
}

func (h *host) refresh(token string, change ...string) (int, members) {
	h.Helper()
	return h.post("/oauth/token", changed(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {h.id}}, change))
}

func changed(form url.Values, change []string) url.Values {
	for i := 0; i < len(change); i += 2 {
		if form.Set(change[i], change[i+1]); change[i+1] == "-" {
			form.Del(change[i])
		}
	}
	return form
}

// tokens logs in and returns the tokens.
func (h *host) tokens(b *browser) (access, refresh string) {
	h.Helper()
	status, got := h.exchange(h.code(b))
	access, _ = got["access_token"].(string)
	refresh, _ = got["refresh_token"].(string)
	if status != http.StatusOK || access == "" || refresh == "" || got["token_type"] != "Bearer" || got["scope"] != "read" {
		h.Fatalf("exchange: HTTP %d, %v", status, got)
	}
	return access, refresh
}

// knock returns the principal that a guard of a resource makes of a token, and the status.
func (w *world) knock(token, resource string) (*auth.Principal, int) {
	w.Helper()
	guard := &auth.Guard{Verifiers: []auth.Verifier{w.node().Verifier()}, Resource: &auth.ResourceMetadata{Resource: resource}}
	if err := guard.Check(); err != nil {
		w.Fatal(err)
	}
	var who *auth.Principal
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	guard.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { who = auth.From(r.Context()) })).ServeHTTP(rec, r)
	return who, rec.Code
}
