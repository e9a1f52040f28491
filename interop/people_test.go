package interop

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/mcp"
)

// secretOfGateway is the client secret of a gateway at the authorization server.
const secretOfGateway = "secret of the gateway"

// startPeople starts a gateway whose people log in at an authorization server that registers no
// clients, and returns its address.
func startPeople(t *testing.T, env ...string) (gateway, issuer string) {
	t.Helper()
	gateway, issuer, _ = startAdministered(t, env...)
	return gateway, issuer
}

// startAdministered is startPeople with the URL of the administration.
func startAdministered(t *testing.T, env ...string) (gateway, issuer, admin string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the authorization server has to know the address first
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	issuer = startIDPWith(t, nil, "jwt", "3600", "closed", "http://"+address+"/oauth/callback")
	beside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secret": secretOfGateway,
		"gateway.yaml": fmt.Sprintf("listen: {http: %q, admin: %q}\nlogin: {issuer: %q, client: gateway, secret: {file: secret}, dir: state}\nviews: {all: {}, few: {tools: [\"*orders\"]}}\n",
			address, beside.Addr(), issuer),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	beside.Close()
	startServer(t, patchbay(t, "up", "-s", "shop", "--gateway", filepath.Join(dir, "gateway.yaml")), append(home(t), env...)...)
	return "http://" + address + "/mcp", issuer, "http://" + beside.Addr().String()
}

// agrees is a person who agrees on the page of the gateway, and logs in at the authorization server.
func (p *person) agrees(program string) {
	p.t.Helper()
	p.consents(program)
	p.Reads("You can close this page")
}

// consents is agrees up to the page of the program.
func (p *person) consents(program string) {
	p.t.Helper()
	p.Reads(program + " wants to use")
	p.Reads("a program on this computer")
	p.Press("button", "Agree and log in")
	p.signIn()
	p.Reads("Authorize")
	p.Press("button", "Continue")
}

// ofGateway fails the test if a token is not one of a gateway, for one of its resources.
func ofGateway(t *testing.T, token, gateway, issuer, resource string) {
	t.Helper()
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		t.Fatalf("the token %q is not a JWT", token)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var c struct {
		Issuer   string `json:"iss"`
		Audience string `json:"aud"`
		Subject  string `json:"sub"`
		Provider string `json:"idp"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil || c.Issuer != strings.TrimSuffix(gateway, "/mcp") || c.Audience != resource || c.Subject != "alice" || c.Provider != issuer {
		t.Errorf("the token says %+v (error %v); want the audience %s", c, err, resource)
	}
	for server, want := range map[string]int{resource: http.StatusOK, gateway + "/v/few": http.StatusOK, gateway: http.StatusOK} {
		if server != resource {
			want = http.StatusUnauthorized
		}
		if status := knock(t, server, strings.TrimSpace(token)); status != want {
			t.Errorf("a token for %s at %s: HTTP %d, want %d", resource, server, status, want)
		}
	}
}

// The program registers itself at the gateway, its user agrees and logs in, and it gets tokens of
// the gateway. It logs out, and its token is refused.
func TestPeopleWithProgram(t *testing.T) {
	t.Parallel()
	gateway, issuer := startPeople(t)
	p := newPerson(t)
	env, pages := opener(t)
	u := newUser(t, env...)
	login := begin(t, patchbay(t, "login", gateway), u.env...)
	p.opens(pages)
	p.agrees("Patchbay")
	login.ends(0)
	tools, _ := u.runs(0, "tools", "-s", gateway)
	if !strings.Contains(tools, "get-orders") {
		t.Errorf("the tools are %q", tools)
	}
	token, _ := u.runs(0, "token", "get", gateway)
	ofGateway(t, token, gateway, issuer, gateway)
	u.runs(0, "logout", gateway)
	if status := knock(t, gateway, strings.TrimSpace(token)); status != http.StatusUnauthorized {
		t.Errorf("the token after logout: HTTP %d, want 401", status)
	}
}

// The official TypeScript client logs in at a view of the gateway, and refreshes its token.
func TestPeopleWithTypeScript(t *testing.T) {
	t.Parallel()
	gateway, issuer := startPeople(t)
	p := newPerson(t)
	view := gateway + "/v/few"
	client := begin(t, []string{node(t), npmFile("peers", "login.mjs"), view})
	p.GoTo(client.hears(`log in at (http\S+)`))
	p.agrees("TypeScript host")
	token := client.hears(`token (\S+)`)
	ofGateway(t, token, gateway, issuer, view)
	if tools := client.hears(`tools (\S+)`); !strings.Contains(tools, "get-orders") || strings.Contains(tools, "cart") {
		t.Errorf("the tools are %q, want those of the view", tools)
	}
	next := client.hears(`next (\S+)`)
	if next == token {
		t.Error("the token was not refreshed")
	}
	ofGateway(t, next, gateway, issuer, view)
	client.ends(0)
}

// The official Go SDK logs in.
func TestPeopleWithGoSDK(t *testing.T) {
	t.Parallel()
	gateway, issuer := startPeople(t)
	p := newPerson(t)
	pages := make(chan string, 1)
	back, err := login.NewLoopback(func(_ context.Context, page string) error { pages <- page; return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*dialogueLimit)
	defer cancel()
	handler, err := sdkauth.NewAuthorizationCodeHandler(&sdkauth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &sdkauth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Go host", RedirectURIs: []string{back.RedirectURL()}, GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}},
		RedirectURL: back.RedirectURL(),
		AuthorizationCodeFetcher: func(ctx context.Context, args *sdkauth.AuthorizationArgs) (*sdkauth.AuthorizationResult, error) {
			u, err := back.Visit(ctx, args.URL)
			if err != nil {
				return nil, err
			}
			q := u.Query()
			return &sdkauth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var tools []string
	ended := make(chan error, 1)
	go func() {
		client := gosdk.NewClient(&gosdk.Implementation{Name: "go", Version: "1"}, nil)
		s, err := client.Connect(ctx, &gosdk.StreamableClientTransport{Endpoint: gateway, OAuthHandler: handler}, nil)
		if err == nil {
			defer s.Close()
			var list *gosdk.ListToolsResult
			if list, err = s.ListTools(ctx, nil); err == nil {
				for _, tool := range list.Tools {
					tools = append(tools, tool.Name)
				}
			}
		}
		ended <- err
	}()
	p.opens(pages)
	p.agrees("Go host")
	if err := <-ended; err != nil || !slices.ContainsFunc(tools, func(name string) bool { return strings.Contains(name, "get-orders") }) {
		t.Fatalf("tools %q, error %v", tools, err)
	}
	source, err := handler.TokenSource(ctx)
	if err != nil {
		t.Fatal(err)
	}
	token, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	ofGateway(t, token.AccessToken, gateway, issuer, gateway)
}

// A client that the gateway knows by its metadata document alone logs in at a view. Its user reads where the document
// is published. A document about another client, or without the redirect URI, is refused on a page of the gateway.
func TestPeopleByDocument(t *testing.T) {
	t.Parallel()
	pages := make(chan string, 1)
	back, err := login.NewLoopback(func(_ context.Context, page string) error { pages <- page; return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	at, env := document(t, "http://127.0.0.1/callback", nil) // with any port: RFC 8252, 7.3
	_, authorities, _ := strings.Cut(env, "=")
	gateway, issuer := startPeople(t, "SSL_CERT_FILE="+authorities)
	view := gateway + "/v/few"
	p := newPerson(t)
	tr := &login.Transport{Server: view, RedirectURL: back.RedirectURL(), Visit: back.Visit, DocumentURL: at}
	client := &mcp.Client{Name: "till", HTTPClient: &http.Client{Transport: tr}, Limits: mcp.Limits{CallTimeout: dialogueLimit}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*dialogueLimit)
	defer cancel()
	var tools []string
	ended := make(chan error, 1)
	go func() {
		s, err := client.Dial(ctx, view)
		if err != nil {
			ended <- err
			return
		}
		defer s.Close()
		for tool, err := range s.Tools(ctx) {
			if err != nil {
				ended <- err
				return
			}
			tools = append(tools, tool.Name)
		}
		ended <- nil
	}()
	p.opens(pages)
	host, _, _ := strings.Cut(strings.TrimPrefix(at, "https://"), "/")
	p.Reads("as published at " + host)
	p.agrees("Till")
	if err := <-ended; err != nil || len(tools) != 1 || !strings.Contains(tools[0], "orders") {
		t.Fatalf("tools %q, error %v", tools, err)
	}
	l, err := tr.Token(ctx)
	if err != nil || l.Client != at || l.Refresh == "" {
		t.Fatalf("the login is that of %q (error %v), want %q and a refresh token", l.Client, err, at)
	}
	ofGateway(t, string(l.Access), gateway, issuer, view)

	for name, change := range map[string]map[string]any{
		"another client_id": {"client_id": "https://example.com/client.json"},
		"no client_id":      {"client_id": nil},
		"another redirect":  {"redirect_uris": []string{"http://127.0.0.1:9/other"}},
	} {
		at, _ := document(t, "http://127.0.0.1:9/callback", change) // all have the certificate of httptest
		tr := &login.Transport{Server: view, RedirectURL: "http://127.0.0.1:9/callback", DocumentURL: at, Visit: visitPlainly}
		if err := tr.Login(t.Context()); err == nil || !strings.Contains(err.Error(), "HTTP 400") {
			t.Errorf("a document with %s: error %v, want a refusal of the gateway on its own page", name, err)
		}
	}
}

// An administrator logs in for the administration apart: the tokens that hosts have are refused there, with
// words, and the other way round. The administrator ends the logins of a person, with immediate effect.
func TestPeopleAdminister(t *testing.T) {
	t.Parallel()
	gateway, issuer, admin := startAdministered(t)
	env, pages := opener(t)
	u := newUser(t, env...)
	logIn := func(at string) string {
		t.Helper()
		p := newPerson(t)
		login := begin(t, patchbay(t, "login", at), u.env...)
		p.opens(pages)
		p.agrees("Patchbay")
		login.ends(0)
		token, _ := u.runs(0, "token", "get", at)
		return strings.TrimSpace(token)
	}
	usual := logIn(gateway)
	ofGateway(t, usual, gateway, issuer, gateway)
	if _, said := u.runs(3, "restart", "shop", "--admin", admin, "--header", "Authorization: Bearer "+usual); !strings.Contains(said, "the token is for another resource than "+admin+"/admin/v1") {
		t.Errorf("with a token for the gateway, the program says %q", said)
	}
	if _, said := u.runs(3, "restart", "shop", "--admin", admin); !strings.Contains(said, "patchbay login "+admin+"/admin/v1") {
		t.Errorf("without a token, the program says %q", said)
	}
	token := logIn(admin + "/admin/v1")
	if status := knock(t, gateway, token); status != http.StatusUnauthorized {
		t.Errorf("a token for the administration at the gateway: HTTP %d, want 401", status)
	}
	if out, _ := u.runs(0, "restart", "shop", "--admin", admin); !strings.Contains(out, "shop: restarted") {
		t.Errorf("restart printed %q", out)
	}
	if out, _ := u.runs(0, "logins", "list", "--admin", admin); strings.Count(out, "alice") != 2 || !strings.Contains(out, "Patchbay") {
		t.Errorf("logins list printed %q", out)
	}
	if out, _ := u.runs(0, "logins", "end", "alice", "--admin", admin); !strings.Contains(out, "alice: 2 logins ended") {
		t.Errorf("logins end printed %q", out)
	}
	if status := knock(t, gateway, usual); status != http.StatusUnauthorized {
		t.Errorf("a token after the end of the login: HTTP %d, want 401", status)
	}
	u.runs(3, "restart", "shop", "--admin", admin)
}

// A person whom the gateway does not admit is not logged in, and the program says why.
func TestPeopleAreRefused(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	issuer := startIDPWith(t, nil, "jwt", "3600", "closed", "http://"+address+"/oauth/callback")
	dir := t.TempDir()
	file := filepath.Join(dir, "gateway.yaml")
	text := fmt.Sprintf("listen: {http: %q}\nlogin: {issuer: %q, client: gateway, secret: %q, require: {sub: [bob]}}\n", address, issuer, secretOfGateway)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	gateway := startServer(t, patchbay(t, "serve", "shop", "--gateway", file), home(t)...)
	p := newPerson(t)
	env, pages := opener(t)
	u := newUser(t, env...)
	login := begin(t, patchbay(t, "login", gateway), u.env...)
	p.opens(pages)
	p.agrees("Patchbay")
	if said := login.ends(3); !strings.Contains(said, "the claim sub has none of the required values") {
		t.Errorf("login said %q", said)
	}
}
