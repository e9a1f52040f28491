package steer

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steps"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// payload is that of the access token.
const payload = `{"aud":"AUD","sub":"ada","exp":4102444800}`

// world is an MCP server that wants a login, with its authorization server. The function lie changes an answer, by its path.
type world struct {
	*httptest.Server
	lie  func(path string, v map[string]any) (status int)
	mute bool // the challenge names nothing

	behind *mcp.Server

	mu    sync.Mutex
	seen  []string // every secret that was sent or received; guarded by mu
	token string   // guarded by mu
}

func newWorld(t *testing.T) *world {
	w := &world{lie: func(string, map[string]any) int { return 0 }, behind: &mcp.Server{Name: "behind", Version: "1"}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := map[string]any{}
	status := http.StatusOK
	switch path := r.URL.Path; path {
	case "/.well-known/oauth-protected-resource/mcp":
		v["resource"], v["authorization_servers"] = w.URL+"/mcp", []string{w.URL}
	case "/.well-known/oauth-authorization-server":
		v = map[string]any{"issuer": w.URL, "authorization_endpoint": w.URL + "/authorize", "token_endpoint": w.URL + "/token", "registration_endpoint": w.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic", "none"}, "authorization_response_iss_parameter_supported": true}
	case "/register":
		status = http.StatusCreated
		v["client_id"], v["client_secret"], v["registration_access_token"], v["token_endpoint_auth_method"] = "c1", "planted-secret", "planted-registration", "client_secret_basic"
	case "/authorize":
		q := r.URL.Query()
		w.seen = append(w.seen, q.Get("state"), q.Get("code_challenge"))
		v["code"], v["state"], v["iss"] = "planted-code", q.Get("state"), w.URL
		w.lie(path, v)
		back := url.Values{}
		for name, value := range v {
			back.Set(name, fmt.Sprint(value))
		}
		http.Redirect(rw, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
		return
	case "/token":
		r.ParseForm()
		w.seen = append(w.seen, r.Form.Get("code_verifier"))
		aud := strings.ReplaceAll(payload, "AUD", w.URL+"/mcp")
		v["access_token"], v["token_type"], v["expires_in"], v["refresh_token"] = "eyJplanted."+base64.RawURLEncoding.EncodeToString([]byte(aud))+".sig", "Bearer", 3600, "planted-refresh"
		v["echo"] = r.Form.Get("code_verifier")
		v["error_description"] = "got " + r.Form.Get("code_verifier") + " and " + r.Form.Get("code")
	default:
		if w.token == "" || r.Header.Get("Authorization") != "Bearer "+w.token {
			if !w.mute {
				rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+w.URL+`/.well-known/oauth-protected-resource/mcp"`)
			}
			rw.Header().Set("Set-Cookie", "planted-cookie=1")
			http.Error(rw, "who are you?", http.StatusUnauthorized)
			return
		}
		w.mu.Unlock() // a subscription lasts
		w.behind.ServeHTTP(rw, r)
		w.mu.Lock()
		return
	}
	if s := w.lie(r.URL.Path, v); s != 0 {
		status = s
	}
	if access, ok := v["access_token"].(string); ok && status == http.StatusOK {
		w.token = access
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	json.NewEncoder(rw).Encode(v)
}

// noVault keeps logins in memory.
type noVault struct {
	mu   sync.Mutex
	list map[string][]login.Record
	keys sync.Map // of locks, by name
}

func (v *noVault) Load(_ context.Context, server string) ([]login.Record, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.list[server]), nil
}

func (v *noVault) Save(_ context.Context, r *login.Record) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.list == nil {
		v.list = map[string][]login.Record{}
	}
	v.list[r.Key.Server] = []login.Record{*r}
	return nil
}

func (v *noVault) Delete(_ context.Context, k login.Key) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.list, k.Server)
	return nil
}

func (v *noVault) Lock(_ context.Context, name string) (func(), error) {
	key, _ := v.keys.LoadOrStore(name, new(sync.Mutex))
	key.(*sync.Mutex).Lock()
	return key.(*sync.Mutex).Unlock, nil
}

// behind returns a gateway with the server web of a world, and what it has reported.
func behind(t *testing.T, w *world) (g *Gateway, states <-chan gateway.State, acted <-chan string) {
	t.Helper()
	saw, did := make(chan gateway.State, 100), make(chan string, 10)
	gw := &gateway.Gateway{Name: "g", Version: "1", OnStatus: func(s gateway.Status) {
		if s.Name == "web" {
			saw <- s.State
		}
	}}
	env := &launch.Env{Vault: new(noVault), Login: func(s config.Server, err error) (string, bool) {
		if launch.WantsLogin(err, s) {
			return "log in", false
		}
		return "", false
	}}
	s := &launch.Servers{Gateway: gw, Env: env}
	g = &Gateway{Servers: s, Calls: new(Calls), Sessions: new(Sessions), Tools: gw.KeptToolsOf, Report: func() *health.Report { return &health.Report{} },
		Acted: func(by string, o *Outcome) { did <- by + " " + o.Action + " " + o.Text }}
	t.Cleanup(func() { g.Ending(s.Close)() })
	s.Set([]config.Server{{Name: "web", URL: w.URL + "/mcp"}, {Name: "tool", Command: "no-such-command"}}, nil, "")
	return g, saw, did
}

func reach(t *testing.T, states <-chan gateway.State, want gateway.State) {
	t.Helper()
	for {
		select {
		case s := <-states:
			if s == want {
				return
			}
		case <-t.Context().Done():
			t.Fatalf("the server does not become %s", want)
		}
	}
}

func flowOf(t *testing.T, g *Gateway, action string) *Flow {
	t.Helper()
	v, err := g.Login(t.Context(), "web", "as#ada", action)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*Flow)
}

// finish waits for the end of the login, as a person who goes to the page if there is one, and returns it.
func finish(t *testing.T, g *Gateway, f *Flow) *Flow {
	t.Helper()
	if f.Page != "" {
		res, err := http.Get(f.Page)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	g.flows.mu.Lock()
	running := g.flows.last["web"]
	g.flows.mu.Unlock()
	<-running.done
	return flowOf(t, g, "")
}

// tellsNothing checks that no secret of a world is in a login as the page gets it.
func tellsNothing(t *testing.T, w *world, f *Flow) {
	t.Helper()
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, secret := range append(w.seen, "planted", "eyJ", w.token) {
		if secret != "" && strings.Contains(string(raw), secret) {
			t.Errorf("the login tells %q:\n%s", secret, raw)
		}
	}
}

// marked returns the rules with a mark, each with the name of its step.
func marked(f *Flow, mark string) (list []string) {
	for _, s := range f.Steps {
		for _, c := range s.Checks {
			if c.Mark == mark {
				list = append(list, c.Rule+" "+s.Name)
			}
		}
	}
	return list
}

// A person logs in at a server from the page: the state of the server becomes ready without a restart, a second tab joins the login,
// the steps are shown without a secret, the token by its claims, and the audit log gets a line with the person.
func TestLoginFromThePage(t *testing.T) {
	w := newWorld(t)
	g, states, acted := behind(t, w)
	reach(t, states, gateway.NeedsLogin)
	if f := flowOf(t, g, ""); f.State != "none" {
		t.Errorf("before a login: %+v", f)
	}
	first := flowOf(t, g, "start")
	if first.State != "running" || first.Host != strings.TrimPrefix(w.URL, "http://") || !strings.HasPrefix(first.Page, w.URL+"/authorize?") {
		t.Fatalf("a login that has begun: %+v", first)
	}
	if second := flowOf(t, g, "start"); second.Page != first.Page {
		t.Errorf("a second tab began another login, %s", second.Page)
	}
	f := finish(t, g, first)
	if f.State != "done" || f.Text != "logged in" || f.Page != "" {
		t.Errorf("after the login: %+v", f)
	}
	reach(t, states, gateway.Ready)
	if got, want := <-acted, "as#ada login web: logged in"; got != want {
		t.Errorf("the audit log gets %q, want %q", got, want)
	}
	var names []string
	for _, s := range f.Steps {
		names = append(names, s.Name)
	}
	if want := []string{"request without a token", "metadata of the server", "metadata of the authorization server", "registration of the client", "browser", "token", "request with the token"}; !slices.Equal(names, want) {
		t.Errorf("steps %q, want %q", names, want)
	}
	if faults := marked(f, "fault"); faults != nil {
		t.Errorf("a login that works has the faults %q", faults)
	}
	if want := []steps.Claim{{Name: "aud", Value: `"` + w.URL + `/mcp"`}, {Name: "exp", Value: "4102444800 (2100-01-01T00:00:00Z)"}, {Name: "sub", Value: `"ada"`}}; !slices.Equal(f.Claims, want) {
		t.Errorf("claims %q, want %q", f.Claims, want)
	}
	tellsNothing(t, w, f)
}

// A login that fails shows where, with the rule that was broken.
func TestLoginThatFails(t *testing.T) {
	for name, tt := range map[string]struct {
		lie   func(w *world, path string, v map[string]any) int
		mute  bool
		fault string // the rule, and the step
		text  string
	}{
		"no metadata": {mute: true, fault: "AUTH-26-016 request without a token", text: "the login failed", lie: func(_ *world, path string, _ map[string]any) int {
			if strings.HasPrefix(path, "/.well-known/") || path == "/register" {
				return http.StatusNotFound
			}
			return 0
		}},
		"another server": {fault: "AUTH-26-057 metadata of the server", text: "it describes", lie: func(_ *world, path string, v map[string]any) int {
			if v["resource"] != nil {
				v["resource"] = "https://elsewhere.example/mcp"
			}
			return 0
		}},
		"no authorization server": {fault: "AUTH-26-013 metadata of the server", text: "names no authorization server", lie: func(_ *world, path string, v map[string]any) int {
			if v["resource"] != nil {
				v["authorization_servers"] = []string{}
			}
			return 0
		}},
		"another issuer": {fault: "AUTH-26-022 metadata of the authorization server", text: "its metadata is for", lie: func(_ *world, path string, v map[string]any) int {
			if v["issuer"] != nil {
				v["issuer"] = "https://elsewhere.example"
			}
			return 0
		}},
		"no PKCE": {fault: "AUTH-26-100 metadata of the authorization server", text: "PKCE", lie: func(_ *world, path string, v map[string]any) int {
			delete(v, "code_challenge_methods_supported")
			return 0
		}},
		"no registration": {fault: "AUTH-26-011 registration of the client", text: "invalid_redirect_uri", lie: func(_ *world, path string, v map[string]any) int {
			if path == "/register" {
				clear(v)
				v["error"] = "invalid_redirect_uri"
				return http.StatusBadRequest
			}
			return 0
		}},
		"another place to come back from": {fault: "AUTH-26-052 browser", text: "another authorization server", lie: func(_ *world, path string, v map[string]any) int {
			if path == "/authorize" {
				v["iss"] = "https://elsewhere.example"
			}
			return 0
		}},
		"a person who declines": {fault: "AUTH-26-062 browser", text: "access_denied", lie: func(_ *world, path string, v map[string]any) int {
			if path == "/authorize" {
				delete(v, "code")
				v["error"] = "access_denied"
			}
			return 0
		}},
		"a refused code, with an echo": {fault: "AUTH-26-062 token", text: "invalid_grant", lie: func(_ *world, path string, v map[string]any) int {
			if path == "/token" {
				v["error"] = "invalid_grant"
				delete(v, "access_token")
				return http.StatusBadRequest
			}
			return 0
		}},
		"a token for another server": {fault: "AUTH-26-067 token", text: "logged in", lie: func(_ *world, path string, v map[string]any) int {
			if path == "/token" {
				v["access_token"] = "eyJplanted." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":["https://elsewhere.example"]}`)) + ".sig"
			}
			return 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mute, w.lie = tt.mute, func(path string, v map[string]any) int { return tt.lie(w, path, v) }
			g, _, acted := behind(t, w)
			f := finish(t, g, flowOf(t, g, "start"))
			if !slices.Contains(marked(f, "fault"), tt.fault) || !strings.Contains(f.Text, tt.text) {
				raw, _ := json.MarshalIndent(f, "", " ")
				t.Errorf("%s with the faults %q, want %q and %q\n%s", f.Text, marked(f, "fault"), tt.text, tt.fault, raw)
			}
			tellsNothing(t, w, f)
			if line := <-acted; strings.Contains(line, "planted") || !strings.HasPrefix(line, "as#ada login web: ") {
				t.Errorf("the audit log gets %q", line)
			}
		})
	}
}

// A login can be canceled, and another one begins anew. A server without a URL takes none, and nobody can name another one.
func TestLoginCanceled(t *testing.T) {
	g, _, acted := behind(t, newWorld(t))
	first := flowOf(t, g, "start")
	if f := flowOf(t, g, "cancel"); f.State != "canceled" || f.Text != "the login was canceled" || f.Page != "" {
		t.Errorf("after cancel: %+v", f)
	}
	<-acted
	if _, err := http.Get(first.Page); err == nil {
		t.Error("the listener for the browser is still there")
	}
	if f := finish(t, g, flowOf(t, g, "start")); f.State != "done" {
		t.Errorf("the next login: %+v", f)
	}
	for server, want := range map[string]string{"tool": `nobody can log in to "tool" from here: it is not reached by a URL`, "https://evil.example": `no server "https://evil.example"`} {
		if _, err := g.Login(t.Context(), server, "as#ada", "start"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", server, err, want)
		}
	}
	g.Ending(func() {})()
	if _, err := g.Login(t.Context(), "web", "as#ada", "start"); err == nil || !strings.Contains(err.Error(), "the gateway ends") {
		t.Errorf("after the end: error %v", err)
	}
}

// Every rule that a step names is in the table of the specification.
func TestLoginRules(t *testing.T) {
	code, err := os.ReadFile("../steps/check.go")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("../../../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := regexp.MustCompile(`"(AUTH-[0-9-]+)"`).FindAllStringSubmatch(string(code), -1)
	if len(rules) < 15 {
		t.Fatalf("%d rules", len(rules))
	}
	for _, r := range rules {
		if !strings.Contains(string(table), "| "+r[1]+" |") {
			t.Errorf("%s is not a rule of docs/protocol.md", r[1])
		}
	}
}
