package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Nothing is assumed of what stands at keys that MCP keeps for itself (META-26-001):
// unknown ones, and known ones of another shape, cost no call and pass a hop as they are.
func TestReservedMeta(t *testing.T) {
	values := []string{`null`, `7`, `""`, `"x"`, `[]`, `{"deep":[{}]}`, `true`}
	keys := []string{"io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/serverInfo", "io.modelcontextprotocol/subscriptionId",
		"io.modelcontextprotocol/of-tomorrow", "modelcontextprotocol.io/k", "mcp.dev/k", "traceparent", "progressToken"}
	var meta mcp.Meta
	server := one(func(ctx context.Context, _ struct{}) (string, error) {
		call := mcp.CallFrom(ctx)
		meta = call.Meta
		mcp.Progress(ctx, 1, 1, "")
		return call.Client.Name, nil
	})
	p := rawClient(t, server)
	id := int64(0)
	for _, key := range keys {
		for _, value := range values {
			id++
			p.sendf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask","_meta":{%q:%s,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, id, key, value)
			if m := p.answer(id); m.Error != nil {
				t.Errorf("a request with %s %s in _meta = %s", key, value, show(&m))
			}
			if got := string(meta[key]); got != value {
				t.Errorf("the handler sees %s %s, want %s", key, got, value)
			}
			s := foreign(t, nothing(), func(_ *jsonrpc.Message, id string, send func(string, ...any)) {
				send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"_meta":{%q:%s}}}`, key, value)
				send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[],"_meta":{%q:%s}}}`, id, key, value)
			})
			res, err := s.CallTool(t.Context(), "x", nil)
			if err != nil {
				t.Errorf("a result with %s %s in _meta: %v", key, value, err)
				continue
			}
			if got, ok := res.Meta[key]; ok && string(got) != value {
				t.Errorf("the client sees %s %s, want %s", key, got, value)
			}
		}
	}
}

// The self-reported identity of a client and its user does not authenticate a principal
// (ELIC-26-043, META-26-016).
func TestNobodyIsAuthenticatedByMeta(t *testing.T) {
	p := rawClient(t, one(func(ctx context.Context, _ struct{}) (string, error) {
		return fmt.Sprintf("%q", mcp.CallFrom(ctx).Principal), nil
	}))
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","principal":"ada","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"ada","version":"1"},"user":"ada","principal":"ada"}}}`)
	m := p.answer(1)
	var res struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(m.Result, &res); err != nil || len(res.Content) != 1 || res.Content[0].Text != `""` {
		t.Errorf("the principal is %s", show(&m))
	}
}
