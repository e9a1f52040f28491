package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/policy"
)

// seen is a server that answers with the principal that it and its policy see.
func seen() *mcp.Server {
	srv := &mcp.Server{Name: "seen", Version: "1"}
	decided := ""
	srv.Use(policy.Middleware("seen", policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
		decided = "nobody"
		if a.Principal != nil {
			decided = a.Principal.ID
		}
		return policy.Decision{Allow: true}
	}), nil))
	mcp.AddTool(srv, mcp.Tool{Name: "whoami"}, func(ctx context.Context, _ nothing) (string, error) {
		return mcp.CallFrom(ctx).Principal + "|" + decided, nil
	})
	return srv
}

// Trap 4: identity has one source. A server needs no setting for a Guard; the program's own
// Principal comes first, and an empty result leaves the principal of the Guard.
func TestPrincipalHasOneSource(t *testing.T) {
	says := func(id string) func(*http.Request) string { return func(*http.Request) string { return id } }
	for _, tt := range []struct {
		name      string
		guard     bool
		principal func(*http.Request) string
		want      string
	}{
		{"nothing", false, nil, "|nobody"},
		{"a Guard", true, nil, "as#alice|as#alice"},
		{"a Guard, said twice", true, auth.ID, "as#alice|as#alice"},
		{"a Guard and no answer", true, says(""), "as#alice|as#alice"},
		{"a Guard and another source", true, says("tenant 7"), "tenant 7|tenant 7"},
		{"another source", false, says("tenant 7"), "tenant 7|tenant 7"},
	} {
		srv := seen()
		srv.HTTP.Principal = tt.principal
		var h http.Handler = srv
		if tt.guard {
			g := &auth.Guard{Verifiers: []auth.Verifier{known(map[string]*auth.Principal{"alice": {ID: "as#alice"}})}}
			h = g.Protect(srv)
		}
		web := httptest.NewServer(h)
		for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
			c := &mcp.Client{Name: "t", Revisions: []mcp.Revision{rev}, Header: http.Header{"Authorization": {"Bearer alice"}}}
			s, err := c.Dial(t.Context(), web.URL)
			if err != nil {
				t.Fatal(err)
			}
			if res, err := s.CallTool(t.Context(), "whoami", nothing{}); err != nil || res.Text() != tt.want {
				t.Errorf("%s, %s: %v, %v; want %s", tt.name, rev, res, err, tt.want)
			}
			s.Close()
		}
		web.Close()
	}
}

// A connection that a program serves by itself belongs to the principal of its context.
func TestPrincipalOfConnection(t *testing.T) {
	for _, p := range []*auth.Principal{nil, {ID: "as#alice"}} {
		srv := seen()
		ctx, want := t.Context(), "|nobody"
		if p != nil {
			ctx, want = auth.With(ctx, p), p.ID+"|"+p.ID
		}
		here, there := mcptest.Pipes(t)
		done := make(chan error, 1)
		go func() { done <- srv.Serve(ctx, there) }()
		s, err := (&mcp.Client{Name: "t"}).Connect(t.Context(), mcptest.Wire(here))
		if err != nil {
			t.Fatal(err)
		}
		if res, err := s.CallTool(t.Context(), "whoami", nothing{}); err != nil || res.Text() != want {
			t.Errorf("whoami = %v, %v; want %s", res, err, want)
		}
		s.Close()
		<-done
	}
}
