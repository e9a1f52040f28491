package auth_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Trap 4: the metadata that a challenge names is served by the Guard that made it, wherever
// that is mounted (AUTH-26-016). Proxy has a request of a client as the Guard gets it.
func TestProtectServesWhatItNames(t *testing.T) {
	srv := &mcp.Server{Name: "guarded", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "write"}, func(ctx context.Context, _ nothing) (string, error) { return "", auth.RequireScopes(ctx, "write") })
	mount := func(pattern string, h http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle(pattern, h)
		return mux
	}
	same := func(path string) string { return path }
	for _, tt := range []struct {
		name, resource, path string
		mount                func(g *auth.Guard) http.Handler
		proxy                func(path string) string
	}{
		{"at its path", "https://mcp.example.com/mcp", "/mcp", func(g *auth.Guard) http.Handler { return mount("/mcp", g.Protect(srv)) }, same},
		{"below its path", "https://mcp.example.com", "/v1/mcp", func(g *auth.Guard) http.Handler { return mount("/v1/mcp", g.Protect(srv)) }, same},
		{"alone", "https://mcp.example.com", "/", func(g *auth.Guard) http.Handler { return g.Protect(srv) }, same},
		{"around a mux", "https://mcp.example.com/mcp", "/mcp", func(g *auth.Guard) http.Handler { return g.Protect(mount("/mcp", srv)) }, same},
		{"behind StripPrefix", "https://mcp.example.com/api/mcp", "/api/mcp", func(g *auth.Guard) http.Handler {
			return mount("/api/", http.StripPrefix("/api", mount("/mcp", g.Protect(srv))))
		}, same},
		{"behind a proxy", "https://mcp.example.com/api/mcp", "/api/mcp", func(g *auth.Guard) http.Handler { return mount("/mcp", g.Protect(srv)) },
			func(path string) string { return strings.TrimPrefix(path, "/api") }},
		{"escaped", "https://mcp.example.com/a%2Fb", "/a%2Fb", func(g *auth.Guard) http.Handler { return g.Protect(srv) }, same},
	} {
		for _, anonymous := range []bool{false, true} { // the challenge is that of the Guard, or that of a tool
			g := &auth.Guard{
				Verifiers: []auth.Verifier{known(nil)}, Anonymous: anonymous,
				Resource: &auth.ResourceMetadata{Resource: tt.resource, AuthorizationServers: []string{"https://as.example.com"}},
			}
			h := tt.mount(g)
			ask := func(method, target string) *http.Response {
				r := httptest.NewRequest(method, tt.proxy(target), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{},
					"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
				for name, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
					"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "write"} {
					r.Header.Set(name, v)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w.Result()
			}
			refused := ask("POST", tt.path)
			_, rest, _ := strings.Cut(refused.Header.Get("WWW-Authenticate"), `resource_metadata="`)
			named, _, _ := strings.Cut(rest, `"`)
			u, err := url.Parse(named)
			if err != nil || refused.StatusCode != 401 || u.Scheme+"://"+u.Host != "https://mcp.example.com" {
				t.Errorf("%s: %d, %q: %v; want 401 and a URL of the resource's own origin", tt.name, refused.StatusCode, refused.Header.Get("WWW-Authenticate"), err)
				continue
			}
			res := ask("GET", u.RequestURI())
			var m struct{ Resource string }
			if text := body(t, res); res.StatusCode != 200 || json.Unmarshal([]byte(text), &m) != nil || m.Resource != tt.resource {
				t.Errorf("%s: GET %s answers %d, %.100q; want the metadata of %s", tt.name, named, res.StatusCode, text, tt.resource)
			}
			if res := ask("POST", u.RequestURI()); res.StatusCode != 401 {
				t.Errorf("%s: a call at %s: %d, want 401", tt.name, named, res.StatusCode)
			}
			if res := ask("OPTIONS", u.RequestURI()); res.StatusCode != 204 {
				t.Errorf("%s: the preflight of %s: %d, want 204", tt.name, named, res.StatusCode)
			}
		}
	}
}

// No part of a request but the path of one that is below the resource gets into a challenge.
func TestChallengeRepeatsLittle(t *testing.T) {
	g := resourceServer()
	for target, want := range map[string]string{
		"/mcp":                                  "https://MCP.example.com/mcp?oauth-protected-resource",
		"/mcp?x=%22":                            "https://MCP.example.com/mcp?oauth-protected-resource",
		"/mcp/deeper":                           "https://MCP.example.com/mcp/deeper?oauth-protected-resource",
		"/mcpx":                                 "https://MCP.example.com/mcp?oauth-protected-resource",
		"/elsewhere":                            "https://MCP.example.com/mcp?oauth-protected-resource",
		"http://evil.example.com/mcp":           "https://MCP.example.com/mcp?oauth-protected-resource",
		"/mcp/" + strings.Repeat("x", 2000):     "https://MCP.example.com/mcp?oauth-protected-resource",
		"/mcp/%22,%20resource_metadata=%22evil": "https://MCP.example.com/mcp/%22,%20resource_metadata=%22evil?oauth-protected-resource",
	} {
		res := request(t, g, "POST", target)
		if got := res.Header.Get("WWW-Authenticate"); !strings.HasSuffix(got, ` resource_metadata="`+want+`"`) {
			t.Errorf("%.60s: the challenge is %q, want %q in it", target, got, want)
		}
	}
}
