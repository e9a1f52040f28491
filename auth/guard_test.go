package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

const resourceURL = "https://mcp.example.com/mcp"

// verifyFunc is a Verifier of a test.
type verifyFunc func(r *http.Request) (*auth.Principal, error)

func (f verifyFunc) Verify(r *http.Request) (*auth.Principal, error) { return f(r) }

// known is a Verifier of Bearer tokens, with their principals.
func known(tokens map[string]*auth.Principal) auth.Verifier {
	return verifyFunc(func(r *http.Request) (*auth.Principal, error) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || tokens[token] == nil {
			return nil, auth.ErrNoCredential
		}
		return tokens[token], nil
	})
}

// resourceServer is a Guard with a Resource, whose tokens are "alice", who may read, and
// "root", who may do everything.
func resourceServer() *auth.Guard {
	return &auth.Guard{
		Verifiers: []auth.Verifier{known(map[string]*auth.Principal{
			"alice": {ID: "https://as.example.com#alice", Subject: "alice", Scopes: []string{"read"}},
			"root":  {ID: "https://as.example.com#root", Subject: "root", Scopes: []string{"admin"}},
		})},
		Resource: &auth.ResourceMetadata{
			Resource: "HTTPS://MCP.example.com/mcp", AuthorizationServers: []string{"https://as.example.com"}, Scopes: []string{"read"},
		},
		Scopes:  []string{"read"},
		Implied: map[string][]string{"admin": {"write"}, "write": {"read"}},
	}
}

// whoami answers with the caller.
var whoami = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "you are "+auth.ID(r))
})

// request sends one through a guard.
func request(t *testing.T, g *auth.Guard, method, target string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	g.Protect(whoami).ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// AUTH-26-001, AUTH-26-077, AUTH-26-069, AUTH-26-068: 401, 403 and 400 as they are tabled, and a challenge
// with each. AUTH-26-016, AUTH-2506-003: the challenge names the metadata. AUTH-26-043: it
// names the scopes. AUTH-26-112: nothing of the server is to be had without a credential.
func TestGuardAnswers(t *testing.T) {
	const meta = `resource_metadata="https://MCP.example.com/mcp?oauth-protected-resource"`
	tests := []struct {
		name      string
		target    string
		header    []string
		status    int
		challenge string // empty: none
	}{
		{"good", "/mcp", []string{"Authorization", "Bearer alice"}, 200, ""},
		{"scheme in another case", "/mcp", []string{"Authorization", "Bearer  alice"}, 401, `Bearer error="invalid_token", scope="read", ` + meta},
		{"nothing", "/mcp", nil, 401, `Bearer scope="read", ` + meta},
		{"unknown token", "/mcp", []string{"Authorization", "Bearer mallory"}, 401, `Bearer error="invalid_token", scope="read", ` + meta},
		{"unknown scheme", "/mcp", []string{"Authorization", "Negotiate abcd"}, 401, `Bearer error="invalid_token", scope="read", ` + meta},
		{"two headers", "/mcp", []string{"Authorization", "Bearer alice", "Authorization", "Bearer alice"}, 400, `Bearer error="invalid_request", scope="read", ` + meta},
		{"two joined", "/mcp", []string{"Authorization", "Bearer alice, Bearer root"}, 400, `Bearer error="invalid_request", scope="read", ` + meta},
		{"no token", "/mcp", []string{"Authorization", "Bearer"}, 400, `Bearer error="invalid_request", scope="read", ` + meta},
		{"empty", "/mcp", []string{"Authorization", ""}, 400, `Bearer error="invalid_request", scope="read", ` + meta},
		{"in the query", "/mcp?access_token=alice", nil, 400, `Bearer error="invalid_request", scope="read", ` + meta},
		{"in the query too", "/mcp?a=b&access_token=alice", []string{"Authorization", "Bearer alice"}, 400, `Bearer error="invalid_request", scope="read", ` + meta},
		{"too long", "/mcp", []string{"Authorization", "Bearer " + strings.Repeat("a", 17<<10)}, 400, `Bearer error="invalid_request", scope="read", ` + meta},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := request(t, resourceServer(), "POST", tt.target, tt.header...)
			text := body(t, res)
			if res.StatusCode != tt.status || res.Header.Get("WWW-Authenticate") != tt.challenge {
				t.Errorf("%s with %q answers %d, %q, want %d, %q", tt.target, tt.header, res.StatusCode, res.Header.Get("WWW-Authenticate"), tt.status, tt.challenge)
			}
			if strings.Contains(text, "you are") != (tt.status == 200) {
				t.Errorf("the body is %q", text)
			}
		})
	}
}

// AUTH-26-006, AUTH-26-010, AUTH-26-012, AUTH-26-013: the metadata is served to everybody, at the
// path of the resource and alone. AUTH-26-059: the resource is canonical, in any spelling.
func TestGuardServesMetadata(t *testing.T) {
	for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"} {
		res := request(t, resourceServer(), "GET", path, "Origin", "https://page.example.com")
		var m map[string]any
		text := body(t, res)
		if err := json.Unmarshal([]byte(text), &m); err != nil || res.StatusCode != 200 {
			t.Fatalf("GET %s answers %d, %q: %v", path, res.StatusCode, text, err)
		}
		if m["resource"] != resourceURL || len(m["authorization_servers"].([]any)) != 1 || m["scopes_supported"].([]any)[0] != "read" {
			t.Errorf("GET %s answers %s", path, text)
		}
		if res.Header.Get("Access-Control-Allow-Origin") != "*" || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("GET %s has the headers %v", path, res.Header)
		}
		if res := request(t, resourceServer(), "OPTIONS", path, "Origin", "https://page.example.com", "Access-Control-Request-Method", "GET"); res.StatusCode != 204 {
			t.Errorf("OPTIONS %s answers %d, want 204", path, res.StatusCode)
		}
	}
	if res := request(t, resourceServer(), "GET", "/.well-known/oauth-protected-resource/other"); res.StatusCode != 401 {
		t.Errorf("the metadata of another resource: %d, want 401", res.StatusCode)
	}
}

// A preflight has no credentials; the handler behind the guard answers it, without a caller.
func TestPreflightPasses(t *testing.T) {
	res := request(t, resourceServer(), "OPTIONS", "/mcp", "Origin", "https://page.example.com", "Access-Control-Request-Method", "POST")
	if text := body(t, res); res.StatusCode != 200 || text != "you are " {
		t.Errorf("a preflight gets %d, %q", res.StatusCode, text)
	}
	if res := request(t, resourceServer(), "OPTIONS", "/mcp", "Origin", "https://page.example.com"); res.StatusCode != 401 {
		t.Errorf("OPTIONS that is no preflight gets %d, want 401", res.StatusCode)
	}
}

// AUTH-26-086: a scope that implies another is as good, through several steps.
func TestImpliedScopes(t *testing.T) {
	res := request(t, resourceServer(), "POST", "/mcp", "Authorization", "Bearer root")
	if got := body(t, res); res.StatusCode != 200 || got != "you are https://as.example.com#root" {
		t.Errorf("admin implies write, which implies read: got %d, %q", res.StatusCode, got)
	}
	g := resourceServer()
	g.Scopes = []string{"admin", "read"}
	res = request(t, g, "POST", "/mcp", "Authorization", "Bearer alice")
	if h := res.Header.Get("WWW-Authenticate"); res.StatusCode != 403 || !strings.HasPrefix(h, `Bearer error="insufficient_scope", scope="admin read", resource_metadata=`) {
		t.Errorf("read implies nothing: got %d, %q", res.StatusCode, h)
	}
}

// AUTH-26-076: offline_access is in no challenge and no metadata.
func TestGuardFaults(t *testing.T) {
	ok := known(nil)
	for name, g := range map[string]*auth.Guard{
		"no verifier":    {},
		"nil verifier":   {Verifiers: []auth.Verifier{nil}},
		"no resource":    {Verifiers: []auth.Verifier{ok}, Resource: &auth.ResourceMetadata{}},
		"fragment":       {Verifiers: []auth.Verifier{ok}, Resource: &auth.ResourceMetadata{Resource: "https://a.example.com/mcp#x"}},
		"ftp":            {Verifiers: []auth.Verifier{ok}, Resource: &auth.ResourceMetadata{Resource: "ftp://a.example.com/mcp"}},
		"offline":        {Verifiers: []auth.Verifier{ok}, Scopes: []string{"offline_access"}},
		"offline listed": {Verifiers: []auth.Verifier{ok}, Resource: &auth.ResourceMetadata{Resource: resourceURL, Scopes: []string{"offline_access"}}},
		"no keys":        {Verifiers: []auth.Verifier{&auth.APIKeys{}}},
	} {
		if err := g.Check(); err == nil {
			t.Errorf("%s: Check found no fault", name)
		}
		if res := request(t, g, "POST", "/mcp", "Authorization", "Bearer alice"); res.StatusCode != 500 {
			t.Errorf("%s: a guard with a fault answers %d, want 500", name, res.StatusCode)
		}
	}
}

func TestVerifiersInOrder(t *testing.T) {
	key, entry := auth.NewAPIKey("carol")
	var asked []string
	says := func(name string, err error) auth.Verifier {
		return verifyFunc(func(*http.Request) (*auth.Principal, error) {
			asked = append(asked, name)
			return &auth.Principal{ID: name}, err
		})
	}
	tests := []struct {
		name      string
		verifiers []auth.Verifier
		header    []string
		anonymous bool
		status    int
		asked     []string
	}{
		{"the first decides", []auth.Verifier{says("a", nil), says("b", nil)}, nil, false, 200, []string{"a"}},
		{"the next one is asked", []auth.Verifier{says("a", auth.ErrNoCredential), says("b", nil)}, nil, false, 200, []string{"a", "b"}},
		{"a refusal ends it", []auth.Verifier{says("a", errors.New("no")), says("b", nil)}, nil, false, 401, []string{"a"}},
		{"nobody can tell", []auth.Verifier{says("a", auth.ErrUnavailable), says("b", nil)}, nil, false, 503, []string{"a"}},
		{"anonymous", []auth.Verifier{says("a", auth.ErrNoCredential)}, nil, true, 200, []string{"a"}},
		{"a bad credential is not anonymous", []auth.Verifier{says("a", auth.ErrNoCredential)}, []string{"Authorization", "Bearer x"}, true, 401, []string{"a"}},
		{"several kinds", []auth.Verifier{says("a", auth.ErrNoCredential), &auth.APIKeys{Keys: []auth.APIKey{entry}}}, []string{"Authorization", "Bearer " + key}, false, 200, []string{"a"}},
	}
	for _, tt := range tests {
		asked = nil
		res := request(t, &auth.Guard{Verifiers: tt.verifiers, Anonymous: tt.anonymous}, "POST", "/", tt.header...)
		if res.StatusCode != tt.status || !slices.Equal(asked, tt.asked) {
			t.Errorf("%s: %d after %q, want %d after %q", tt.name, res.StatusCode, asked, tt.status, tt.asked)
		}
	}
}

type nothing struct{}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// AUTH-26-078, AUTH-26-079, AUTH-26-080: an operation that needs more scopes answers 403 with all
// of them, and where to get them; in every revision. A handler sees the caller.
func TestStepUp(t *testing.T) {
	srv := &mcp.Server{Name: "guarded", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "write"}, func(ctx context.Context, _ nothing) (string, error) {
		if err := auth.RequireScopes(ctx, "read", "write"); err != nil {
			return "", err
		}
		return "written by " + auth.From(ctx).Subject + ", " + mcp.CallFrom(ctx).Principal, nil
	})
	web := httptest.NewServer(resourceServer().Protect(srv))
	defer web.Close()
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			if rev == mcp.V2024_11_05 {
				t.Skip("served over SSE")
			}
			var denied *http.Response
			watch := roundTripFunc(func(r *http.Request) (*http.Response, error) {
				res, err := http.DefaultTransport.RoundTrip(r)
				if err == nil && res.StatusCode == 403 {
					denied = res
				}
				return res, err
			})
			dial := func(token string) *mcp.Session {
				c := &mcp.Client{
					Name: "test", Revisions: []mcp.Revision{rev}, Header: http.Header{"Authorization": {"Bearer " + token}},
					HTTPClient: &http.Client{Transport: watch},
				}
				s, err := c.Dial(t.Context(), web.URL)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return s
			}
			_, err := dial("alice").CallTool(t.Context(), "write", nothing{})
			if denied == nil {
				t.Fatalf("without the scope: %v, want HTTP 403", err)
			}
			want := `Bearer error="insufficient_scope", scope="read write", resource_metadata="https://MCP.example.com/mcp?oauth-protected-resource"`
			if got := denied.Header.Get("WWW-Authenticate"); got != want {
				t.Errorf("the challenge is %q, want %q", got, want)
			}
			var rpc *mcp.Error
			if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidRequest {
				t.Errorf("the body holds %v, want a JSON-RPC error", rpc)
			}
			res, err := dial("root").CallTool(t.Context(), "write", nothing{})
			if err != nil || res.Text() != "written by root, https://as.example.com#root" {
				t.Errorf("with the scope: %v, %v", res, err)
			}
		})
	}
}
