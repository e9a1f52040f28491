package login_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// The whole way, for a policy of data and one of rules, in front of a server and of a gateway: a
// list hides the tools that need a scope; a call of one is answered with 403 and the scope; the
// client logs in for it and the call passes; then the list has the tool. A tool that no scope
// opens is unknown, and causes no login. AUTH-26-078, AUTH-26-082, AUTH-26-083, AUTH-26-084: with
// the scopes that were asked for before.
func TestPolicyStepUp(t *testing.T) {
	file, err := rules.Parse("policy.yaml", []byte(`
rules:
  - {name: look, effect: allow, when: kind == "tool" && name == "look"}
  - {name: write, effect: allow, when: kind == "tool" && name == "write" && "shop:write" in principal.scopes}
  - {name: write needs a scope, effect: deny, when: kind == "tool" && name == "write", scopes: "shop:write"}
`))
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]policy.Policy{
		"require": &policy.Require{Tools: map[string]policy.Requirement{"look": {}, "write": {Scopes: []string{"shop:write"}}, "*": {Roles: []string{"nobody"}}}},
		"rules":   file,
	}
	fronts := map[string]func(srv *mcp.Server, p policy.Policy) (*mcp.Server, string){
		"server": func(srv *mcp.Server, p policy.Policy) (*mcp.Server, string) {
			srv.Use(policy.Middleware("shop", p, nil))
			return srv, ""
		},
		"gateway": func(srv *mcp.Server, p policy.Policy) (*mcp.Server, string) {
			g := &gateway.Gateway{Name: "gw", Middleware: func(name string) mcp.Middleware { return policy.Middleware(name, p, nil) }}
			if err := g.Set("shop", srv); err != nil {
				t.Fatal(err)
			}
			return &mcp.Server{Name: "gw", Version: "1", Handler: g}, "shop_"
		},
	}
	for kind, p := range policies {
		for where, front := range fronts {
			for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
				t.Run(kind+"/"+where+"/"+string(rev), func(t *testing.T) {
					srv := &mcp.Server{Name: "shop", Version: "1"}
					for _, name := range []string{"look", "write", "secret"} {
						mcp.AddTool(srv, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return name, nil })
					}
					behind, prefix := front(srv, p)
					testPolicyStepUp(t, behind, prefix, rev)
				})
			}
		}
	}
}

func testPolicyStepUp(t *testing.T, srv *mcp.Server, prefix string, rev mcp.Revision) {
	w := newWorld(t)
	guard := &auth.Guard{
		Verifiers: []auth.Verifier{verifyFunc(func(r *http.Request) (*auth.Principal, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			granted, ok := w.valid[token]
			if !ok {
				return nil, auth.ErrNoCredential
			}
			return &auth.Principal{ID: "as#ada", Scopes: strings.Fields(granted)}, nil
		})},
		Resource: &auth.ResourceMetadata{Resource: w.url(), AuthorizationServers: []string{w.as.URL}, Scopes: []string{"shop:look"}},
	}
	protected := guard.Protect(srv)
	refused := make(chan string, 10)
	w.handle = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/mcp" {
			return false
		}
		protected.ServeHTTP(rw, r)
		for _, challenge := range rw.Header().Values("WWW-Authenticate") {
			if strings.Contains(challenge, "insufficient_scope") {
				refused <- challenge
			}
		}
		return true
	}
	c := &mcp.Client{Name: "test", Version: "1", Revisions: []mcp.Revision{rev}, HTTPClient: &http.Client{Transport: w.transport()}}
	s, err := c.Dial(t.Context(), w.url())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tools := func() (names []string) {
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		return names
	}
	sameList(t, "tools at first", tools(), prefix+"look")
	if res, err := s.CallTool(t.Context(), prefix+"write", struct{}{}); err != nil || res.Text() != "write" {
		t.Fatalf("the call: %v, %v; want it to pass after a second login", res, err)
	}
	want := `Bearer error="insufficient_scope", scope="shop:write", resource_metadata="` + w.mcp.URL + `/mcp?oauth-protected-resource"`
	if got := <-refused; got != want || len(refused) > 0 {
		t.Errorf("the challenge is %q, want %q, once", got, want)
	}
	var asked []string
	for _, q := range w.authorized {
		asked = append(asked, q.Get("scope"))
	}
	if len(asked) != 2 || !slices.Equal(strings.Fields(asked[1]), []string{"shop:look", "shop:write"}) {
		t.Errorf("asked for the scopes %q, want shop:look, and then shop:write too", asked)
	}
	sameList(t, "tools afterwards", tools(), prefix+"look", prefix+"write")
	for _, name := range []string{"secret", "nothing"} {
		var rpc *mcp.Error
		if _, err := s.CallTool(t.Context(), prefix+name, struct{}{}); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %v, want that it is unknown", name, err)
		}
	}
	if len(w.authorized) != 2 || len(refused) > 0 {
		t.Errorf("%d logins, want 2", len(w.authorized))
	}
}

type verifyFunc func(r *http.Request) (*auth.Principal, error)

func (f verifyFunc) Verify(r *http.Request) (*auth.Principal, error) { return f(r) }
