package login_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth/login"
)

// The metadata is looked for where the challenge says or else at the path and the root, and
// that of the authorization server in the order for its issuer. AUTH-26-007, AUTH-26-009,
// AUTH-26-017 to -021, AUTH-2506-002.
func TestDiscovery(t *testing.T) {
	const (
		prm   = "GET mcp /.well-known/oauth-protected-resource"
		oauth = "GET as /.well-known/oauth-authorization-server"
		oidc  = "GET as /.well-known/openid-configuration"
	)
	tests := []struct {
		name, prmPath, tenant, metaPath string
		advertise                       bool
		want                            []string
	}{
		{"named", "/elsewhere/prm", "", "/.well-known/oauth-authorization-server", true, []string{"GET mcp /elsewhere/prm", oauth}},
		{"at the path", "/.well-known/oauth-protected-resource/mcp", "", "/.well-known/openid-configuration", false, []string{prm + "/mcp", oauth, oidc}},
		{"at the root", "/.well-known/oauth-protected-resource", "", "/.well-known/oauth-authorization-server", false, []string{prm + "/mcp", prm, oauth}},
		{"tenant", "/p", "/t", "/.well-known/oauth-authorization-server/t", true, []string{"GET mcp /p", oauth + "/t"}},
		{"tenant, OpenID inserted", "/p", "/t", "/.well-known/openid-configuration/t", true, []string{"GET mcp /p", oauth + "/t", oidc + "/t"}},
		{"tenant, OpenID appended", "/p", "/t", "/t/.well-known/openid-configuration", true, []string{"GET mcp /p", oauth + "/t", oidc + "/t", "GET as /t/.well-known/openid-configuration"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.prmPath, w.tenant, w.metaPath, w.advertise = tt.prmPath, tt.tenant, tt.metaPath, tt.advertise
			mustSend(t, w.transport(), w.url())
			got := slices.DeleteFunc(w.asked("GET "), func(s string) bool { return s == "GET as /authorize" })
			sameList(t, "documents", got, tt.want...)
		})
	}
}

// A server of 2025-03-26 is its own authorization server, with metadata at its root or
// default endpoints. AUTH-2503-001 to -003, AUTH-2503-005 to -007.
func TestLegacyServer(t *testing.T) {
	for _, metaPath := range []string{"/.well-known/oauth-authorization-server", ""} {
		w := newWorld(t)
		w.prmPath, w.advertise, w.metaPath = "", false, metaPath
		w.meta = map[string]any{"issuer": w.mcp.URL + "/oauth", "code_challenge_methods_supported": nil}
		versions := 0
		w.handle = func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") && r.Header.Get("MCP-Protocol-Version") != "" {
				versions++
			}
			return false
		}
		mustSend(t, w.transport(), w.url())
		sameList(t, "requests", w.asked(""), "POST mcp /mcp", "GET mcp /.well-known/oauth-protected-resource/mcp", "GET mcp /.well-known/oauth-protected-resource",
			"GET mcp /.well-known/oauth-authorization-server", "POST mcp /register", "GET mcp /authorize", "POST mcp /token", "POST mcp /mcp")
		if versions != 3 {
			t.Errorf("%d of 3 requests for metadata name the revision", versions)
		}
		if got := w.authorized[0].Get("resource"); got != w.url() {
			t.Errorf("resource %q, want %q", got, w.url())
		}
	}
}

// Requests to the authorization server have what the specification demands, and every request to
// the server has the token. AUTH-26-055 to -058, AUTH-26-061 to -065, AUTH-26-074, AUTH-26-088,
// AUTH-26-096, AUTH-26-098, AUTH-26-102, AUTH-26-116, AUTH-26-035, AUTH-26-036.
func TestRequests(t *testing.T) {
	w := newWorld(t)
	tr := w.transport()
	tr.Server += "?key=private" // not part of the resource's name
	for _, method := range []string{"POST", "GET", "DELETE"} {
		req, err := http.NewRequest(method, w.url(), strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X", "y")
		res, err := tr.RoundTrip(req)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %v, %v", method, res, err)
		}
		res.Body.Close()
		if req.Header.Get("Authorization") != "" {
			t.Error("the caller's request was changed")
		}
	}
	sameList(t, "let in", w.bodies, "POST hello", "GET hello", "DELETE hello")
	if len(w.authorized) != 1 || len(w.exchanged) != 1 {
		t.Fatalf("%d logins, %d exchanges; want one", len(w.authorized), len(w.exchanged))
	}
	q, f, reg := w.authorized[0], w.exchanged[0], w.registered[0]
	for name, want := range map[string]string{
		"response_type": "code", "client_id": "client-1", "redirect_uri": redirectURL, "resource": w.url(), "code_challenge_method": "S256",
	} {
		if got := q[name]; len(got) != 1 || got[0] != want {
			t.Errorf("authorization request: %s is %q, want %q", name, got, want)
		}
	}
	if q.Has("scope") || len(q.Get("state")) < 20 {
		t.Errorf("scope %q, state %q; want none, and a long one", q["scope"], q["state"])
	}
	for name, want := range map[string]string{"grant_type": "authorization_code", "client_id": "client-1", "resource": w.url(), "redirect_uri": redirectURL} {
		if f.Get(name) != want {
			t.Errorf("token request: %s is %q, want %q", name, f.Get(name), want)
		}
	}
	if got := reg["redirect_uris"].([]any); len(got) != 1 || got[0] != redirectURL {
		t.Errorf("registered for %v", got)
	}
	if reg["application_type"] != "native" || reg["token_endpoint_auth_method"] != "none" || len(reg["grant_types"].([]any)) != 2 {
		t.Errorf("registration: %v", reg)
	}
}

// The scope of the challenge comes first, then what the metadata supports, then none; a
// step-up asks for what was asked before too. AUTH-26-044 to -046, AUTH-26-048, AUTH-26-082 to
// -084.
func TestScopes(t *testing.T) {
	supported := map[string]any{"scopes_supported": []string{"a", "b"}}
	tests := []struct {
		name, challenge string
		prm             map[string]any
		need            string
		want            []string // of each login; "-": no scope parameter
	}{
		{"challenge", `, scope="x"`, supported, "", []string{"x"}},
		{"supported", "", supported, "", []string{"a b"}},
		{"neither", "", nil, "", []string{"-"}},
		{"step-up", `, scope="x"`, supported, "x y", []string{"x", "x y"}},
		{"step-up to another", `, scope="x"`, supported, "z", []string{"x", "x z"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.challenge, w.prm = tt.challenge, tt.prm
			w.allow = func(scope string, _ *http.Request) (int, string) {
				for s := range strings.FieldsSeq(tt.need) {
					if !slices.Contains(strings.Fields(scope), s) {
						return 403, tt.need
					}
				}
				return 0, ""
			}
			mustSend(t, w.transport(), w.url())
			var got []string
			for _, q := range w.authorized {
				if !q.Has("scope") {
					q.Set("scope", "-")
				}
				got = append(got, q.Get("scope"))
			}
			sameList(t, "scopes", got, tt.want...)
		})
	}
}

// A login that asks for a refresh token asks for consent, without which OpenID providers give
// none. Other logins do not, as the user may have agreed before.
func TestRefreshTokenNeedsConsent(t *testing.T) {
	for scope, want := range map[string]string{`, scope="x"`: "consent", "": ""} {
		w := newWorld(t)
		w.challenge, w.meta = scope, map[string]any{"scopes_supported": []string{"offline_access"}}
		mustSend(t, w.transport(), w.url())
		if q := w.authorized[0]; q.Get("prompt") != want {
			t.Errorf("prompt %q with the scopes %q, want %q", q.Get("prompt"), q.Get("scope"), want)
		}
	}
}

// A server that is never content does not cause endless logins. AUTH-26-085.
func TestRetryLimit(t *testing.T) {
	t.Run("the same scope", func(t *testing.T) {
		w := newWorld(t)
		w.challenge = `, scope="x"`
		w.allow = func(string, *http.Request) (int, string) { return 403, "x" }
		tr := w.transport()
		for range 3 {
			if status, err := send(t.Context(), tr, w.url(), ""); status != 403 || err != nil {
				t.Fatalf("%d, %v; want 403", status, err)
			}
		}
		if len(w.authorized) != 1 {
			t.Errorf("%d logins, want 1", len(w.authorized))
		}
	})
	t.Run("another scope each time", func(t *testing.T) {
		w := newWorld(t)
		w.allow = func(scope string, _ *http.Request) (int, string) {
			return 403, scope + "x" + strings.ReplaceAll(scope, " ", "")
		}
		if status, err := send(t.Context(), w.transport(), w.url(), ""); status != 403 || err != nil {
			t.Fatalf("%d, %v; want 403", status, err)
		}
		if len(w.authorized) != 3 {
			t.Errorf("%d logins, want 3: one, and two for more", len(w.authorized))
		}
	})
	t.Run("no token is good", func(t *testing.T) {
		w := newWorld(t)
		w.token = map[string]any{"access_token": "bad"}
		tr := w.transport()
		for range 3 {
			if status, err := send(t.Context(), tr, w.url(), ""); status != 401 || err != nil {
				t.Fatalf("%d, %v; want 401", status, err)
			}
		}
		if len(w.authorized) != 1 {
			t.Errorf("%d logins, want 1", len(w.authorized))
		}
	})
}

// The identity of the client: credentials that are there, then the document, then a registration;
// and the method to authenticate. AUTH-26-005, AUTH-26-011, AUTH-26-024, AUTH-26-025, AUTH-26-033,
// AUTH-26-034, AUTH-2506-001.
func TestIdentity(t *testing.T) {
	const document = "https://app.example.com/client.json"
	cimd := map[string]any{"client_id_metadata_document_supported": true}
	methods := func(list ...string) map[string]any {
		return map[string]any{"token_endpoint_auth_methods_supported": list}
	}
	tests := []struct {
		name         string
		ours         *login.Credentials
		document     string
		meta, client map[string]any
		id           string // in the form or by basic
		how          string
		err          string
	}{
		{"registered first", &login.Credentials{ID: "me"}, document, cimd, nil, "me", "none", ""},
		{"document second", nil, document, cimd, nil, document, "none", ""},
		{"document not taken", nil, document, nil, nil, "client-1", "none", ""},
		{"no way", nil, document, map[string]any{"registration_endpoint": nil}, nil, "", "", "by hand"},
		{"ours by basic", &login.Credentials{ID: "m:e", Secret: "s&s"}, "", methods("client_secret_post", "client_secret_basic"), nil, "m%3Ae", "s%26s", ""},
		{"ours by post", &login.Credentials{ID: "me", Secret: "s"}, "", methods("client_secret_post"), nil, "me", "post", ""},
		{"ours by default", &login.Credentials{ID: "me", Secret: "s"}, "", map[string]any{"token_endpoint_auth_methods_supported": nil}, nil, "me", "s", ""},
		{"secret given, none wanted", nil, "", methods("none"), map[string]any{"client_secret": "s"}, "client-1", "none", ""},
		{"registered by basic", nil, "", methods("client_secret_basic"), map[string]any{"client_secret": "s"}, "client-1", "s", ""},
		{"registered by post", nil, "", methods("client_secret_post"), map[string]any{"client_secret": "s"}, "client-1", "post", ""},
		{"they decide", nil, "", methods("client_secret_post"), map[string]any{"client_secret": "s", "token_endpoint_auth_method": "client_secret_basic"}, "client-1", "s", ""},
		{"what we cannot", nil, "", nil, map[string]any{"token_endpoint_auth_method": "private_key_jwt"}, "", "", "private_key_jwt"},
		{"no client", nil, "", nil, map[string]any{"client_id": nil, "client_secret": "hidden"}, "", "", "no client"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.meta, w.client = tt.meta, tt.client
			tr := w.transport()
			tr.DocumentURL = tt.document
			tr.Registered = func(_ context.Context, server, issuer string) (*login.Credentials, error) {
				if server != w.url() || issuer != w.as.URL {
					t.Errorf("credentials wanted for %q at %q", issuer, server)
				}
				return tt.ours, nil
			}
			_, err := send(t.Context(), tr, w.url(), "")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "hidden") || len(w.authorized) > 0 {
					t.Errorf("error %v, %d logins; want %q and none", err, len(w.authorized), tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f := w.exchanged[0]
			id, how := f.Get("client_id"), "none"
			if f.Has("client_secret") {
				how = "post"
			}
			if len(w.basic) > 0 {
				id, how, _ = strings.Cut(w.basic[0], ":")
				if f.Has("client_secret") || f.Has("client_id") {
					t.Error("authenticated in two ways")
				}
			}
			if id != tt.id || how != tt.how {
				t.Errorf("%q by %q, want %q by %q", id, how, tt.id, tt.how)
			}
		})
	}
}

// A registration is refused: the error says why. AUTH-26-037, AUTH-26-038.
func TestRegistrationRefused(t *testing.T) {
	w := newWorld(t)
	w.handle = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/register" {
			answer(rw, 400, map[string]any{"error": "invalid_redirect_uri", "error_description": "no loopback here"})
			return true
		}
		return false
	}
	_, err := send(t.Context(), w.transport(), w.url(), "")
	var refused *login.RefusedError
	if !errors.As(err, &refused) || refused.Code != "invalid_redirect_uri" || !strings.Contains(err.Error(), "no loopback here") {
		t.Errorf("error %v", err)
	}
}

// Another authorization server is another registration, and knows nothing of the first one's
// tokens. AUTH-26-014, AUTH-26-015, AUTH-26-039 to -042, AUTH-26-070.
func TestAuthorizationServerChanges(t *testing.T) {
	w, second := newWorld(t), newWorld(t)
	second.client = map[string]any{"client_id": "other"}
	tr := w.transport()
	mustSend(t, tr, w.url())
	w.mu.Lock()
	w.prm = map[string]any{"authorization_servers": []string{second.as.URL}}
	w.valid, w.refreshes = second.valid, map[string]string{}
	w.mu.Unlock()
	mustSend(t, tr, w.url())
	if len(second.registered) != 1 || second.authorized[0].Get("client_id") != "other" || second.exchanged[0].Get("client_id") != "other" {
		t.Errorf("at the second: %v, %v, %v", second.registered, second.authorized, second.exchanged)
	}
	if f := second.exchanged[0]; f.Get("grant_type") != "authorization_code" || f.Has("refresh_token") {
		t.Errorf("the second was sent %v", f)
	}

	w = newWorld(t)
	tr = w.transport()
	tr.Registered = func(context.Context, string, string) (*login.Credentials, error) { return nil, errNo }
	if _, err := send(t.Context(), tr, w.url(), ""); !errors.Is(err, errNo) || len(w.registered) > 0 {
		t.Errorf("error %v, want that of Registered", err)
	}
}

// The answer to the browser is checked before its code goes anywhere. AUTH-26-049, AUTH-26-052
// to -054, AUTH-26-104.
func TestRedirectIsChecked(t *testing.T) {
	tests := []struct {
		name   string
		change url.Values // ISS is the issuer
		says   bool       // the metadata says that responses name issuers
		err    string
	}{
		{"fine", nil, false, ""},
		{"fine, with issuer", url.Values{"iss": {"ISS"}}, true, ""},
		{"unannounced issuer", url.Values{"iss": {"ISS"}}, false, ""},
		{"issuer missing", nil, true, "without the issuer"},
		{"issuer empty", url.Values{"iss": {""}}, false, "another authorization server"},
		{"other issuer", url.Values{"iss": {"https://evil.example.com"}}, true, "another authorization server"},
		{"other issuer, unannounced", url.Values{"iss": {"https://evil.example.com"}}, false, "another authorization server"},
		{"issuer with a slash", url.Values{"iss": {"ISS/"}}, true, "another authorization server"},
		{"issuer twice", url.Values{"iss": {"ISS", "ISS"}}, true, "more than one"},
		{"other state", url.Values{"state": {"x"}}, false, "state"},
		{"no state", url.Values{"state": nil}, false, "state"},
		{"denied", url.Values{"error": {"access_denied"}, "error_description": {"nope"}}, false, "nope"},
		{"denied by another", url.Values{"error": {"e1"}, "error_description": {"nope"}, "iss": {"https://evil.example.com"}}, false, "another authorization server"},
		{"no code", url.Values{"code": nil}, false, "without a code"},
		{"two codes", url.Values{"code": {"a", "b"}}, false, "more than one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.meta = map[string]any{"authorization_response_iss_parameter_supported": tt.says}
			w.redirect = url.Values{}
			for name, values := range tt.change {
				for _, v := range values {
					w.redirect.Add(name, strings.ReplaceAll(v, "ISS", w.as.URL))
				}
				if values == nil {
					w.redirect[name] = nil
				}
			}
			_, err := send(t.Context(), w.transport(), w.url(), "")
			if tt.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if tt.change.Get("iss") != "" && strings.Contains(err.Error(), "nope") {
				t.Errorf("error %v shows what another wrote", err)
			}
			if len(w.exchanged) > 0 {
				t.Errorf("the code went to the token endpoint: %v", w.exchanged)
			}
			if strings.Contains(err.Error(), "code-1") {
				t.Errorf("error %v shows the code", err)
			}
		})
	}
	w := newWorld(t)
	tr := w.transport()
	tr.Visit = func(ctx context.Context, page string) (*url.URL, error) {
		u, err := visit(ctx, page)
		u.Path = "/other"
		return u, err
	}
	if _, err := send(t.Context(), tr, w.url(), ""); err == nil || len(w.exchanged) > 0 {
		t.Errorf("error %v, %v exchanged; want none for another redirect URL", err, w.exchanged)
	}
}

// The token goes to the origin of the server alone. AUTH-26-087.
func TestTokenStaysHome(t *testing.T) {
	var leaked []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked = append(leaked, r.Header.Get("Authorization"))
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(401)
	}))
	defer elsewhere.Close()
	w := newWorld(t)
	tr := w.transport()
	mustSend(t, tr, w.url())
	if status, err := send(t.Context(), tr, elsewhere.URL+"/mcp", ""); status != 401 || err != nil {
		t.Errorf("%d, %v; want 401 as it is", status, err)
	}
	w.handle = func(rw http.ResponseWriter, r *http.Request) bool {
		http.Redirect(rw, r, elsewhere.URL, http.StatusTemporaryRedirect)
		return true
	}
	if status, err := send(t.Context(), tr, w.url(), ""); status != 401 || err != nil {
		t.Errorf("%d, %v; want 401 of the other server", status, err)
	}
	sameList(t, "tokens elsewhere", leaked, "", "")
	if len(w.authorized) != 1 {
		t.Errorf("%d logins; want one", len(w.authorized))
	}
}

// A request that has a token of its own is not changed; a body that cannot be read again is sent
// once.
func TestLeftAlone(t *testing.T) {
	w := newWorld(t)
	tr := w.transport()
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Authorization", "Bearer mine") },
		func(r *http.Request) { r.GetBody = nil },
	} {
		req, err := http.NewRequest("POST", w.url(), strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		res, err := tr.RoundTrip(req)
		if err != nil || res.StatusCode != 401 {
			t.Fatalf("%v, %v; want 401", res, err)
		}
		res.Body.Close()
	}
	if len(w.authorized) > 0 {
		t.Error("logged in")
	}
}

// The first request reports fields that are not set or not safe. AUTH-26-027, AUTH-26-028,
// AUTH-26-095.
func TestFieldsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*login.Transport){
		"Server":      func(t *login.Transport) { t.Server = "http://mcp.example.com" },
		"RedirectURL": func(t *login.Transport) { t.RedirectURL = "http://app.example.com/callback" },
		"Visit":       func(t *login.Transport) { t.Visit = nil },
		"DocumentURL": func(t *login.Transport) { t.DocumentURL = "https://app.example.com" },
	} {
		tr := &login.Transport{Server: "https://127.0.0.1:1", RedirectURL: redirectURL, Visit: visit}
		change(tr)
		if _, err := send(t.Context(), tr, "https://127.0.0.1:1", ""); err == nil || !strings.Contains(err.Error(), "login: "+name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
