package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/servers/everything"
)

// The client reports a failure and exits with the code that the suite expects.
func TestRun(t *testing.T) {
	web := httptest.NewServer(everything.New())
	defer web.Close()
	tests := []struct {
		name, scenario, given string
		args                  []string
		code                  int
		want                  string
	}{
		{"lists", "initialize", "", []string{web.URL}, 0, ""},
		{"loads no skill", "sep-2640-client-no-prefetch", "", []string{web.URL}, 0, ""},
		{"good skills", "sep-2640-client-verify-digest", "", []string{web.URL}, 1, "was loaded"},
		{"calls what it is told", "http-custom-headers", `{"toolCalls":[{"name":"route_by_header","arguments":{"region":"north"}}]}`, []string{web.URL}, 0, ""},
		{"no tool", "tools_call", "", []string{web.URL}, 1, "add_numbers"},
		{"bad context", "http-custom-headers", "", []string{web.URL}, 1, "context"},
		{"unknown", "auth/none", "", []string{web.URL}, 2, `no scenario "auth/none"`},
		{"no URL", "initialize", "", nil, 2, "usage"},
		{"nobody there", "initialize", "", []string{"http://127.0.0.1:1/mcp"}, 1, "127.0.0.1:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"MCP_CONFORMANCE_SCENARIO": tt.scenario, "MCP_CONFORMANCE_CONTEXT": tt.given}
			var stderr strings.Builder
			code := run(t.Context(), tt.args, func(name string) string { return env[name] }, &stderr)
			if code != tt.code || !strings.Contains(stderr.String(), tt.want) || tt.want == "" && stderr.Len() > 0 {
				t.Errorf("code %d, %q on standard error; want %d, %q", code, stderr.String(), tt.code, tt.want)
			}
		})
	}
}
