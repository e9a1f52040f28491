package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// guarded is an MCP server that requires a login, and its authorization server, at which a user
// agrees to everything. All its tokens contain "planted".
type guarded struct {
	*httptest.Server
	mu      sync.Mutex
	n       int
	revoked int
	over    bool // no token is valid, and none is issued
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{}
	g.Server = httptest.NewUnstartedServer(g)
	g.Start()
	t.Cleanup(g.Close)
	return g
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	answer := func(v map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		answer(map[string]any{"resource": g.URL + "/mcp", "authorization_servers": []string{g.URL}, "scopes_supported": []string{"tools"}})
	case "/.well-known/oauth-authorization-server":
		answer(map[string]any{
			"issuer": g.URL, "authorization_endpoint": g.URL + "/authorize", "token_endpoint": g.URL + "/token", "registration_endpoint": g.URL + "/register",
			"revocation_endpoint": g.URL + "/revoke", "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		})
	case "/register":
		w.WriteHeader(http.StatusCreated)
		answer(map[string]any{"client_id": "c1"})
	case "/authorize":
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"planted-code"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	case "/token":
		if g.over {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant"}`)
			return
		}
		g.n++
		answer(map[string]any{"access_token": fmt.Sprint("planted-access-", g.n), "token_type": "Bearer", "expires_in": 3600, "refresh_token": fmt.Sprint("planted-refresh-", g.n)})
	case "/revoke":
		g.revoked++
		g.n++ // invalidates all tokens
	default:
		if g.n == 0 || r.Header.Get("Authorization") != fmt.Sprint("Bearer planted-access-", g.n) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+g.URL+`/.well-known/oauth-protected-resource/mcp"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		stubHTTP.ServeHTTP(w, r)
	}
}

// visitor is a standard error whose reader follows its links.
type visitor struct {
	said  bytes.Buffer
	paste io.Writer // nil: the browser is on this machine; else the final address is typed
}

func (v *visitor) Write(p []byte) (int, error) {
	if page, ok := strings.CutPrefix(string(p), "  http"); ok {
		go v.visit("http" + strings.TrimSpace(page))
	}
	return v.said.Write(p)
}

func (v *visitor) visit(page string) {
	req, err := http.NewRequest(http.MethodGet, page, nil)
	if err != nil {
		return
	}
	res, err := http.DefaultTransport.RoundTrip(req) // does not follow redirects
	if err != nil {
		return
	}
	res.Body.Close()
	if at := res.Header.Get("Location"); v.paste != nil {
		io.WriteString(v.paste, at+"\n")
	} else if res, err := http.Get(at); err == nil {
		res.Body.Close()
	}
}

// A login is kept, used by all verbs silently, passed on, shown without its token, and ended. Only
// "token get" shows a token: the test searches every output and file.
func TestLoginLife(t *testing.T) {
	for _, paste := range []bool{false, true} {
		t.Run(fmt.Sprint("paste=", paste), func(t *testing.T) { testLoginLife(t, paste) })
	}
}

func testLoginLife(t *testing.T, paste bool) {
	g, home := newGuarded(t), t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "AppData": home, "PATCHBAY_KEYRING": "off", "PATCHBAY_PASSPHRASE": ""} {
		t.Setenv(name, value)
	}
	t.Chdir(home)
	if err := os.WriteFile("mcp.json", []byte(`{"mcpServers": {"web": {"url": "`+g.URL+`/mcp"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	do := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		var in io.Reader = strings.NewReader("")
		var out bytes.Buffer
		said := &visitor{}
		if paste {
			in, said.paste = io.Pipe()
		}
		code := run(context.Background(), args, in, &out, said)
		stdout, stderr = out.String(), said.said.String()
		if code != want {
			t.Fatalf("patchbay %s exited with %d, want %d:\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
		}
		if shown := stderr; strings.Contains(shown, "planted") || args[0] != "token" && strings.Contains(stdout, "planted") {
			t.Errorf("patchbay %s shows a secret:\n%s%s", strings.Join(args, " "), stdout, stderr)
		}
		return stdout, stderr
	}
	has := func(text, want string) {
		t.Helper()
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, args := range [][]string{{"tools", "-s", "web"}, {"whoami", "web"}, {"token", "get", "web"}} {
		_, stderr := do(exitUnauthorized, args...)
		has(stderr, "hint: patchbay login web")
	}
	if g.n != 0 {
		t.Error("without a person somebody was registered or logged in")
	}
	_, stderr := do(0, "login", "web", "--no-browser")
	has(stderr, "logged in to web")
	stdout, _ := do(0, "tools", "-s", "web", "--verbose", "--trace", filepath.Join(home, "t.jsonl"))
	has(stdout, "args(")
	stdout, _ = do(0, "whoami", "web")
	has(stdout, "scopes  tools")
	has(stdout, "valid for ")
	stdout, _ = do(0, "whoami", "web", "--json")
	has(stdout, `"refresh":true`)
	stdout, stderr = do(0, "token", "get", "web")
	if stdout != "planted-access-1\n" {
		t.Errorf("token get prints %q", stdout)
	}
	has(stderr, "access token for "+g.URL)
	g.mu.Lock()
	g.n++ // the access token has expired
	g.mu.Unlock()
	do(0, "call", "args", "count=1", "-s", "web")
	do(0, "logout", "web")
	if g.revoked != 2 {
		t.Errorf("%d tokens were revoked, want 2", g.revoked)
	}
	do(exitUnauthorized, "whoami", "web")
	_, stderr = do(0, "logout", "web")
	has(stderr, "was not logged in")

	// The consent is revoked: neither token is valid.
	do(0, "login", "web", "--no-browser")
	g.mu.Lock()
	g.n, g.over = g.n+1, true
	g.mu.Unlock()
	_, stderr = do(exitUnauthorized, "tools", "-s", "web")
	has(stderr, "web no longer accepts the login")
	has(stderr, "hint: patchbay login web")
	err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), "planted") {
			t.Errorf("%s shows a secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
