package inspector

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
)

// idp is an authorization server that agrees at once. The function lie changes what it sends back by the browser, and the
// claims of tokens.
type idp struct {
	*httptest.Server
	lie   func(back url.Values, claims map[string]any)
	asked url.Values // by the last visit
	codes map[string]url.Values
	key   ed25519.PrivateKey
}

func newIDP(t *testing.T) *idp {
	i := &idp{lie: func(url.Values, map[string]any) {}, codes: map[string]url.Values{}, key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	i.Server = httptest.NewServer(i)
	t.Cleanup(i.Close)
	return i
}

func (i *idp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := map[string]any{}
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		v = map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true}
	case "/authorize":
		i.asked = r.URL.Query()
		code := "code of " + i.asked.Get("state")
		i.codes[code] = i.asked
		back := url.Values{"code": {code}, "state": {i.asked.Get("state")}, "iss": {i.URL}}
		i.lie(back, map[string]any{})
		http.Redirect(w, r, i.asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
		return
	case "/token":
		asked := i.codes[r.FormValue("code")]
		delete(i.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if asked == nil || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("client_id") != r.FormValue("client_id") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
			return
		}
		claims := map[string]any{"iss": i.URL, "sub": "ada", "aud": r.FormValue("resource"), "exp": time.Now().Add(time.Hour).Unix(), "roles": []string{"admin"}}
		i.lie(url.Values{}, claims)
		body, _ := json.Marshal(claims)
		signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA"}`)) + "." + base64.RawURLEncoding.EncodeToString(body)
		v["access_token"], v["token_type"], v["expires_in"] = signed+"."+base64.RawURLEncoding.EncodeToString(ed25519.Sign(i.key, []byte(signed))), "Bearer", 3600
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// signInPage returns a page at which people log in at an authorization server.
func signInPage(t *testing.T, i *idp) *Page {
	p := newPage()
	p.Client = "page"
	p.Guard = &auth.Guard{Verifiers: []auth.Verifier{&auth.JWT{Issuer: i.URL, Keys: []crypto.PublicKey{i.key.Public()}, Leeway: -1}}, Resource: &auth.ResourceMetadata{Resource: here + "/mcp"}}
	t.Cleanup(p.Close)
	return p
}

// begins begins a login, and returns the query with which the browser comes back, and its cookie.
func begins(t *testing.T, p *Page) (query string, cookie *http.Cookie) {
	t.Helper()
	return beginsAt(t, p, "/")
}

// beginsAt is begins on a screen, by a browser at an address.
func beginsAt(t *testing.T, p *Page, screen string, from ...string) (query string, cookie *http.Cookie) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"screen": screen})
	if err != nil {
		t.Fatal(err)
	}
	r := asked(http.MethodPost, "/ui/login", string(body))
	if len(from) > 0 {
		r.RemoteAddr = from[0]
	}
	w := answerOf(p, r)
	var to struct{ Page string }
	if err := json.Unmarshal(w.Body.Bytes(), &to); w.Code != http.StatusOK || err != nil || len(w.Result().Cookies()) != 1 {
		t.Fatalf("a login begins with HTTP %d %s", w.Code, w.Body)
	}
	res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Get(to.Page)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	at, err := res.Location()
	if err != nil || !strings.HasPrefix(at.String(), here+"/in?") {
		t.Fatalf("the browser is sent back to %v (error %v)", at, err)
	}
	return "?" + at.RawQuery, w.Result().Cookies()[0]
}

// back comes back with a query and cookies.
func back(p *Page, query string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	r := in(map[string]string{"back": query})
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return answerOf(p, r)
}

// A person logs in at the authorization server, and is on the page under the principal of the token, until it expires.
func TestSignIn(t *testing.T) {
	i := newIDP(t)
	life := time.Hour // of a token
	i.lie = func(_ url.Values, claims map[string]any) {
		if claims["exp"] != nil {
			claims["exp"] = time.Now().Add(life).Unix()
		}
	}
	p := signInPage(t, i)
	var refusal problem
	if w := answerOf(p, asked(http.MethodGet, "/ui/state", "")); json.Unmarshal(w.Body.Bytes(), &refusal) != nil || !slices.Equal(refusal.Ways, []string{"link", "login", "key"}) {
		t.Errorf("the ways in are %q", refusal.Ways)
	}
	query, cookie := begins(t, p)
	for name, want := range map[string]string{"response_type": "code", "client_id": "page", "redirect_uri": here + "/in", "resource": here + "/mcp", "code_challenge_method": "S256"} {
		if got := i.asked.Get(name); got != want {
			t.Errorf("the authorization server is asked with %s=%q, want %q", name, got, want)
		}
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/ui/in" || strings.Contains(query, cookie.Value) {
		t.Errorf("the cookie of a login is %v", cookie)
	}
	w := back(p, query, cookie)
	var session *http.Cookie
	enter := func() {
		for _, c := range w.Result().Cookies() {
			if c.Name == p.cookieName() {
				session = c
			}
		}
	}
	if enter(); w.Code != http.StatusOK || session == nil {
		t.Fatalf("a login ends with HTTP %d %s", w.Code, w.Body)
	}
	state := func() *httptest.ResponseRecorder {
		r := asked(http.MethodGet, "/ui/state", "")
		r.AddCookie(session)
		return answerOf(p, r)
	}
	if w := state(); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), i.URL) || !strings.Contains(w.Body.String(), `"admin":true`) {
		t.Errorf("the page after the login: HTTP %d %s", w.Code, w.Body)
	}
	if w := back(p, query, cookie); w.Code != http.StatusUnauthorized {
		t.Errorf("the login a second time: HTTP %d %s", w.Code, w.Body)
	}
	for life = 3 * time.Second; ; life *= 2 {
		query, cookie := begins(t, p)
		if w = back(p, query, cookie); w.Code == http.StatusOK || life > time.Minute { // a busy machine may take longer for a login
			break
		}
	}
	if enter(); w.Code != http.StatusOK {
		t.Fatalf("a login for a short time ends with HTTP %d %s", w.Code, w.Body)
	}
	for limit := time.Now().Add(3 * time.Minute); state().Code == http.StatusOK; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("the session outlives the token")
		}
	}
	if w := state(); !strings.Contains(w.Body.String(), "not valid any more") {
		t.Errorf("after the token: HTTP %d %s", w.Code, w.Body)
	}
}

// A login that somebody has meddled with lets nobody in.
func TestSignInAttacks(t *testing.T) {
	change := func(query, name, value string) string {
		q, _ := url.ParseQuery(strings.TrimPrefix(query, "?"))
		q.Set(name, value)
		if value == "" {
			q.Del(name)
		}
		return "?" + q.Encode()
	}
	for name, tt := range map[string]struct {
		lie  func(back url.Values, claims map[string]any)
		then func(t *testing.T, p *Page, query string, cookie *http.Cookie) *httptest.ResponseRecorder
		says string
	}{
		"a link with the code of another person": {says: "has begun no such login", then: func(_ *testing.T, p *Page, query string, _ *http.Cookie) *httptest.ResponseRecorder {
			return back(p, query)
		}},
		"the code of another login": {says: "has begun no such login", then: func(t *testing.T, p *Page, query string, _ *http.Cookie) *httptest.ResponseRecorder {
			_, own := begins(t, p)
			return back(p, query, own)
		}},
		"another state": {says: "has begun no such login", then: func(_ *testing.T, p *Page, query string, cookie *http.Cookie) *httptest.ResponseRecorder {
			return back(p, change(query, "state", "x"), cookie)
		}},
		"no state": {says: "has begun no such login", then: func(_ *testing.T, p *Page, query string, cookie *http.Cookie) *httptest.ResponseRecorder {
			return back(p, change(query, "state", ""), cookie)
		}},
		"another code": {says: "invalid_grant", then: func(_ *testing.T, p *Page, query string, cookie *http.Cookie) *httptest.ResponseRecorder {
			return back(p, change(query, "code", "x"), cookie)
		}},
		"another authorization server":         {says: "the login failed", lie: func(back url.Values, _ map[string]any) { back.Set("iss", "https://evil.example") }},
		"no name of the authorization server":  {says: "the login failed", lie: func(back url.Values, _ map[string]any) { back.Del("iss") }},
		"a person who declines":                {says: "access_denied", lie: func(back url.Values, _ map[string]any) { back.Del("code"); back.Set("error", "access_denied") }},
		"a token for another endpoint":         {says: "not valid", lie: func(_ url.Values, claims map[string]any) { claims["aud"] = "https://other.example/mcp" }},
		"a person who is not an administrator": {says: "may not open this page", lie: func(_ url.Values, claims map[string]any) { delete(claims, "roles") }},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIDP(t)
			if tt.lie != nil {
				i.lie = tt.lie
			}
			p := signInPage(t, i)
			query, cookie := begins(t, p)
			if tt.then == nil {
				tt.then = func(_ *testing.T, p *Page, query string, cookie *http.Cookie) *httptest.ResponseRecorder {
					return back(p, query, cookie)
				}
			}
			w := tt.then(t, p, query, cookie)
			if w.Code == http.StatusOK || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("HTTP %d %s, want a refusal with %q", w.Code, w.Body, tt.says)
			}
			for _, c := range w.Result().Cookies() {
				if c.Name == p.cookieName() {
					t.Errorf("the refusal sets the cookie %v", c)
				}
			}
		})
	}
}

// A person may begin a login in two tabs, and end both; a link of somebody else to the address at which logins end ends none.
func TestSignInInTwoTabs(t *testing.T) {
	p := signInPage(t, newIDP(t))
	query1, cookie1 := begins(t, p)
	query2, cookie2 := begins(t, p)
	if cookie1.Name == cookie2.Name {
		t.Errorf("both logins have the cookie %s", cookie1.Name)
	}
	if w := back(p, "?state=x&code=y", cookie1, cookie2); w.Code != http.StatusUnauthorized {
		t.Errorf("a link of somebody else: HTTP %d %s", w.Code, w.Body)
	}
	for _, query := range []string{query1, query2} {
		if w := back(p, query, cookie1, cookie2); w.Code != http.StatusOK {
			t.Errorf("a login of two: HTTP %d %s", w.Code, w.Body)
		}
	}
}

// Nobody logs in where the browser would not come back to, where people do not log in, and after the end of the page; of
// too many logins the oldest gives way.
func TestSignInBounds(t *testing.T) {
	i := newIDP(t)
	p := signInPage(t, i)
	p.Hosts = []string{"proxy.example"}
	r := asked(http.MethodPost, "/ui/login", "{}")
	r.Host = "proxy.example"
	r.Header.Set("Origin", "https://proxy.example")
	if w := answerOf(p, r); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), here) {
		t.Errorf("at another host: HTTP %d %s", w.Code, w.Body)
	}
	if w := answerOf(newPage(), asked(http.MethodPost, "/ui/login", "{}")); w.Code != http.StatusNotFound {
		t.Errorf("at a page without a client: HTTP %d %s", w.Code, w.Body)
	}
	two := signInPage(t, i)
	two.Guard.Verifiers = append(two.Guard.Verifiers, &auth.JWT{Issuer: "https://other.example", Keys: []crypto.PublicKey{i.key.Public()}})
	if w := answerOf(two, asked(http.MethodPost, "/ui/login", "{}")); w.Code != http.StatusNotFound {
		t.Errorf("at a page with two authorization servers: HTTP %d %s", w.Code, w.Body)
	}
	elsewhere, cookie := beginsAt(t, p, "/", "198.51.100.1:1")
	query, first := beginsAt(t, p, "/", "[2001:db8::1]:1")
	for i := range maxSignIns {
		beginsAt(t, p, "/", fmt.Sprintf("[2001:db8::%d]:1", i+2))
	}
	if w := back(p, query, first); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "no such login") {
		t.Errorf("the oldest of too many: HTTP %d %s", w.Code, w.Body)
	}
	if w := back(p, elsewhere, cookie); w.Code != http.StatusOK {
		t.Errorf("one beside too many of another network: HTTP %d %s", w.Code, w.Body)
	}
	p.Close()
	if w := answerOf(p, asked(http.MethodPost, "/ui/login", "{}")); w.Code != http.StatusServiceUnavailable {
		t.Errorf("after the end: HTTP %d %s", w.Code, w.Body)
	}
}

// After a login the page shows the screen on which it began, and never another page.
func TestSignInScreen(t *testing.T) {
	i := newIDP(t)
	p := signInPage(t, i)
	for screen, want := range map[string]string{
		"/":                                   "/",
		"/wire?q=server%3Adb":                 "/wire?q=server%3Adb",
		"/s/db/tools/query":                   "/s/db/tools/query",
		"/s/https%3A%2F%2Fx.example%2Fmcp/a":  "/s/https%3A%2F%2Fx.example%2Fmcp/a",
		"/?login=db":                          "/?login=db",
		"":                                    "/",
		"//evil.example":                      "/",
		"///evil.example":                     "/",
		"//evil.example/wire":                 "/",
		`/s/\..\..\\evil.example`:             "/",
		"/s/..//evil.example":                 "/",
		"/s/%2e%2E//evil.example":             "/",
		"/s/%2e%2e/wire":                      "/",
		"/s/./wire":                           "/",
		"/s//evil.example":                    "/",
		`/\evil.example`:                      "/",
		`\\evil.example`:                      "/",
		`/s\..\\evil.example`:                 "/",
		"/\t/evil.example":                    "/",
		"/s\n":                                "/",
		"/s/\x00":                             "/",
		"/s/é":                                "/",
		" /wire":                              "/",
		"https://evil.example/wire":           "/",
		"https:evil.example":                  "/",
		"javascript:alert(1)":                 "/",
		"wire":                                "/",
		"@evil.example/wire":                  "/",
		"/in?code=x":                          "/",
		"/mcp":                                "/",
		"/ui/out":                             "/",
		"/wire#in=x":                          "/",
		"/s/%zz":                              "/",
		"/wire?" + strings.Repeat("a", 5_000): "/",
	} {
		query, cookie := beginsAt(t, p, screen)
		w := back(p, query, cookie)
		var got struct{ Screen string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || got.Screen != want {
			t.Errorf("a login on the screen %.60q ends with HTTP %d %s, want the screen %q", screen, w.Code, w.Body, want)
		}
	}
	for _, body := range []string{"", "[]", `{"screen": 1}`, `{"page": "/"}`, `{"screen": "/` + strings.Repeat("a", 9_000) + `"}`} {
		if w := answerOf(p, asked(http.MethodPost, "/ui/login", body)); w.Code != http.StatusBadRequest {
			t.Errorf("a login with the body %.60q: HTTP %d %s", body, w.Code, w.Body)
		}
	}
}
