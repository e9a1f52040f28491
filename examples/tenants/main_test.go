package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Tenants see their own tools and data, on every revision.
func TestTenants(t *testing.T) {
	t.Chdir(t.TempDir())
	keys, file := map[string]string{}, []byte(nil)
	for tenant := range plans {
		key, entry := auth.NewAPIKey(tenant)
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		keys[tenant], file = key, append(append(file, line...), '\n')
	}
	if err := os.WriteFile("keys.jsonl", file, 0o600); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler())
	defer web.Close()
	for n, rev := range mcp.Revisions() {
		open := func(tenant string) *mcp.Session {
			client := &mcp.Client{Revisions: []mcp.Revision{rev}, Header: http.Header{"Authorization": {"Bearer " + keys[tenant]}}}
			s, err := client.Dial(t.Context(), web.URL)
			if err != nil {
				t.Fatalf("%s: %v", rev, err)
			}
			return s
		}
		acme, zenith := open("acme"), open("zenith")
		for _, s := range []*mcp.Session{acme, zenith} {
			if _, err := mcp.CallAs[string](t.Context(), s, "add", Amount{5}); err != nil {
				t.Errorf("%s: add: %v", rev, err)
			}
		}
		var tools []string
		for tool, err := range zenith.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			tools = append(tools, tool.Name)
		}
		if !slices.Equal(tools, []string{"add"}) {
			t.Errorf("%s: the tools of zenith are %q", rev, tools)
		}
		if _, err := zenith.CallTool(t.Context(), "report", nil); err == nil {
			t.Errorf("%s: zenith called a tool of acme", rev)
		}
		got, err := mcp.CallAs[Report](t.Context(), acme, "report", nil)
		if err != nil || len(got.Amounts) != n+1 {
			t.Errorf("%s: the report of acme = %v, %v", rev, got, err)
		}
		acme.Close()
		zenith.Close()
	}
}
