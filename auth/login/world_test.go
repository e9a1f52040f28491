package login_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/auth/login"
)

// world is an MCP server, its authorization server, and a user who agrees to everything.
// Its fields are set before use; fields that requests change are read with get.
type world struct {
	t       *testing.T
	mcp, as *httptest.Server

	prmPath   string         // of the resource metadata; empty: there is none
	prm       map[string]any // what differs in it
	challenge string         // parameters after those of the metadata
	advertise bool           // the challenge names the metadata
	metaPath  string         // of the metadata of the authorization server; empty: none
	meta      map[string]any // what differs in it; nil removes a member
	tenant    string         // path of the issuer
	redirect  url.Values     // what differs in the answer to the browser; empty removes
	token     map[string]any // what differs in the token response
	client    map[string]any // what differs in the registration response
	refuse    func(form url.Values) (status int, body string)
	allow     func(scope string, r *http.Request) (status int, need string) // 0: allowed
	handle    func(w http.ResponseWriter, r *http.Request) bool             // comes before all else

	mu         sync.Mutex
	log        []string // "POST mcp /mcp"
	authorized []url.Values
	exchanged  []url.Values
	registered []map[string]any
	basic      []string // user:password at the token endpoint
	challenges map[string]url.Values
	valid      map[string]string // scopes by access token
	refreshes  map[string]string // scopes by refresh token
	bodies     []string          // of requests to the server that were let in
	n          int
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, prmPath: "/.well-known/oauth-protected-resource/mcp", advertise: true, metaPath: "/.well-known/oauth-authorization-server",
		challenges: map[string]url.Values{}, valid: map[string]string{}, refreshes: map[string]string{},
	}
	w.mcp = httptest.NewUnstartedServer(http.HandlerFunc(w.serveMCP))
	w.as = httptest.NewUnstartedServer(http.HandlerFunc(w.serveAS))
	w.mcp.Start()
	w.as.Start()
	t.Cleanup(func() { w.mcp.Close(); w.as.Close() })
	return w
}

func (w *world) url() string { return w.mcp.URL + "/mcp" }

func (w *world) note(who string, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, r.Method+" "+who+" "+r.URL.Path)
}

// asked returns the requests so far that begin with a text.
func (w *world) asked(prefix string) (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.log {
		if strings.HasPrefix(l, prefix) {
			list = append(list, l)
		}
	}
	return list
}

func with(base, more map[string]any) map[string]any {
	for k, v := range more {
		if base[k] = v; v == nil {
			delete(base, k)
		}
	}
	return base
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (w *world) serveMCP(rw http.ResponseWriter, r *http.Request) {
	w.note("mcp", r)
	switch {
	case w.handle != nil && w.handle(rw, r):
	case r.URL.Path == w.prmPath:
		answer(rw, 200, with(map[string]any{"resource": w.url(), "authorization_servers": []string{w.as.URL + w.tenant}}, w.prm))
	case r.URL.Path != "/mcp":
		w.serveAuthorization(rw, r, w.mcp.URL) // of 2025-03-26
	default:
		w.serveResource(rw, r)
	}
}

func (w *world) serveResource(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(r.URL.RawQuery, "token") {
		w.t.Errorf("a token in the URL: %s", r.URL)
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	scope, ok := w.valid[bearer]
	named := ""
	if w.advertise {
		named = fmt.Sprintf(`resource_metadata="%s", `, w.mcp.URL+w.prmPath)
	}
	if !ok {
		rw.Header().Set("WWW-Authenticate", "Bearer "+named+`error="invalid_token"`+w.challenge)
		http.Error(rw, "who are you", http.StatusUnauthorized)
		return
	}
	if w.allow != nil {
		if status, need := w.allow(scope, r); status != 0 {
			rw.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer %serror="insufficient_scope", scope="%s"`, named, need))
			http.Error(rw, "not with that", status)
			return
		}
	}
	w.bodies = append(w.bodies, r.Method+" "+string(body))
	fmt.Fprint(rw, "welcome")
}

func (w *world) serveAS(rw http.ResponseWriter, r *http.Request) {
	w.note("as", r)
	if r.Header.Get("Authorization") != "" && strings.HasPrefix(r.Header.Get("Authorization"), "Bearer") {
		w.t.Errorf("a token went to the authorization server: %s", r.URL.Path)
	}
	if w.handle != nil && w.handle(rw, r) {
		return
	}
	w.serveAuthorization(rw, r, w.as.URL)
}

func (w *world) serveAuthorization(rw http.ResponseWriter, r *http.Request, base string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch r.URL.Path {
	case w.metaPath:
		answer(rw, 200, with(map[string]any{
			"issuer": base + w.tenant, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
			"registration_endpoint": base + "/register", "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"},
		}, w.meta))
	case "/authorize":
		q := r.URL.Query()
		w.authorized = append(w.authorized, q)
		w.n++
		code := fmt.Sprint("code-", w.n)
		w.challenges[code] = q
		back, _ := url.Parse(q.Get("redirect_uri"))
		v := url.Values{"code": {code}, "state": {q.Get("state")}}
		for name, values := range w.redirect {
			v[name] = values
		}
		back.RawQuery = v.Encode()
		http.Redirect(rw, r, back.String(), http.StatusFound)
	case "/register":
		var m map[string]any
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			w.t.Error(err)
		}
		w.registered = append(w.registered, m)
		answer(rw, 201, with(map[string]any{"client_id": fmt.Sprint("client-", len(w.registered))}, w.client))
	case "/token":
		w.serveToken(rw, r)
	default:
		http.NotFound(rw, r)
	}
}

func (w *world) serveToken(rw http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	w.exchanged = append(w.exchanged, r.PostForm)
	if user, password, ok := r.BasicAuth(); ok {
		w.basic = append(w.basic, user+":"+password)
	}
	if w.refuse != nil {
		if status, body := w.refuse(r.PostForm); status != 0 {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(status)
			fmt.Fprint(rw, body)
			return
		}
	}
	scope := ""
	switch f := r.PostForm; f.Get("grant_type") {
	case "authorization_code":
		q, ok := w.challenges[f.Get("code")]
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		if !ok || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || q.Get("redirect_uri") != f.Get("redirect_uri") ||
			q.Get("resource") != f.Get("resource") || len(f.Get("code_verifier")) < 43 {
			answer(rw, 400, map[string]any{"error": "invalid_grant"})
			return
		}
		delete(w.challenges, f.Get("code"))
		scope = q.Get("scope")
	case "refresh_token":
		var ok bool
		if scope, ok = w.refreshes[f.Get("refresh_token")]; !ok {
			answer(rw, 400, map[string]any{"error": "invalid_grant"})
			return
		}
		delete(w.refreshes, f.Get("refresh_token")) // rotated: a second use is refused
	}
	w.n++
	access, refresh := fmt.Sprint("access-", w.n), fmt.Sprint("refresh-", w.n)
	w.valid[access], w.refreshes[refresh] = scope, scope
	answer(rw, 200, with(map[string]any{"access_token": access, "token_type": "bearer", "expires_in": 3600, "refresh_token": refresh}, w.token))
}

// revoke makes all access tokens bad.
func (w *world) revoke() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.valid)
}

const redirectURL = "http://127.0.0.1:9/callback"

func (w *world) transport() *login.Transport {
	return &login.Transport{Server: w.url(), RedirectURL: redirectURL, Visit: visit}
}

// visit is a user who agrees.
func visit(ctx context.Context, page string) (*url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return res.Location()
}

// send posts a message through a transport.
func send(ctx context.Context, tr http.RoundTripper, target, body string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// mustSend fails the test if the server does not answer 200.
func mustSend(t *testing.T, tr http.RoundTripper, target string) {
	t.Helper()
	if status, err := send(t.Context(), tr, target, "hello"); err != nil || status != 200 {
		t.Fatalf("the request ended with %d, %v; want 200", status, err)
	}
}

func sameList(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

var errNo = errors.New("no")
