package policy_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/policy"
)

// Trap 4: a name of a Require that no server lists is logged, once, with the closest name, after
// all servers of the policy have been listed to the end.
func TestUnlistedNamesAreLogged(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	need := policy.Requirement{Scopes: []string{"s"}}
	require := &policy.Require{
		Tools:   map[string]policy.Requirement{"refund": need, "reufnd": need, "ship": need, "*": {}},
		Prompts: map[string]policy.Requirement{"greeting": need},
	}
	session := func(name string, tools ...string) *mcp.Session {
		srv := &mcp.Server{Name: name, Version: "1", Limits: mcp.Limits{PageSize: 1}}
		srv.Use(policy.Middleware(name, require, log))
		for _, tool := range tools {
			mcp.AddTool(srv, mcp.Tool{Name: tool}, func(context.Context, nothing) (string, error) { return "", nil })
		}
		return mcptest.Connect(t, srv, client(), mcp.V2026_07_28)
	}
	list := func(s *mcp.Session) {
		for _, err := range s.Tools(t.Context(), mcp.WithoutCache()) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	a, b := session("a", "look", "refund"), session("b", "pack", "ship")
	list(a)
	if out.Len() > 0 {
		t.Errorf("after one of two servers: %s", out.String())
	}
	for range 3 {
		list(b)
		list(a)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "kind=tool name=reufnd near=refund") {
		t.Errorf("logged %q, want one line about reufnd", lines)
	}
}
