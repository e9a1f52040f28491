package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/interop/internal/browser"
	"github.com/patchbay-dev/patchbay/interop/internal/npm"
)

// startIDP starts the authorization server, oidc-provider with its own pages, and returns its issuer.
func startIDP(t *testing.T) string {
	t.Helper()
	return serving(t, npm.Node(t), npm.File("peers", "idp.mjs"), "jwt", "3600")
}

// startLiar starts an MCP server whose authorization server says in its metadata that it is another one.
func startLiar(t *testing.T) string {
	t.Helper()
	var at string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := map[string]any{}
		switch r.URL.Path {
		case "/.well-known/oauth-protected-resource/mcp":
			v["resource"], v["authorization_servers"] = at+"/mcp", []string{at}
		case "/.well-known/oauth-authorization-server":
			v["issuer"], v["authorization_endpoint"], v["token_endpoint"] = "https://login.example.com", at+"/authorize", at+"/token"
			v["code_challenge_methods_supported"] = []string{"S256"}
		default:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+at+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}))
	t.Cleanup(srv.Close)
	at = srv.URL
	return at + "/mcp"
}

// A person logs in at a server from the page, at the pages of a real authorization server, and calls a tool: the screen
// of the login shows its steps, and the audit log who has logged in and called. The screen of a login that fails, since
// the authorization server lies about its name, says where and by which rule.
func TestLogin(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	issuer := startIDP(t)
	shop := serving(t, path, "serve", "shop", "--http", "127.0.0.1:0", "--auth", "jwt:"+issuer, "--auth-scope", "orders")
	settings := gatewayFile(t)
	servers := filepath.Join(filepath.Dir(settings), "mcp.json")
	if err := os.WriteFile(servers, fmt.Appendf(nil, `{"mcpServers": {"shop": {"url": %q}, "liar": {"url": %q}}}`, shop, startLiar(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	p, origin := opened(t, "up", "--http", "127.0.0.1:0", "--gateway", settings, "--config", servers)
	check := func(where, file string) {
		t.Helper()
		p.Looks(1440, 900, false)
		golden(t, p, file)
		everyLook(p, func(look string) {
			fits(t, p, where+", "+look)
			axe(t, p, where+", "+look)
		})
		p.Looks(1440, 900, false)
	}

	p.Press("link", "Log in to shop")
	other := p.Tab(browser.Eval[string](p, `location.href`)) // shows the same login
	p.Front()
	p.Press("button", "Log in")
	p.Reads("registration of the client")
	check("a login that runs", "login")
	tab := p.Follow("Agree at " + strings.TrimPrefix(issuer, "http://") + " (new tab)")
	signIn(tab)
	tab.Reads("You can close this page")
	other.Front()
	other.Reads("State: ready. logged in")
	p.Front()
	p.Reads("State: ready. logged in")
	p.Reads("request with the token")
	for _, want := range []string{"Claims of the access token", "AUTH-26-052", "aud", shop} {
		p.Reads(want)
	}
	if faults := browser.Eval[int](p, `document.querySelectorAll("main ol .bad").length`); faults > 0 {
		t.Errorf("a login that works shows %d faults\n%s", faults, p.Sees())
	}
	check("a login that is done", "login-done")
	p.GoTo(origin + "/s/shop/tools/get-orders")
	p.Until(`[...document.querySelectorAll("button")].some((b) => b.textContent === "Call" && !b.disabled)`)
	p.Press("button", "Call")
	p.Until(`!!document.querySelector("section.result .status.ok")`)
	p.Reads("ord-")

	p.GoTo(origin + "/?login=liar")
	p.Until(`!!document.querySelector("[data-ready]")`)
	p.Press("button", "Log in")
	p.Reads("the login failed")
	p.Reads(`✖ The issuer is the one that the server names, character by character. the document is of "https://login.example.com"`)
	p.Reads("AUTH-26-022")
	check("a login that fails", "login-failed")

	who := localPerson(t)
	audited(t, settings, who+" config login shop")
	audited(t, settings, who+" config login liar")
	audited(t, settings, who+" call.end get-orders shop page")
}

// A person comes into the page of a gateway by a login at its authorization server, without a token to paste, and calls a
// tool: the audit log has them as the owner of the token.
func TestSignIn(t *testing.T) {
	issuer := startIDP(t)
	settings := gatewayFile(t)
	text, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, fmt.Appendf(text, "auth: [\"jwt:%s\"]\npage: {client: page}\n", issuer), 0o600); err != nil {
		t.Fatal(err)
	}
	p := browser.New(t)
	origin, _, _ := strings.Cut(started(t, "up", "--http", "127.0.0.1:0", "--gateway", settings, "-s", "everything"), "/#")
	p.GoTo(origin + "/s/everything/tools/echo")
	p.Until(`!!document.querySelector("[data-ready=refused]")`)
	everyLook(p, func(look string) {
		fits(t, p, "before the login, "+look)
		axe(t, p, "before the login, "+look)
	})
	p.Looks(1440, 900, false)
	p.Press("button", "Log in")
	signIn(p)
	p.Until(`!!document.querySelector("[data-ready=s]") && location.href === ` + fmt.Sprintf("%q", origin+"/s/everything/tools/echo"))
	begun["/s/everything/tools/echo"](p)
	audited(t, settings, issuer+"#alice call.end echo everything page")
}

// localPerson is the principal of the person who runs this test.
func localPerson(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return "local#" + u.Username
}

// signIn is a person who signs in on the pages of the authorization server, and agrees.
func signIn(p *browser.Person) {
	p.Write("Enter any login", "alice")
	p.Write("and password", "wonderland")
	p.Press("button", "Sign-in")
	p.Reads("Authorize")
	p.Press("button", "Continue")
}

// audited waits for a line of the audit log beside a gateway.yaml: who, the kind, the event or the tool, the server, and
// from where.
func audited(t *testing.T, settings, want string) {
	t.Helper()
	var got []string
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(settings), "audit.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for line := range strings.Lines(string(text)) {
			e := audit.Entry{Principal: new(audit.Principal), Server: new(audit.Server), Client: new(audit.Client)}
			if json.Unmarshal([]byte(line), &e) == nil { // the last one may be half written
				got = append(got, strings.TrimSpace(fmt.Sprintln(e.Principal.ID, e.Kind, e.Event+e.Tool, e.Server.Name, e.Client.Via)))
			}
		}
		if slices.Contains(got, want) {
			return
		}
	}
	t.Errorf("the audit log has no line %q, but\n%s", want, strings.Join(got, "\n"))
}
