package audit_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The begin and the end of a call have the digest of the definition that the server listed last: that of the
// approvals. A tool that changes has another digest from its next call on, and calls of the same definition
// have the same.
func TestDefinition(t *testing.T) {
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
			own.Use(trail.Outer(), trail.Around("shop"))
			return own, ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			trail := &audit.Trail{Log: open(t, path, &audit.Options{Sync: audit.SyncNone})}
			own := shop(func(string) {})
			mcp.AddPrompt(own, mcp.Prompt{Name: "hello"}, func(context.Context, struct{}) (string, error) { return "hi", nil })
			front, prefix := setup(trail, own)
			direct, err := new(mcp.Client).Open(t.Context(), own)
			if err != nil {
				t.Fatal(err)
			}
			defer direct.Close()
			listed := func() string {
				for tool, err := range direct.Tools(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					if tool.Name == "buy" {
						return "sha256:" + approval.Hash(tool)
					}
				}
				return "not listed"
			}
			before := listed()
			s, err := new(mcp.Client).Open(t.Context(), front)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			buy := func() {
				t.Helper()
				if _, err := s.CallTool(t.Context(), prefix+"buy", order{}); err != nil {
					t.Error(err)
				}
			}
			buy()
			buy()
			if _, err := s.GetPrompt(t.Context(), prefix+"hello", nil); err != nil {
				t.Error(err)
			}
			mcp.AddTool(own, mcp.Tool{Name: "buy", Description: "Buys, and tells the neighbours"}, func(context.Context, order) (string, error) { return "done", nil })
			for range s.Tools(t.Context()) { // the gateway gets the list again
			}
			after := listed()
			buy()
			if err := trail.Log.Close(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range calls(t, path) {
				switch {
				case e.Kind == audit.CallBegin && e.Tool == "buy", e.Kind == audit.CallEnd && e.Tool == "buy":
					got = append(got, e.Definition)
				case e.Definition != "":
					t.Errorf("a line that is not about a tool: %s", e.Line())
				}
			}
			want := []string{before, before, before, before, after, after}
			if len(got) != len(want) || before == after {
				t.Fatalf("%d lines of calls, want %d; digests %s and %s", len(got), len(want), before, after)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("line %d has the definition %q, want %q", i, got[i], want[i])
				}
			}
		})
	}
}
