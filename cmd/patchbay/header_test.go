package main

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A tool with invalid x-mcp-header annotations is left out by the verbs and by up, with one
// warning, and is not called (trap 42; HTTP-26-044 to -046). Up to 2025-11-25 the annotations have
// no meaning.
func TestToolsWithBadHeadersAreLeftOut(t *testing.T) {
	called := 0
	handler := mcp.HandlerFunc(func(_ context.Context, r *mcp.Request) (mcp.Result, error) {
		switch r.Method {
		case "tools/list":
			return mcp.RawResult(`{"tools":[{"name":"odd","inputSchema":{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}},{"name":"good","inputSchema":{"type":"object"}}]}`), nil
		case "tools/call":
			called++
			return mcp.RawResult(`{"content":[{"type":"text","text":"ran"}]}`), nil
		}
		return &mcp.ServerInfo{Capabilities: mcp.Capabilities{"tools": []byte(`{}`)}}, nil
	})
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			h := httptest.NewServer(&mcp.Server{Name: "t", Version: "1", Handler: handler, Revisions: []mcp.Revision{rev}})
			defer h.Close()
			modern := rev == mcp.V2026_07_28
			run := func(args ...string) (code int, stdout, stderr string) {
				t.Helper()
				var out, errs strings.Builder
				code = run(t.Context(), append(args, "-s", h.URL), strings.NewReader(""), &out, &errs)
				return code, out.String(), errs.String()
			}
			code, out, said := run("tools")
			if code != 0 || !strings.Contains(out, "good") || strings.Contains(out, "odd") == modern || strings.Count(said, "odd") != map[bool]int{true: 1}[modern] {
				t.Errorf("tools = %d\n%s\n%s", code, out, said)
			}
			if _, out, _ = run("tools", "--json"); strings.Contains(out, "odd") == modern || !strings.Contains(out, "good") {
				t.Errorf("tools --json:\n%s", out)
			}
			for _, args := range [][]string{{"call", "odd"}, {"call", "odd", `{"a":[1]}`}, {"call", "odd", "a:=[1]"}} {
				called = 0
				code, out, said = run(args...)
				if modern != (called == 0) || modern != (code != 0) || modern && (!strings.Contains(said, "must not be used over HTTP") || !strings.Contains(said, "x-mcp-header")) {
					t.Errorf("%q = %d, called %d times\n%s\n%s", args, code, called, out, said)
				}
			}
			called = 0
			if code, _, said = run("call", "good"); code != 0 || called != 1 {
				t.Errorf("call good = %d, called %d times\n%s", code, called, said)
			}
		})
	}
}
