package mcp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Methods that 2026-07-28 removed are unknown there, with status 404 over HTTP: the level of logs
// (LOG-26-012), subscriptions to single resources (RES-26-013), and those of sessions.
func TestRemovedMethods(t *testing.T) {
	s := library()
	srv := httptest.NewServer(s)
	defer srv.Close()
	p := rawClient(t, s)
	for i, tt := range []struct{ method, more string }{
		{"logging/setLevel", `"level":"info"`},
		{"resources/subscribe", `"uri":"lib:text"`},
		{"resources/unsubscribe", `"uri":"lib:text"`},
		{"initialize", `"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"c","version":"1"}`},
		{"ping", ""},
		{"roots/list", ""},
		{"sampling/createMessage", `"messages":[],"maxTokens":1`},
	} {
		frame := modern(int64(i+1), tt.method, `{}`, tt.more)
		p.send(frame)
		wantError(t, p.answer(int64(i+1)), jsonrpc.CodeMethodNotFound)

		req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, strings.NewReader(frame))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": tt.method} {
			req.Header.Set(k, v)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 404 {
			t.Errorf("%s over HTTP = %d %s, %v; want 404", tt.method, res.StatusCode, body, err)
		}
		m, err := jsonrpc.Decode(body, jsonrpc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, m, jsonrpc.CodeMethodNotFound)
	}
}
