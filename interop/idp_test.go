package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// The authorization server of these tests is oidc-provider, with its own pages: npm/peers/idp.mjs.

// secretOfShop is the client secret of a shop that introspects tokens.
const secretOfShop = "secret of the shop"

// startIDP starts the authorization server, whose access tokens are "jwt" or "opaque" and live for
// some seconds, and returns its issuer.
func startIDP(t *testing.T, format string, seconds int, env ...string) (issuer string) {
	t.Helper()
	return startIDPWith(t, env, format, fmt.Sprint(seconds))
}

func startIDPWith(t *testing.T, env []string, args ...string) (issuer string) {
	t.Helper()
	command := append([]string{node(t), npmFile("peers", "idp.mjs")}, args...)
	if _, err := os.Stat(npmFile("node_modules", "oidc-provider")); err != nil {
		if required() {
			t.Fatal(err)
		}
		t.Skipf("oidc-provider is not installed: run %q in %s", "npm ci", npmFile())
	}
	return startServer(t, command, env...)
}

// openerName is the program that the system opens pages with; empty: it cannot be replaced.
var openerName = map[string]string{"linux": "xdg-open", "darwin": "open"}[runtime.GOOS]

// openPage makes this test binary act as that program: it reports the page to the test.
func openPage(page string) error {
	res, err := http.PostForm(os.Getenv("PATCHBAY_OPENED"), url.Values{"page": {page}})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// opener puts this test binary in the place of the program that opens pages. It returns the
// environment for that, and the pages.
func opener(t *testing.T) (env []string, pages <-chan string) {
	t.Helper()
	if openerName == "" {
		t.Skipf("on %s the program that opens pages cannot be replaced", runtime.GOOS)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, openerName)); err != nil {
		t.Fatal(err)
	}
	opened := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { opened <- r.FormValue("page") }))
	t.Cleanup(srv.Close)
	return []string{
		"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"), "DISPLAY=:0", "WSL_DISTRO_NAME=", "PATCHBAY_OPENED=" + srv.URL,
	}, opened
}

// user runs the program as a user with a separate home folder.
type user struct {
	t   *testing.T
	env []string
}

func newUser(t *testing.T, env ...string) *user {
	return &user{t, append(append(home(t), "PATCHBAY_KEYRING=off"), env...)}
}

// runs runs a command of the program to its end, with an exit code, and returns what it printed.
func (u *user) runs(code int, args ...string) (stdout, stderr string) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), dialogueLimit)
	defer cancel()
	stdout, stderr, err := run(ctx, patchbay(u.t, args...), u.env...)
	if got := exitCode(err); got != code {
		u.t.Fatalf("patchbay %q ended with %d (%v), want %d\nstdout: %s\nstderr: %s", args, got, err, code, stdout, stderr)
	}
	return stdout, stderr
}

// logIn logs a user in with the browser that the program opens, where they sign in first if they
// have not done so before.
func (u *user) logIn(p *person, pages <-chan string, server string, signsIn bool, flags ...string) (said string) {
	u.t.Helper()
	login := begin(u.t, patchbay(u.t, append([]string{"login", server}, flags...)...), u.env...)
	login.hears("log in with the browser that opens")
	p.opens(pages)
	if signsIn {
		p.signIn()
	}
	p.agree("orders")
	p.Reads("You can close this page")
	return login.ends(0)
}

// opens opens the page to which a program sends the user.
func (p *person) opens(pages <-chan string) {
	p.t.Helper()
	select {
	case page := <-pages:
		p.GoTo(page)
	case <-time.After(dialogueLimit):
		p.t.Fatal("no page was opened")
	}
}

// signIn types name and password into the page of the authorization server.
func (p *person) signIn() {
	p.t.Helper()
	p.Write("Enter any login", "alice")
	p.Write("and password", "wonderland")
	p.Press("button", "Sign-in")
}

// agree checks the requested scopes on the consent page, and consents.
func (p *person) agree(scope string) {
	p.t.Helper()
	p.Reads("Authorize")
	p.Reads(scope)
	p.Press("button", "Continue")
}

// takeBack revokes the consent.
func (p *person) takeBack(issuer string) {
	p.t.Helper()
	p.GoTo(issuer + "/agreed")
	p.Press("button", "Take back")
	p.Reads("Nobody has access.")
}

// startShop starts a shop that requires a credential, and returns its address.
func startShop(t *testing.T, auth string) string {
	t.Helper()
	return startServer(t, patchbay(t, "serve", "shop", "--http", "127.0.0.1:0", "--auth", auth, "--auth-scope", "orders"), home(t)...)
}

// orders is a call to the shop.
func orders(server string) []string { return []string{"call", "get-orders", "-s", server} }

// A user of the program logs in with a browser at a server that a real authorization server
// protects: discovery, registration, PKCE, consent, and a token that is valid only there.
// AUTH-26-004.
func TestProgramLogsIn(t *testing.T) {
	t.Parallel()
	issuer := startIDP(t, "jwt", 3600)
	p := newPerson(t)
	shop := startShop(t, "jwt:"+issuer)
	env, pages := opener(t)
	u := newUser(t, env...)

	_, said := u.runs(3, orders(shop)...)
	if !strings.Contains(said, "patchbay login "+shop) {
		t.Errorf("nobody is logged in, and the program says %q", said)
	}
	if said := u.logIn(p, pages, shop, true); !strings.Contains(said, issuer) {
		t.Errorf("login said %q, without the issuer %q", said, issuer)
	}
	got, _ := u.runs(0, orders(shop)...)
	if !strings.Contains(got, "ord-") {
		t.Errorf("get-orders printed %q, want orders", got)
	}
	who, _ := u.runs(0, "whoami", shop)
	if !strings.Contains(who, issuer) || !strings.Contains(who, "orders") {
		t.Errorf("whoami printed %q, want the issuer %q and the scope", who, issuer)
	}
	token, _ := u.runs(0, "token", "get", shop)
	token = strings.TrimSpace(token)
	if strings.Contains(who, token) {
		t.Error("whoami printed the token")
	}

	// The same token at another server of the same issuer: AUTH-26-067, AUTH-26-114, SEC-26-007.
	other := startShop(t, "jwt:"+issuer)
	for server, want := range map[string]int{shop: http.StatusOK, other: http.StatusUnauthorized} {
		if status := knock(t, server, token); status != want {
			t.Errorf("a token for %s at %s: HTTP %d, want %d", shop, server, status, want)
		}
	}

	u.runs(0, "logout", shop)
	u.runs(3, orders(shop)...)
}

// The metadata of the authorization server has everything that clients need. AUTH-26-008,
// AUTH-26-051, AUTH-26-101, XAUTH-26-003.
func TestIssuerSaysWhatItOffers(t *testing.T) {
	t.Parallel()
	issuer := startIDP(t, "jwt", 3600)
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		res, err := http.Get(issuer + path)
		if err != nil {
			t.Fatal(err)
		}
		var says struct {
			Issuer     string   `json:"issuer"`
			Challenges []string `json:"code_challenge_methods_supported"`
			Named      bool     `json:"authorization_response_iss_parameter_supported"`
			Methods    []string `json:"token_endpoint_auth_methods_supported"`
			Algorithms []string `json:"token_endpoint_auth_signing_alg_values_supported"`
		}
		err = json.NewDecoder(res.Body).Decode(&says)
		res.Body.Close()
		if err != nil || says.Issuer != issuer || !slices.Contains(says.Challenges, "S256") || !says.Named ||
			!slices.Contains(says.Methods, "private_key_jwt") || !slices.Contains(says.Algorithms, "ES256") {
			t.Errorf("%s says %+v (error %v)", path, says, err)
		}
	}
}

// knock sends a request with a token and returns the status of the answer.
func knock(t *testing.T, server, token string) (status int) {
	t.Helper()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server, strings.NewReader(hello))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// A user who does not consent gets an error, and is not logged in.
func TestProgramIsDenied(t *testing.T) {
	t.Parallel()
	issuer := startIDP(t, "jwt", 3600)
	p := newPerson(t)
	shop := startShop(t, "jwt:"+issuer)
	env, pages := opener(t)
	u := newUser(t, env...)
	login := begin(t, patchbay(t, "login", shop), u.env...)
	p.opens(pages)
	p.signIn()
	p.Reads("Authorize")
	p.Press("link", "[ Cancel ]")
	p.Reads("You can close this page")
	said := login.ends(3)
	for _, want := range []string{"access_denied", "End-User aborted interaction", issuer, "patchbay login " + shop} {
		if !strings.Contains(said, want) {
			t.Errorf("the user did not agree, and login said %q, want %q in it", said, want)
		}
	}
	u.runs(3, "whoami", shop)
}

// An authorization server without registration requires a known client: the program says so, and
// accepts one, with any port of loopback. Its login is refreshed without naming it again.
func TestProgramIsAKnownClient(t *testing.T) {
	t.Parallel()
	issuer := startIDPWith(t, nil, "jwt", "6", "closed")
	p := newPerson(t)
	shop := startShop(t, "jwt:"+issuer+",leeway=0s")
	env, pages := opener(t)
	u := newUser(t, env...)
	_, said := u.runs(3, "login", shop)
	if !strings.Contains(said, "has no client registration") || !strings.Contains(said, "patchbay login "+shop+" --client-id ID") {
		t.Errorf("login said %q, want what to do", said)
	}
	u.logIn(p, pages, shop, true, "--client-id", "known")
	first, _ := u.runs(0, "token", "get", shop)
	for deadline := time.Now().Add(dialogueLimit); ; {
		u.runs(0, orders(shop)...)
		if next, _ := u.runs(0, "token", "get", shop); next != first {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the token was never refreshed")
		}
	}
	if who, _ := u.runs(0, "whoami", shop); !strings.Contains(who, "client  known") {
		t.Errorf("whoami printed %q, want the client", who)
	}
}

// A user with a browser on another machine pastes its final address. AUTH-26-050.
func TestProgramLogsInByPaste(t *testing.T) {
	t.Parallel()
	issuer := startIDP(t, "jwt", 3600)
	p := newPerson(t)
	shop := startShop(t, "jwt:"+issuer)
	u := newUser(t)
	login := begin(t, patchbay(t, "login", "--no-browser", shop), u.env...)
	page := login.hears(`to log in, go to\n +(http\S+)\n`)
	asked, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	p.GoTo(page)
	p.signIn()
	p.Reads("orders")
	end := p.SentAway("Continue", asked.Query().Get("redirect_uri"))
	if u, err := url.Parse(end); err != nil || u.Query().Get("iss") != issuer {
		t.Errorf("the browser is sent to %q, want the issuer %q in it", end, issuer)
	}
	login.says(end)
	login.ends(0)
	u.runs(0, orders(shop)...)
}

// tokenPause is the time between two looks at a token, each of which starts a program.
const tokenPause = 200 * time.Millisecond

// Tokens expire, and are refreshed without the user; each refresh rotates the refresh token. After
// the consent is revoked, the program says what to do. AUTH-26-092.
func TestTokensEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ format, verifier string }{
		{"jwt", "jwt:%s,leeway=0s"},
		{"opaque", "introspect:%s,client=shop,secret=%s,ttl=0s"},
	} {
		t.Run(tt.format, func(t *testing.T) {
			t.Parallel()
			issuer := startIDP(t, tt.format, 6)
			p := newPerson(t)
			secret := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(secret, []byte(secretOfShop), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []any{issuer, secret}
			shop := startShop(t, fmt.Sprintf(tt.verifier, args[:strings.Count(tt.verifier, "%s")]...))
			env, pages := opener(t)
			u := newUser(t, env...)
			u.logIn(p, pages, shop, true)
			token := func() string { text, _ := u.runs(0, "token", "get", shop); return text }
			first := token()
			deadline := time.Now().Add(dialogueLimit)
			for ; token() == first; time.Sleep(tokenPause) {
				u.runs(0, orders(shop)...) // before and after the refresh alike
				if time.Now().After(deadline) {
					t.Fatal("the token was never refreshed")
				}
			}
			for second := token(); token() == second; time.Sleep(tokenPause) { // with the refresh token that came with it
				if time.Now().After(deadline) {
					t.Fatal("the token was refreshed once alone")
				}
			}
			for ; knock(t, shop, strings.TrimSpace(first)) != http.StatusUnauthorized; time.Sleep(tokenPause) {
				if time.Now().After(deadline) {
					t.Fatal("a token that ended is still good")
				}
			}

			p.takeBack(issuer)
			var said string
			for code := 0; code == 0; time.Sleep(tokenPause) {
				ctx, cancel := context.WithTimeout(t.Context(), dialogueLimit)
				var err error
				_, said, err = run(ctx, patchbay(t, orders(shop)...), u.env...)
				cancel()
				if code = exitCode(err); code != 0 && code != 3 || time.Now().After(deadline) {
					t.Fatalf("after the consent was taken back, the program ended with %d: %s", code, said)
				}
			}
			if !strings.Contains(said, "no longer accepts the login") || !strings.Contains(said, "patchbay login "+shop) {
				t.Errorf("after the consent was taken back, the program says %q, want what to do", said)
			}
			u.logIn(p, pages, shop, false)
			u.runs(0, orders(shop)...)
		})
	}
}
