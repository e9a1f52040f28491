package audit_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// A call of a tool or prompt that does not exist has no begin, few lines however many such calls there are,
// and the fault "unknown". A tool that a server has just added can be called.
func TestUnknownNames(t *testing.T) {
	const n = 300
	added := func(s *mcp.Server) {
		mcp.AddTool(s, mcp.Tool{Name: "new"}, func(context.Context, struct{}) (string, error) { return "", nil })
	}
	for name, setup := range map[string]func(trail *audit.Trail, own *mcp.Server) (front *mcp.Server, prefix string){
		"gateway": func(trail *audit.Trail, own *mcp.Server) (*mcp.Server, string) {
			gw := &gateway.Gateway{Name: "gw", Middleware: trail.Around}
			if err := gw.Set("shop", own); err != nil {
				t.Fatal(err)
			}
			front := &mcp.Server{Name: "front", Handler: gw}
			front.Use(trail.Outer())
			return front, "shop_"
		},
		"server": func(trail *audit.Trail, own *mcp.Server) (*mcp.Server, string) {
			allow := policy.Func(func(context.Context, *policy.Access) policy.Decision { return policy.Decision{Allow: true} })
			own.Use(trail.Outer(), policy.Middleware("shop", allow, nil), trail.Around("shop"))
			return own, ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			trail := &audit.Trail{Log: open(t, path, &audit.Options{Sync: audit.SyncNone})}
			own := shop(func(string) {})
			mcp.AddPrompt(own, mcp.Prompt{Name: "hello"}, func(context.Context, struct{}) (string, error) { return "hi", nil })
			front, prefix := setup(trail, own)
			s, err := new(mcp.Client).Open(t.Context(), front)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.CallTool(t.Context(), prefix+"list", order{}); err != nil {
				t.Error(err)
			}
			added(own)
			if _, err := s.CallTool(t.Context(), prefix+"new", nil); err != nil {
				t.Errorf("a tool that was just added: %v", err)
			}
			for i := range n {
				tool := fmt.Sprint(prefix, "guess", i)
				if _, err := s.CallTool(t.Context(), tool, nil); err == nil || !strings.Contains(err.Error(), "no tool") {
					t.Fatalf("a tool that does not exist: %v", err)
				}
			}
			if _, err := s.GetPrompt(t.Context(), prefix+"guess", nil); err == nil || !strings.Contains(err.Error(), "no prompt") {
				t.Errorf("a prompt that does not exist: %v", err)
			}
			if err := trail.Log.Close(); err != nil {
				t.Fatal(err)
			}
			guesses, lines, prompts := 0, 0, 0
			for _, e := range calls(t, path) {
				switch known := e.Tool == "list" || e.Tool == "new"; {
				case known && e.Fault != "":
					t.Errorf("a call of a tool that exists: %s", e.Line())
				case e.Method == "prompts/get" && e.Kind == audit.CallEnd && e.Fault == "unknown":
					prompts++
					guesses, lines = guesses+e.More, lines+1
				case !known && (e.Kind != audit.CallEnd || e.Fault != "unknown" || e.Server == nil || e.Server.Name != "shop"):
					t.Errorf("a call of a tool that does not exist: %s", e.Line())
				case !known:
					guesses, lines = guesses+1+e.More, lines+1
				}
			}
			if guesses != n || lines > n/4 || prompts != 1 {
				t.Errorf("%d lines count %d guesses, want %d; %d lines about the prompt", lines, guesses, n, prompts)
			}
		})
	}
}

// A refused call of a tool that no server lists has the fault "unknown", and one of a tool that exists has
// none, nor has one whose server was not asked for its tools yet.
func TestRefusedUnknownTool(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := &audit.Trail{Log: open(t, path, &audit.Options{Sync: audit.SyncNone})}
	deny := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
		return policy.Decision{Allow: a.Name == "list", Rule: "only list"}
	})
	gw := &gateway.Gateway{Name: "gw", Middleware: func(server string) mcp.Middleware {
		rule, around := policy.Foreign(server, true, deny, nil), trail.Around(server)
		return func(next mcp.Handler) mcp.Handler { return rule(around(next)) }
	}}
	trail.Owner, trail.Unlisted = gw.Owner, gw.Unlisted
	if err := gw.Set("shop", shop(func(string) {})); err != nil {
		t.Fatal(err)
	}
	front := &mcp.Server{Name: "front", Handler: gw}
	front.Use(trail.Outer())
	s, err := new(mcp.Client).Open(t.Context(), front)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	refused := func(tool string) {
		if _, err := s.CallTool(t.Context(), tool, order{}); err == nil {
			t.Errorf("%s is not refused", tool)
		}
	}
	refused("shop_early") // before the gateway has seen a list
	if _, err := s.CallTool(t.Context(), "shop_list", order{}); err != nil {
		t.Error(err)
	}
	for _, tool := range []string{"shop_buy", "shop_guess", "else_guess", "alone"} {
		refused(tool)
	}
	if err := trail.Log.Close(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range calls(t, path) {
		if e.Kind == audit.Denied || e.Kind == audit.CallEnd && e.Outcome == "error" {
			got[e.Tool] = fmt.Sprint(e.Kind, " ", e.Fault)
		}
	}
	want := map[string]string{"early": "denied ", "buy": "denied ", "guess": "denied unknown", "else_guess": "call.end unknown", "alone": "call.end unknown"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the lines are %v, want %v", got, want)
	}
}
