package issuer_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth/issuer"
)

// refused fails the test if an answer is not a page with a text and without a redirect.
func (w *world) refused(what string, p *page, want string) {
	w.Helper()
	if p.status/100 != 4 && p.status/100 != 5 || p.header.Get("Location") != "" || !strings.Contains(p.body, want) {
		w.Errorf("%s: HTTP %d to %q: %s; want a refusal with %q", what, p.status, p.header.Get("Location"), p.text(), want)
	}
}

// denied fails the test if an answer of an endpoint is not an OAuth error.
func (w *world) denied(what string, status int, got members, wantStatus int, want string) {
	w.Helper()
	if status != wantStatus || got["error"] != want || got["access_token"] != nil || got["error_description"] == "" {
		w.Errorf("%s: HTTP %d, %v; want %d and %s", what, status, got, wantStatus, want)
	}
}

// Attack: the answer goes to a redirect URI that the client has not registered. AUTH-26-103.
func TestAttackOtherRedirect(t *testing.T) {
	w := newWorld(t, func(s *issuer.Server) { s.Schemes = []string{"cursor"} })
	h := w.register(members{"redirect_uris": []string{hostURL, localURL, "http://localhost/callback", "cursor://auth/callback"}})
	b := w.browser()
	for _, redirect := range []string{
		"https://evil.example/callback", hostURL + "/", hostURL + "?x=1", hostURL + "/../evil", "https://host.example.org:444/callback", "http://host.example.org/callback",
		"https://HOST.example.org/callback", "https://host.example.org@evil.example/callback", hostURL + "#x", "https://host.example.org\\@evil.example/callback",
		"http://127.0.0.1:4711/other", "https://127.0.0.1:4711/callback", "http://127.0.0.1@evil.example/callback", "http://127.0.0.1.evil.example/callback",
		"http://localhost.evil.example/callback", "http://[::1]:4711/callback", "http://127.0.0.1:4711/callback?x=1", "http://192.168.1.1:4711/callback",
		"cursor://auth/other", "cursor://evil/callback", "javascript:alert(1)", "data:text/html,x", "//evil.example/callback", "/callback", "-", "",
	} {
		w.refused(redirect, b.get(h.asks("redirect_uri", redirect)), "edirect")
	}
	for _, redirect := range []string{"http://127.0.0.1:1/callback", "http://127.0.0.1/callback", "http://localhost:65535/callback", "cursor://auth/callback"} {
		if p := b.get(h.asks("redirect_uri", redirect)); p.status != 200 {
			t.Errorf("%s: HTTP %d, want the page: %s", redirect, p.status, p.body)
		}
	}
	for _, redirect := range []string{
		"http://evil.example/", "javascript:alert(1)", "data:text/html,x", "ftp://x/", "vscode://x/", "https://", "https://u@x/", "https://x/#f", "https://é.example/", "x", "", "https://x/ y",
	} {
		status, got := w.post("/oauth/register", members{"redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none"})
		w.denied("registration of "+redirect, status, got, 400, "invalid_redirect_uri")
	}
	status, got := h.exchange(h.code(b), "redirect_uri", localURL)
	w.denied("another redirect URI at the token endpoint", status, got, 400, "invalid_grant")
}

// Attack: a code is used a second time. The tokens of the first use end too.
func TestAttackCodeReplay(t *testing.T) {
	w := newWorld(t)
	h := w.register(nil)
	code := h.code(w.browser())
	_, first := h.exchange(code)
	access, _ := first["access_token"].(string)
	if _, status := w.knock(access, resourceURL); status != 200 {
		t.Fatalf("the token of the first use: HTTP %d", status)
	}
	status, got := h.exchange(code)
	w.denied("a second use", status, got, 400, "invalid_grant")
	if _, status := w.knock(access, resourceURL); status != 401 {
		t.Errorf("the token of the first use after the second: HTTP %d, want 401", status)
	}
	refresh, _ := first["refresh_token"].(string)
	status, got = h.refresh(refresh)
	w.denied("the refresh token of the first use", status, got, 400, "invalid_grant")
}

// Attack: a client uses the code, or the refresh token, of another one.
func TestAttackCodeOfAnotherClient(t *testing.T) {
	w := newWorld(t)
	h, thief := w.register(nil), w.register(nil)
	code := h.code(w.browser())
	thief.verifier = h.verifier
	status, got := thief.exchange(code)
	w.denied("the code of another", status, got, 400, "invalid_grant")
	_, refresh := h.tokens(w.browser())
	status, got = thief.refresh(refresh)
	w.denied("the refresh token of another", status, got, 400, "invalid_grant")
	if status, _ := w.post("/oauth/revoke", url.Values{"token": {refresh}, "client_id": {thief.id}}); status != 200 {
		t.Errorf("revocation by another: HTTP %d", status)
	}
	if status, got := h.refresh(refresh); status != 200 {
		t.Errorf("another client has ended the login: HTTP %d, %v", status, got)
	}
}

// Attack: PKCE is left out, or weakened, on either way. AUTH-26-101.
func TestAttackPKCEDowngrade(t *testing.T) {
	w := newWorld(t)
	h, b := w.register(nil), w.browser()
	for _, change := range [][]string{
		{"code_challenge", "-"}, {"code_challenge_method", "-"}, {"code_challenge_method", "plain"}, {"code_challenge", "short"},
		{"code_challenge", "-", "code_challenge_method", "-"}, {"code_challenge", strings.Repeat("=", 43)},
	} {
		w.refused(fmt.Sprint(change), b.get(h.asks(change...)), "code_challenge")
	}
	for _, verifier := range []string{"-", "", strings.Repeat("w", 43), "v", strings.Repeat("v", 200)} {
		status, got := h.exchange(h.code(b), "code_verifier", verifier)
		w.denied("verifier "+verifier, status, got, 400, "invalid_grant")
	}
	code := h.code(b)
	_, _ = h.exchange(code, "code_verifier", strings.Repeat("w", 43))
	status, got := h.exchange(code)
	w.denied("a code that was presented with a wrong verifier", status, got, 400, "invalid_grant")
	sent := b.press(w.browserPage(b, h), "agree").location(t).Query()
	if sent.Get("code_challenge_method") != "S256" || len(sent.Get("code_challenge")) != 43 {
		t.Errorf("the identity provider is sent %v, want PKCE", sent)
	}
}

// browserPage returns the consent page, whatever the browser has agreed to.
func (w *world) browserPage(b *browser, h *host) *page { return b.get(h.asks("prompt", "consent")) }

// Attack: a person is made to finish the login of another browser, so that a host acts for the
// attacker (login CSRF), or the attacker gets the code of the person.
func TestAttackStateOfAnotherBrowser(t *testing.T) {
	w := newWorld(t)
	h := w.register(nil)
	attacker, victim := w.browser(), w.browser()
	back := w.logsIn(attacker.press(attacker.get(h.asks()), "agree").location(t))
	w.refused("the answer in another browser", victim.get(back), "this browser has not begun this login")
	own := victim.press(victim.get(h.asks()), "agree").location(t)
	mine := w.logsIn(own)
	for slot := byte(8); slot != own.Query().Get("state")[0]%8; { // the cookies of both logins have one name
		other := attacker.press(w.browserPage(attacker, h), "agree").location(t)
		slot, back = other.Query().Get("state")[0]%8, w.logsIn(other)
	}
	if p := victim.get(back); p.status == http.StatusSeeOther {
		t.Fatalf("with a login of its own, the browser is sent to %q", p.header.Get("Location"))
	}
	u, _ := url.Parse(back)
	q := u.Query()
	for name, state := range map[string]string{"none": "", "made up": "x"} {
		q.Set("state", state)
		w.refused("state "+name, victim.get(siteURL+"/oauth/callback?"+q.Encode()), "")
	}
	if to := victim.get(mine).location(t); to.Query().Get("code") == "" {
		t.Errorf("the person's own login ended with %s", to)
	}
	w.refused("the same answer again", victim.get(mine), "finished it")
	if len(w.forms) != 1 {
		t.Errorf("%d codes were exchanged at the identity provider, want 1", len(w.forms))
	}
}

// Attack: the answer comes from another identity provider than the one that was asked (mix-up).
// RFC 9207.
func TestAttackMixedUpIssuer(t *testing.T) {
	for name, iss := range map[string]string{"another": "https://evil.example", "none": "-", "empty": "", "almost": providerURL + "/"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h, b := w.register(nil), w.browser()
			u, _ := url.Parse(w.logsIn(b.press(b.get(h.asks()), "agree").location(t)))
			q := changed(u.Query(), []string{"iss", iss})
			to := b.get(siteURL + "/oauth/callback?" + q.Encode()).location(t)
			if to.Query().Get("code") != "" || to.Query().Get("error") != "access_denied" || len(w.forms) != 0 {
				t.Errorf("the host gets %s after %d exchanges, want an error and none", to, len(w.forms))
			}
		})
	}
}

// Attack: an ID token of the identity provider that was made for another client, another login or
// another time, or by another key.
func TestAttackProviderToken(t *testing.T) {
	for name, change := range map[string]members{
		"another audience":  {"aud": "another"},
		"several audiences": {"aud": []string{"gateway", "another"}},
		"another party":     {"azp": "another"},
		"another nonce":     {"nonce": "another"},
		"no nonce":          {"nonce": nil},
		"another issuer":    {"iss": "https://evil.example"},
		"expired":           {"exp": time.Now().Add(-time.Hour).Unix()},
		"no exp":            {"exp": nil},
		"no sub":            {"sub": nil},
		"empty sub":         {"sub": ""},
		"from the future":   {"iat": time.Now().Add(time.Hour).Unix()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.change = change
			h := w.register(nil)
			back := h.answer(w.browser())
			if back.Get("code") != "" || back.Get("error") != "server_error" || back.Get("iss") != siteURL || !strings.Contains(w.logged(), "ID token of the identity provider") {
				t.Errorf("the host gets %v; log: %s", back, w.logged())
			}
		})
	}
	w := newWorld(t)
	other := newWorld(t)
	w.answer = func(r *http.Request) (int, any) {
		if r.URL.Path == "/tenant/keys" {
			other.provide(httptest.NewRecorder(), r)
			return 200, json.RawMessage(`{"keys":[]}`)
		}
		return 0, nil
	}
	h := w.register(nil)
	if back := h.answer(w.browser()); back.Get("error") != "server_error" || !strings.Contains(w.logged(), "no key that can verify a token") {
		t.Errorf("keys without a key: the host gets %v; log: %s", back, w.logged())
	}
}

// Attack: a token is asked for, or used at, another resource. AUTH-26-067.
func TestAttackOtherResource(t *testing.T) {
	w := newWorld(t)
	h, b := w.register(nil), w.browser()
	for _, resource := range []string{
		"https://other.example.com/mcp", siteURL, resourceURL + "x", resourceURL + "/../admin", resourceURL + "/%2e%2e/admin", resourceURL + "?x", resourceURL + "#x",
		"https://u@mcp.example.com/mcp", "http://mcp.example.com/mcp", "mcp",
	} {
		w.refused(resource, b.get(h.asks("resource", resource)), "resource")
	}
	status, got := h.exchange(h.code(b), "resource", resourceURL+"/v/small")
	w.denied("another resource at the token endpoint", status, got, 400, "invalid_target")

	small := resourceURL + "/v/small"
	_, got = h.exchange(h.code(b, "resource", small), "resource", small)
	access, _ := got["access_token"].(string)
	for resource, want := range map[string]int{small: 200, resourceURL: 401, resourceURL + "/v/other": 401, "https://other.example.com/mcp": 401} {
		if _, status := w.knock(access, resource); status != want {
			t.Errorf("a token for %s at %s: HTTP %d, want %d", small, resource, status, want)
		}
	}
	refresh, _ := got["refresh_token"].(string)
	status, got = h.refresh(refresh, "resource", resourceURL)
	w.denied("another resource with a refresh token", status, got, 400, "invalid_target")
	status, got = h.refresh(refresh, "scope", "read write")
	w.denied("more scopes with a refresh token", status, got, 400, "invalid_scope")
	if status, got = h.refresh(refresh, "resource", small, "scope", "read"); status != 200 {
		t.Errorf("the same resource: HTTP %d, %v", status, got)
	}
}

// Attack: the metadata document of a client is inside of the network, too large, elsewhere, or that
// of another client. AUTH-26-031, AUTH-26-032, AUTH-26-107, AUTH-26-108.
func TestAttackDocument(t *testing.T) {
	const at = "https://client.example/meta.json"
	w := newWorld(t)
	document := func(change members) func(rw http.ResponseWriter, _ *url.URL) {
		return func(rw http.ResponseWriter, _ *url.URL) {
			writeJSON(rw, 200, with(members{"client_id": at, "client_name": "Web desk", "redirect_uris": []string{hostURL}}, change))
		}
	}
	h := &host{w, at, "", hostURL, strings.Repeat("v", 43)}
	w.pages[at] = document(nil)
	b := w.browser()
	if p := b.get(h.asks()); p.status != 200 || !strings.Contains(p.body, "as published at <b>client.example</b>") {
		t.Fatalf("HTTP %d: %s", p.status, p.body)
	}
	if access, _ := h.tokens(b); access == "" {
		t.Error("no token")
	}
	n := 0
	for _, r := range w.requests {
		if r == "client.example/meta.json" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the document was read %d times, want once", n)
	}
	for name, tt := range map[string]struct {
		page func(rw http.ResponseWriter, _ *url.URL)
		want string
	}{
		"another client_id":    {document(members{"client_id": "https://other.example/meta.json"}), "is that of another client"},
		"no client_id":         {document(members{"client_id": nil}), "is that of another client"},
		"another redirect":     {document(members{"redirect_uris": []string{"https://evil.example/"}}), "not one that the program has registered"},
		"a redirect over http": {document(members{"redirect_uris": []string{"http://evil.example/"}}), "only a program on the person"},
		"no redirects":         {document(members{"redirect_uris": nil}), "redirect_uris is missing"},
		"a secret":             {document(members{"client_secret": "x"}), "has a secret"},
		"a secret method":      {document(members{"token_endpoint_auth_method": "client_secret_basic"}), "only none is supported"},
		"too large":            {document(members{"x": strings.Repeat("x", 9<<10)}), "cannot be read"},
		"huge":                 {document(members{"x": strings.Repeat("x", 1<<20)}), "cannot be read"},
		"a redirect": {func(rw http.ResponseWriter, u *url.URL) {
			rw.Header().Set("Location", at)
			rw.WriteHeader(302)
		}, "cannot be read"},
		"a page":   {func(rw http.ResponseWriter, _ *url.URL) { fmt.Fprint(rw, "<html>") }, "cannot be read"},
		"an array": {func(rw http.ResponseWriter, _ *url.URL) { writeJSON(rw, 200, []int{1}) }, "is not a JSON object"},
	} {
		w := newWorld(t)
		w.pages[at] = tt.page
		h.world = w
		w.refused(name, w.browser().get(h.asks()), tt.want)
	}
	for _, id := range []string{
		"http://client.example/meta.json", "https://client.example", "https://client.example/", "https://u@client.example/meta.json", "https://client.example/meta.json#x",
		"https://client.example/a/../meta.json", "file:///etc/passwd", "https:meta", "https://" + strings.Repeat("x", 2000) + "/m",
	} {
		h.id = id
		w.refused(id, w.browser().get(h.asks()), "client_id")
	}

	// Without a transport of the test's own, addresses inside of the network are not connected to.
	for _, inside := range []string{"127.0.0.1", "localhost", "10.0.0.1", "192.168.0.1", "169.254.169.254", "[::1]", "[fd00:ec2::254]", "100.64.0.1", "[::ffff:10.0.0.1]"} {
		w := newWorld(t, func(s *issuer.Server) { s.Base = nil })
		h.world, h.id = w, "https://"+inside+":1/meta.json"
		w.refused(inside, w.browser().get(h.asks()), "cannot be read")
		if got := w.logged(); !strings.Contains(got, "inside of this network") {
			t.Errorf("%s: the log lacks why: %s", inside, got)
		}
	}
}

// Attack: the consent of the person is skipped, made by a page of another site, or shown in a frame.
func TestAttackConsent(t *testing.T) {
	w := newWorld(t)
	h := w.register(nil)
	b := w.browser()
	p := b.get(h.asks())
	for name, want := range map[string]string{"X-Frame-Options": "DENY", "Content-Security-Policy": "frame-ancestors 'none'", "Cache-Control": "no-store"} {
		if got := p.header.Get(name); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if policy := p.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || strings.Contains(p.body, "<script") {
		t.Errorf("the page may have scripts: %q", policy)
	}
	for _, c := range (&http.Response{Header: p.header}).Cookies() {
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("cookie %v", c)
		}
	}
	form := url.Values{"request": {hidden.FindStringSubmatch(p.body)[1]}, "answer": {"agree"}}
	w.refused("a page of another site", b.post(form, "https://evil.example"), "page of another site")
	w.refused("a sandboxed page", b.post(form, "null"), "page of another site")
	w.refused("another browser", w.browser().post(form, siteURL), "another browser")
	other := w.browser()
	other.get(h.asks())
	w.refused("another browser with a page of its own", other.post(form, siteURL), "another browser")
	w.refused("no answer", b.post(url.Values{"request": form["request"]}, siteURL), "no answer")
	w.refused("no request", b.post(url.Values{"answer": {"agree"}}, siteURL), "not made by this server")
	forged := []byte(form.Get("request"))
	forged[40] ^= 1
	w.refused("a changed request", b.post(url.Values{"request": {string(forged)}, "answer": {"agree"}}, siteURL), "not made by this server")
	w.refused("a client id in place of the request", b.post(url.Values{"request": {h.id}, "answer": {"agree"}}, siteURL), "not made by this server")
	w.refused("a GET", b.get(siteURL+"/oauth/consent?"+form.Encode()), "step of a login")
	w.refused("no consent before the answer", b.get(siteURL+"/oauth/callback?code=x&state="+strings.Repeat("s", 43)+"&iss="+url.QueryEscape(providerURL)), "has not begun")
	w.refused("prompt=none", b.get(h.asks("prompt", "none")), "interaction_required")
	if len(w.forms) != 0 {
		t.Errorf("%d codes were exchanged", len(w.forms))
	}

	// A name cannot change the page, or hide in it.
	bad := w.register(members{"client_name": "<b>Desk</b>\u202e\n\"&'" + strings.Repeat("x", 300)})
	page := w.browser().get(bad.asks())
	if strings.Contains(page.body, "<b>Desk") || strings.ContainsRune(page.body, '\u202e') || !strings.Contains(page.body, "&lt;b&gt;Desk&lt;/b&gt;") || strings.Contains(page.body, strings.Repeat("x", 65)) {
		t.Errorf("the page has the name as it came: %s", page.body)
	}
}

// Attack: a refresh token is used twice. The login ends for both users.
func TestAttackRefreshReuse(t *testing.T) {
	w := newWorld(t)
	h := w.register(nil)
	_, first := h.tokens(w.browser())
	_, got := h.refresh(first)
	second, _ := got["refresh_token"].(string)
	access, _ := got["access_token"].(string)
	status, got := h.refresh(first)
	w.denied("a second use", status, got, 400, "invalid_grant")
	status, got = h.refresh(second)
	w.denied("the good one after it", status, got, 400, "invalid_grant")
	if _, status := w.knock(access, resourceURL); status != 401 {
		t.Errorf("the access token after it: HTTP %d, want 401", status)
	}
	if !strings.Contains(w.logged(), "refresh token used twice") {
		t.Errorf("the log: %s", w.logged())
	}
	for _, token := range []string{"", "x", h.id, access} {
		status, got = h.refresh(token)
		w.denied("the refresh token "+token, status, got, 400, "invalid_grant")
	}
}

// Attack: many registrations, and huge ones. They take no memory, and each is bounded.
func TestAttackRegistrationFlood(t *testing.T) {
	w := newWorld(t)
	h := w.register(nil)
	for range 2000 {
		w.register(nil)
	}
	h.code(w.browser()) // the first is good still
	long := "https://host.example.org/" + strings.Repeat("x", 300)
	for name, tt := range map[string]struct {
		body   any
		status int
		code   string
	}{
		"huge":           {members{"redirect_uris": []string{hostURL}, "client_name": strings.Repeat("x", 20<<10)}, 413, "invalid_client_metadata"},
		"enormous":       {members{"redirect_uris": []string{hostURL}, "client_name": strings.Repeat("x", 1<<20)}, 413, "invalid_request"},
		"many redirects": {members{"redirect_uris": make([]string, 11)}, 400, "invalid_redirect_uri"},
		"long together":  {members{"redirect_uris": []string{long + "1", long + "2", long + "3"}}, 400, "invalid_client_metadata"},
		"a long one":     {members{"redirect_uris": []string{long + long}}, 400, "invalid_redirect_uri"},
		"no redirect":    {members{}, 400, "invalid_redirect_uri"},
		"not JSON":       {[]byte("{"), 400, "invalid_client_metadata"},
		"deep":           {[]byte(strings.Repeat("[", 10000)), 400, "invalid_client_metadata"},
		"another method": {members{"redirect_uris": []string{hostURL}, "token_endpoint_auth_method": "private_key_jwt"}, 400, "invalid_client_metadata"},
		"another grant":  {members{"redirect_uris": []string{hostURL}, "grant_types": []string{"password"}}, 400, "invalid_client_metadata"},
		"implicit":       {members{"redirect_uris": []string{hostURL}, "response_types": []string{"token"}}, 400, "invalid_client_metadata"},
	} {
		status, got := w.post("/oauth/register", tt.body)
		w.denied(name, status, got, tt.status, tt.code)
	}
}

// Attack: an error of an authorization request is used to send a browser anywhere. Before the person
// has agreed there is no redirect, only a link. AUTH-26-105, AUTH-26-106.
func TestAttackOpenRedirect(t *testing.T) {
	w := newWorld(t)
	evil := w.register(members{"redirect_uris": []string{"https://evil.example/"}})
	evil.redirect = "https://evil.example/"
	b := w.browser()
	for _, change := range [][]string{
		{"response_type", "token"}, {"response_type", "-"}, {"response_mode", "fragment"}, {"scope", "\x00"}, {"request", "x"}, {"request_uri", "https://evil.example/r"},
		{"code_challenge", "-"}, {"resource", "https://evil.example/"}, {"prompt", "none"}, {"state", strings.Repeat("s", 3000)},
	} {
		p := b.get(evil.asks(change...))
		if p.header.Get("Location") != "" || p.header.Get("Refresh") != "" || strings.Contains(p.body, "http-equiv") {
			t.Errorf("%q: the browser is sent to %q: %s", change, p.header.Get("Location"), p.body)
		}
	}
	w.refused("twice", b.get(evil.asks()+"&redirect_uri=https://other.example/"), "more than once")
	w.refused("a long request", b.get(evil.asks("x", strings.Repeat("x", 9000))), "too long")
	w.refused("no client", b.get(evil.asks("client_id", "-")), "client_id is missing")
	w.refused("an unknown client", b.get(evil.asks("client_id", "unknown")), "does not know the client")
	p := b.get(evil.asks("response_type", "token"))
	if !strings.Contains(p.body, `<a href="https://evil.example/?error=unsupported_response_type`) {
		t.Errorf("the page has no link: %s", p.body)
	}
}

// Attack: the token endpoint with a wrong client, a wrong secret, two ways at once, or none.
func TestAttackClientAuth(t *testing.T) {
	w := newWorld(t)
	h := w.register(members{"token_endpoint_auth_method": "client_secret_basic"})
	public := w.register(nil)
	basic := func(id, secret string) string {
		r := httptest.NewRequest("POST", "/", nil)
		r.SetBasicAuth(id, secret)
		return r.Header.Get("Authorization")
	}
	for name, tt := range map[string]struct {
		change []string
		header string
	}{
		"no secret":             {nil, ""},
		"a wrong secret":        {[]string{"client_secret", "x"}, ""},
		"of another client":     {[]string{"client_secret", public.id}, ""},
		"a wrong Basic":         {[]string{"client_id", "-"}, basic(h.id, "x")},
		"an empty Basic":        {[]string{"client_id", "-"}, basic(h.id, "")},
		"two ways":              {[]string{"client_secret", h.secret}, basic(h.id, h.secret)},
		"two clients":           {[]string{"client_id", public.id}, basic(h.id, h.secret)},
		"Bearer":                {nil, "Bearer x"},
		"an unknown client":     {[]string{"client_id", "unknown"}, ""},
		"a public with secret":  {[]string{"client_id", public.id, "client_secret", "x"}, ""},
		"a document, not there": {[]string{"client_id", "https://nowhere.example/x"}, ""},
	} {
		form := changed(url.Values{"grant_type": {"authorization_code"}, "code": {"x"}, "code_verifier": {h.verifier}, "client_id": {h.id}}, tt.change)
		var header []string
		if tt.header != "" {
			header = []string{"Authorization", tt.header}
		}
		status, got := w.post("/oauth/token", form, header...)
		w.denied(name, status, got, 401, "invalid_client")
		status, got = w.post("/oauth/revoke", changed(form, []string{"token", "x"}), header...)
		w.denied(name+" at the revocation endpoint", status, got, 401, "invalid_client")
	}
	status, got := w.post("/oauth/token", []byte(`{}`))
	w.denied("JSON", status, got, 400, "invalid_request")
	status, got = w.post("/oauth/token", url.Values{"grant_type": {"password"}, "client_id": {public.id}})
	w.denied("another grant", status, got, 400, "unsupported_grant_type")
	status, got = w.post("/oauth/token", url.Values{"grant_type": {"refresh_token", "refresh_token"}, "client_id": {public.id}})
	w.denied("a parameter twice", status, got, 400, "invalid_request")
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, httptest.NewRequest("GET", siteURL+"/oauth/token?grant_type=refresh_token", nil))
	if rec.Code != 405 {
		t.Errorf("GET: HTTP %d", rec.Code)
	}
}

// An identity provider that is down, slow, huge, or about another issuer: the person gets a page
// that says so, the log says why, and nothing hangs.
func TestProviderLies(t *testing.T) {
	for name, tt := range map[string]struct {
		meta   members
		answer func(r *http.Request) (int, any)
		logged string
		later  bool // the login fails after the person has logged in
	}{
		"another issuer":    {meta: members{"issuer": "https://evil.example"}, logged: `its metadata is for \"https://evil.example\"`},
		"no token endpoint": {meta: members{"token_endpoint": nil}, logged: "its token_endpoint"},
		"http endpoints":    {meta: members{"authorization_endpoint": "http://login.example.net/a"}, logged: "is not an https URL"},
		"no keys":           {meta: members{"jwks_uri": nil}, logged: "its jwks_uri"},
		"no metadata":       {answer: func(*http.Request) (int, any) { return 404, nil }, logged: "it has no metadata"},
		"down":              {answer: func(*http.Request) (int, any) { return 502, nil }, logged: "HTTP 502"},
		"huge":              {answer: func(*http.Request) (int, any) { return 200, strings.Repeat("x", 1<<20) }, logged: "more than"},
		"bad keys": {answer: func(r *http.Request) (int, any) {
			if r.URL.Path == "/tenant/keys" {
				return 200, members{"keys": []members{{"kty": "oct", "k": "AAAA"}}}
			}
			return 0, nil
		}, logged: "no key that can verify a token", later: true},
		"huge tokens": {answer: func(r *http.Request) (int, any) {
			if r.URL.Path == "/tenant/token" {
				return 200, members{"id_token": strings.Repeat("x", 1<<20)}
			}
			return 0, nil
		}, logged: "more than", later: true},
		"no ID token": {answer: func(r *http.Request) (int, any) {
			if r.URL.Path == "/tenant/token" {
				return 200, members{"access_token": "token of the provider"}
			}
			return 0, nil
		}, logged: "has no id_token", later: true},
		"a refusal": {answer: func(r *http.Request) (int, any) {
			if r.URL.Path == "/tenant/token" {
				return 401, members{"error": "invalid_client", "error_description": "wrong secret"}
			}
			return 0, nil
		}, logged: "wrong secret", later: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.meta, w.answer = tt.meta, tt.answer
			h, b := w.register(nil), w.browser()
			if tt.later {
				if back := h.answer(b); back.Get("error") != "server_error" || !strings.Contains(back.Get("error_description"), "login.example.net") {
					t.Errorf("the host gets %v", back)
				}
			} else {
				w.refused("", b.press(b.get(h.asks()), "agree"), "login.example.net cannot be used at the moment")
			}
			if got := w.logged(); !strings.Contains(got, tt.logged) || strings.Contains(got, "token of the provider") {
				t.Errorf("the log lacks %q, or has a token: %s", tt.logged, got)
			}
		})
	}
}
