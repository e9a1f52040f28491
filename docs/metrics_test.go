package docs_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/policy"
)

// The code of docs/metrics.md.

func counted(srv *mcp.Server, rules policy.Policy, http *http.ServeMux) {
	c := &metrics.Counters{Listed: func(_, tool string) bool { return srv.HasTool(tool) }}
	srv.OnSession = c.Session
	srv.Use(c.Front(), c.Server("shop"), policy.Middleware("shop", policy.Observe(rules, c.Decided), nil))
	http.Handle("/metrics", c)
}

// The metrics have the decisions of the policy, and a tool that only fails.
func TestCounted(t *testing.T) {
	srv, mux := &mcp.Server{Name: "shop"}, http.NewServeMux()
	mcp.AddTool(srv, mcp.Tool{Name: "buy", Description: "Buys."}, func(context.Context, struct{}) (string, error) { return "", nil })
	counted(srv, policy.Func(func(context.Context, *policy.Access) policy.Decision { return policy.Decision{Rule: "closed"} }), mux)
	s := mcptest.Connect(t, srv, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
	s.CallTool(t.Context(), "buy", nil)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`patchbay_policy_decisions_total{effect="deny",rule="closed"} 1`,
		`patchbay_call_errors_total{server="shop",mcp_method_name="tools/call",gen_ai_tool_name="buy",error_type="policy"} 1`,
	} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("/metrics has no line %s:\n%s", line, w.Body)
		}
	}
}
