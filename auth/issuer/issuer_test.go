package issuer_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth/issuer"
)

// A host registers, a person agrees and logs in, and the host gets tokens of the server, which it
// refreshes and revokes. AUTH-26-092. The tokens of the identity provider stay in the server.
func TestLogin(t *testing.T) {
	w := newWorld(t)
	h := w.register(nil)
	b := w.browser()
	p := b.get(h.asks())
	for _, want := range []string{"Desk wants to use The tools", "host.example.org", "login.example.net", "nobody has checked it", "read"} {
		if !strings.Contains(p.body, want) {
			t.Errorf("the consent page lacks %q: %s", want, p.body)
		}
	}
	access, refresh := h.tokens(b)
	who, status := w.knock(access, resourceURL)
	if status != 200 || who.ID != siteURL+"#alice" || who.ClientID != h.id || !slices.Equal(who.Scopes, []string{"read"}) || !slices.Equal(who.Roles, []string{"editor"}) {
		t.Fatalf("HTTP %d, %+v", status, who)
	}
	if who.Claims["email"] != "alice@example.com" || who.Claims["idp"] != providerURL || who.Claims["secret_claim"] != nil || who.Claims["nonce"] != nil {
		t.Errorf("claims %v; want those of the list alone", who.Claims)
	}
	asked := w.forms[0]
	if asked.Get("redirect_uri") != siteURL+"/oauth/callback" || len(asked.Get("code_verifier")) < 43 {
		t.Errorf("the identity provider got %v", asked)
	}

	status, got := h.refresh(refresh)
	next, _ := got["refresh_token"].(string)
	if status != 200 || next == "" || next == refresh || got["access_token"] == access {
		t.Fatalf("refresh: HTTP %d, %v", status, got)
	}
	for _, text := range []string{access, refresh, next, w.logged()} {
		if strings.Contains(text, "token of the provider") || strings.Contains(text, "the secret") {
			t.Errorf("a secret of the identity provider is in %q", text)
		}
	}
	again, _ := got["access_token"].(string)
	if status, _ := w.post("/oauth/revoke", url.Values{"token": {next}, "client_id": {h.id}}); status != 200 {
		t.Errorf("revoke: HTTP %d", status)
	}
	if _, status := w.knock(again, resourceURL); status != 401 {
		t.Errorf("a token of a revoked login: HTTP %d, want 401", status)
	}
	if status, got := h.refresh(next); status != 400 || got["error"] != "invalid_grant" {
		t.Errorf("refresh of a revoked login: HTTP %d, %v", status, got)
	}
}

// The metadata is at all well-known places, says what hosts need, and pages of all origins may read
// it, the keys and the answers of the token endpoint.
func TestMetadata(t *testing.T) {
	w := newWorld(t, func(s *issuer.Server) { s.URL = siteURL + "/people" })
	mux := http.NewServeMux()
	w.server.Handle(mux)
	for _, path := range []string{
		"/.well-known/oauth-authorization-server/people", "/.well-known/openid-configuration/people", "/people/.well-known/openid-configuration",
	} {
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, httptest.NewRequest("GET", siteURL+path, nil))
		var m members
		_ = json.Unmarshal(rec.Body.Bytes(), &m)
		if rec.Code != 200 || m["issuer"] != siteURL+"/people" || m["client_id_metadata_document_supported"] != true ||
			m["authorization_response_iss_parameter_supported"] != true || m["registration_endpoint"] != siteURL+"/people/oauth/register" ||
			rec.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: HTTP %d, %v", path, rec.Code, m)
		}
	}
	for _, path := range []string{"/people/oauth/token", "/people/oauth/register", "/people/oauth/keys"} {
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, httptest.NewRequest("OPTIONS", siteURL+path, nil))
		if rec.Code != 204 || rec.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("preflight of %s: HTTP %d", path, rec.Code)
		}
	}
	if got := w.server.CallbackURL(); got != siteURL+"/people/oauth/callback" {
		t.Errorf("callback %q", got)
	}
}

// A browser that has agreed is not asked again about the same client and the same web site, and
// always about a program on the machine, another resource and more scopes. The page names where the
// answer goes, and warns about programs on the machine. AUTH-26-109, AUTH-26-110, AUTH-26-111.
func TestConsentIsRemembered(t *testing.T) {
	w := newWorld(t)
	h, b := w.register(nil), w.browser()
	h.code(b)
	if p := b.get(h.asks()); p.status != http.StatusSeeOther {
		t.Errorf("the same again: HTTP %d, want a redirect", p.status)
	}
	for name, at := range map[string]string{
		"another scope":    h.asks("scope", "read write"),
		"another resource": h.asks("resource", resourceURL+"/v/small"),
		"prompt=consent":   h.asks("prompt", "consent"),
		"another client":   w.register(nil).asks(),
		"on the machine":   h.asks("redirect_uri", localURL),
	} {
		if p := b.get(at); p.status != http.StatusOK || !hidden.MatchString(p.body) {
			t.Errorf("%s: HTTP %d, want the page", name, p.status)
		}
	}
	onMachine := *h
	onMachine.redirect = localURL
	onMachine.code(b)
	if p := b.get(onMachine.asks()); p.status != http.StatusOK || !strings.Contains(p.body, "program on this computer") {
		t.Errorf("a program on the machine again: HTTP %d, want the page", p.status)
	}
	if p := w.browser().get(h.asks()); p.status != http.StatusOK {
		t.Errorf("another browser: HTTP %d, want the page", p.status)
	}
}

// The person presses Cancel: the host gets access_denied.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	h, b := w.register(nil), w.browser()
	to := b.press(b.get(h.asks()), "cancel").location(t)
	if q := to.Query(); !strings.HasPrefix(to.String(), hostURL) || q.Get("error") != "access_denied" || q.Get("state") == "" || q.Get("iss") != siteURL {
		t.Errorf("the host gets %s", to)
	}
}

// Claims of a person: what is required, what is copied, and what the provider does not vouch for.
func TestClaims(t *testing.T) {
	for name, tt := range map[string]struct {
		require map[string][]string
		claims  []string
		token   members
		meta    members
		refused string
		check   func(c members) bool
	}{
		"domain":            {require: map[string][]string{"hd": {"example.com"}}, token: members{"hd": "example.com"}},
		"another domain":    {require: map[string][]string{"hd": {"example.com"}}, token: members{"hd": "example.org"}, refused: "the claim hd"},
		"no domain":         {require: map[string][]string{"hd": {"example.com"}}, refused: "the claim hd"},
		"one of the groups": {require: map[string][]string{"groups": {"ops", "eng-*"}}, token: members{"groups": []string{"all", "eng-web"}}},
		"mail not verified": {token: members{"email_verified": false}, check: func(c members) bool { return c["email"] == nil && c["name"] == "Alice" }},
		"mail not verified, but required": {
			require: map[string][]string{"email": {"*@example.com"}}, token: members{"email_verified": false}, refused: "the claim email",
		},
		"from userinfo": {
			claims: []string{"groups", "name"}, meta: members{"userinfo_endpoint": providerURL + "/userinfo"},
			check: func(c members) bool { return len(c["groups"].([]any)) == 1 && c["name"] == "Alice" },
		},
		"userinfo of another": {
			claims: []string{"groups"}, token: members{"sub": "bob"}, meta: members{"userinfo_endpoint": providerURL + "/userinfo"}, refused: "cannot be used",
		},
		"too many": {token: members{"groups": slices.Repeat([]string{strings.Repeat("g", 100)}, 100)}, refused: "more than 8 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *issuer.Server) { s.Require, s.Claims = tt.require, tt.claims })
			w.change, w.meta = tt.token, tt.meta
			h := w.register(nil)
			back := h.answer(w.browser())
			if tt.refused != "" {
				if back.Get("code") != "" || !strings.Contains(back.Get("error_description"), tt.refused) {
					t.Errorf("the host gets %v, want %q", back, tt.refused)
				}
				return
			}
			_, got := h.exchange(back.Get("code"))
			access, _ := got["access_token"].(string)
			who, status := w.knock(access, resourceURL)
			if status != 200 || tt.check != nil && !tt.check(who.Claims) {
				t.Errorf("HTTP %d, %+v; the host got %v", status, who, back)
			}
		})
	}
}

// A client with a secret authenticates in either way, and a program on the machine may use any port.
func TestClients(t *testing.T) {
	w := newWorld(t)
	for _, method := range []string{"client_secret_basic", "client_secret_post"} {
		h := w.register(members{"token_endpoint_auth_method": method})
		if h.secret == "" {
			t.Fatal("no secret")
		}
		form := url.Values{"grant_type": {"authorization_code"}, "code": {h.code(w.browser())}, "redirect_uri": {hostURL}, "code_verifier": {h.verifier}}
		var header []string
		if method == "client_secret_post" {
			form.Set("client_id", h.id)
			form.Set("client_secret", h.secret)
		} else {
			r := httptest.NewRequest("POST", "/", nil)
			r.SetBasicAuth(h.id, h.secret)
			header = []string{"Authorization", r.Header.Get("Authorization")}
		}
		if status, got := w.post("/oauth/token", form, header...); status != 200 || got["access_token"] == nil {
			t.Errorf("%s: HTTP %d, %v", method, status, got)
		}
	}
	h := w.register(members{"redirect_uris": []string{"http://localhost/callback"}, "grant_types": nil})
	h.redirect = "http://localhost:51234/callback"
	if _, got := h.exchange(h.code(w.browser())); got["access_token"] == nil || got["refresh_token"] != nil {
		t.Errorf("%v; want an access token, and no refresh token, which the client did not ask for", got)
	}
}

// With a folder, a restart keeps keys, registrations and logins; a refresh token that was used
// before the restart is not good after it.
func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "login")
	folder := func(s *issuer.Server) { s.Dir = dir }
	w := newWorld(t, folder)
	h := w.register(nil)
	access, first := h.tokens(w.browser())
	_, got := h.refresh(first)
	second, _ := got["refresh_token"].(string)

	w.server.Close()
	after := newWorld(t, folder)
	h.world = after
	if _, status := after.knock(access, resourceURL); status != 200 {
		t.Errorf("a token after a restart: HTTP %d", status)
	}
	status, got := h.refresh(second)
	third, _ := got["refresh_token"].(string)
	if status != 200 {
		t.Fatalf("refresh after a restart: HTTP %d, %v", status, got)
	}
	if status, _ := h.refresh(first); status != 400 {
		t.Errorf("an old refresh token after a restart: HTTP %d", status)
	}
	after.server.Close()
	again := newWorld(t, folder)
	h.world = again
	if status, _ := h.refresh(third); status != 400 {
		t.Errorf("a login that ended, after a restart: HTTP %d, want 400", status)
	}
	again.server.Close()
	for _, name := range []string{"keys.json", "sessions.jsonl", "lock", "user.json"} {
		if i, err := os.Stat(filepath.Join(dir, name)); err != nil || i.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("%s: %v, %v; want a file for its owner alone", name, i, err)
		}
	}
	keys, err := os.ReadFile(filepath.Join(dir, "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string]string{
		"":                      strings.Replace(string(keys), `"version":1,`, "", 1), // as the first version wrote it
		"keys.json has no keys": "{",
		"keys.json was written by a newer version (format 2, this one knows 1)": strings.Replace(string(keys), `"version":1`, `"version":2`, 1),
	} {
		if text == string(keys) {
			t.Fatalf("keys.json has no version: %s", text)
		}
		if err := os.WriteFile(filepath.Join(dir, "keys.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &issuer.Server{URL: siteURL, Resource: resourceURL, Dir: dir, Provider: issuer.Provider{Issuer: providerURL, ClientID: "gateway"}}
		if err := s.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check with %.20s…: %v, want %q", text, err, want)
		}
		s.Close()
	}

	memory := newWorld(t)
	h.world = memory
	if status, got := h.refresh(third); status != 401 || got["error"] != "invalid_client" {
		t.Errorf("another server: HTTP %d, %v; want invalid_client, so that the host registers again", status, got)
	}
}

// The signing key changes every month. A token of the old key is good until it expires, and the new
// key is published before it signs.
func TestKeysRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(s *issuer.Server) { s.SessionLife = 40 * 24 * time.Hour })
		keys := func() (ids []string) {
			rec := httptest.NewRecorder()
			w.server.ServeHTTP(rec, httptest.NewRequest("GET", siteURL+"/oauth/keys", nil))
			var set struct {
				Keys []struct {
					ID string `json:"kid"`
					D  string `json:"d"`
				} `json:"keys"`
			}
			_ = json.Unmarshal(rec.Body.Bytes(), &set)
			for _, k := range set.Keys {
				if ids = append(ids, k.ID); k.D != "" {
					t.Error("a private key is published")
				}
			}
			return ids
		}
		h := w.register(nil)
		_, refresh := h.tokens(w.browser())
		guard := w.server.Verifier()
		guard.Audience = []string{resourceURL}
		token := func() string {
			_, got := h.refresh(refresh)
			refresh, _ = got["refresh_token"].(string)
			access, _ := got["access_token"].(string)
			return access
		}
		verify := func(when, token string) {
			t.Helper()
			r := httptest.NewRequest("POST", "/mcp", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			if _, err := guard.Verify(r); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		first := keys()
		verify("at first", token())
		time.Sleep(30*24*time.Hour + time.Minute)
		old := token() // makes the new key, and does not use it
		verify("after a month", old)
		if head, _, _ := strings.Cut(old, "."); !strings.Contains(decoded(head), first[0]) {
			t.Errorf("the new key signs before verifiers can have read it: %s", decoded(head))
		}
		if ids := keys(); len(ids) != 2 || ids[0] != first[0] {
			t.Fatalf("keys %v, want the one of before, %v, and a new one", ids, first)
		}
		time.Sleep(59 * time.Minute)
		old = token()
		time.Sleep(2 * time.Minute)
		verify("with the new key", token())
		verify("the token of the old key", old)
		time.Sleep(time.Hour)
		if ids := keys(); len(ids) != 1 || ids[0] == first[0] {
			t.Errorf("keys %v, want the new one alone", ids)
		}
		verify("with the new key alone", token())
	})
}

func decoded(part string) string {
	raw, _ := base64.RawURLEncoding.DecodeString(part)
	return string(raw)
}

// Tokens and logins end on time. AUTH-26-091.
func TestTokensEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := w.register(nil)
		code := h.code(w.browser())
		time.Sleep(2 * time.Minute)
		if status, got := h.exchange(code); status != 400 || got["error"] != "invalid_grant" {
			t.Errorf("an old code: HTTP %d, %v", status, got)
		}
		access, refresh := h.tokens(w.browser())
		time.Sleep(12 * time.Minute)
		if _, status := w.knock(access, resourceURL); status != 401 {
			t.Errorf("an old token: HTTP %d, want 401", status)
		}
		time.Sleep(11*time.Hour + 43*time.Minute)
		status, got := h.refresh(refresh)
		if left, _ := got["expires_in"].(float64); status != 200 || left > 300 {
			t.Errorf("shortly before the end of the login: HTTP %d, %v; want a token of 5 minutes at most", status, got)
		}
		next, _ := got["refresh_token"].(string)
		time.Sleep(6 * time.Minute)
		if status, _ := h.refresh(next); status != 400 {
			t.Errorf("after the login: HTTP %d", status)
		}

		b := w.browser()
		p := b.get(h.asks())
		time.Sleep(11 * time.Minute)
		if p := b.press(p, "agree"); p.status != 400 || !strings.Contains(p.body, "10 minutes") {
			t.Errorf("an old consent page: HTTP %d, %s", p.status, p.body)
		}
		at := w.logsIn(b.press(b.get(h.asks()), "agree").location(t))
		time.Sleep(11 * time.Minute)
		if p := b.get(at); p.status != 403 && p.status != 400 {
			t.Errorf("an old login: HTTP %d, %s", p.status, p.body)
		}
	})
}

// Faults in the fields are found before the first request.
func TestCheck(t *testing.T) {
	good := func() *issuer.Server {
		return &issuer.Server{URL: siteURL, Resource: resourceURL, Provider: issuer.Provider{Issuer: providerURL, ClientID: "gateway"}}
	}
	if err := good().Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*issuer.Server){
		"URL":                              func(s *issuer.Server) { s.URL = "" },
		"http is allowed on loopback":      func(s *issuer.Server) { s.URL = "http://mcp.example.com" },
		"slash":                            func(s *issuer.Server) { s.URL += "/" },
		"Resource":                         func(s *issuer.Server) { s.Resource = "mcp" },
		"Issuer":                           func(s *issuer.Server) { s.Provider.Issuer = "http://login.example.com" },
		"no ClientID":                      func(s *issuer.Server) { s.Provider.ClientID = "" },
		`the claim "sub" cannot be copied`: func(s *issuer.Server) { s.Claims = []string{"sub"} },
		`"javascript" is not a scheme`:     func(s *issuer.Server) { s.Schemes = []string{"javascript"} },
		`"hd" has no allowed values`:       func(s *issuer.Server) { s.Require = map[string][]string{"hd": nil} },
		"TokenLife is 2h0m0s":              func(s *issuer.Server) { s.TokenLife = 2 * time.Hour },
		"not a scope":                      func(s *issuer.Server) { s.Scopes = []string{"offline_access"} },
	} {
		s := good()
		change(s)
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, httptest.NewRequest("GET", siteURL+"/oauth/authorize", nil))
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) || rec.Code != 500 {
			t.Errorf("%v (HTTP %d), want %q and 500", err, rec.Code, want)
		}
	}
}
