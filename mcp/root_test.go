package mcp_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A client gives out roots that are file: URIs (ROOT-26-005) and do not lead out of
// themselves (ROOT-26-007), or an error: -32603 if it has roots and -32601 if it has none
// (ROOT-25-002).
func TestRootsOfAClient(t *testing.T) {
	for uri, want := range map[string]bool{
		"file:///home/ada": true, "file:///C:/work": true, "file:///a/..b/c..": true, "file:///a%20b": true, "file:///": true, "file://host/share": true,
		"": false, "/home/ada": false, "https://example.com/": false, "FILE": false, "file:": false, "file:a": false, "file:///%zz": false,
		"file:///a/../b": false, "file:///..": false, "file:///a/%2e%2e/b": false, "file:///a%2f..%2fb": false, `file:///a\..\b`: false, "file:///a/%5c..%5c": false,
	} {
		c := nothing()
		c.Roots = func(context.Context) ([]mcp.Root, error) {
			return []mcp.Root{{URI: "file:///ok"}, {URI: uri}}, nil
		}
		p := legacyServer(t, c, mcp.V2025_11_25)
		p.send(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
		m := p.answer(1)
		if !want {
			wantError(t, m, jsonrpc.CodeInternal)
		} else if m.Error != nil || !strings.Contains(string(m.Result), uri) {
			t.Errorf("root %q: %s", uri, show(&m))
		}
	}
	failing := nothing()
	failing.Roots = func(context.Context) ([]mcp.Root, error) { return nil, errors.New("no disk") }
	for c, code := range map[*mcp.Client]int{failing: jsonrpc.CodeInternal, nothing(): jsonrpc.CodeMethodNotFound} {
		p := legacyServer(t, c, mcp.V2025_11_25)
		p.send(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
		wantError(t, p.answer(1), code)
	}
}
