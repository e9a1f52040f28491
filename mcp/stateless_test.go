package mcp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A server without sessions serves clients of all revisions, with what needs none, and
// says of the rest that it is not there (SHTTP-25-023, -043, -044).
func TestStatelessHTTP(t *testing.T) {
	mcptest.LeakCheck(t)
	s := &mcp.Server{Name: "s", Version: "1", HTTP: mcp.HTTPConfig{Stateless: true}}
	mcp.AddTool(s, mcp.Tool{Name: "steps"}, func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "half")
		return string(mcp.CallFrom(ctx).Revision), nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		roots, err := mcp.Roots(ctx)
		if err != nil {
			return "", err
		}
		return roots[0].Name, nil
	})
	srv := httptest.NewServer(s)
	defer srv.Close()
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}, Roots: func(context.Context) ([]mcp.Root, error) {
				return []mcp.Root{{URI: "file:///x", Name: "x"}}, nil
			}}
			session, err := c.Dial(t.Context(), srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			var steps int
			res, err := session.CallTool(t.Context(), "steps", nil, mcp.OnProgress(func(float64, float64, string) { steps++ }))
			if err != nil || steps != 1 {
				t.Fatalf("call = %v, %v; %d steps", res, err, steps)
			}
			// 2024-11-05 lacks a version header, and so counts as 2025-03-26.
			if got := res.Text(); got != string(rev) && string(rev) != "2024-11-05" {
				t.Errorf("served as %s", got)
			}
			modern := string(rev) == "2026-07-28"
			res, err = session.CallTool(t.Context(), "ask", nil)
			if modern != (err == nil && res.Text() == "x") {
				t.Errorf("a question: %v, %v", res, err)
			}
			if caps := session.Server().Capabilities; !modern && (caps.Has("tools", "listChanged") || caps.Has("logging")) {
				t.Errorf("capabilities = %s", caps)
			}
		})
	}
	send := func(method, body string, headers ...string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			t.Errorf("%s got a session", body)
		}
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, c := range []struct {
		method, body string
		headers      []string
		status       int
		want         string
	}{
		{"GET", "", []string{"Mcp-Session-Id", "x"}, 405, ""},
		{"DELETE", "", []string{"Mcp-Session-Id", "x"}, 405, ""},
		{"POST", ping, nil, 200, `"result":{}`},
		{"POST", ping, []string{"Mcp-Session-Id", "of another node"}, 200, `"result":{}`},
		{"POST", ping, []string{"MCP-Protocol-Version", "1999-01-01"}, 400, "supported"},
		{"POST", "[" + ping + "," + ping + "]", nil, 200, `[{"jsonrpc":`},
		{"POST", "[" + ping + "]", []string{"MCP-Protocol-Version", "2025-06-18"}, 400, "batches"},
		{"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ""},
		{"POST", `{"jsonrpc":"2.0","id":9,"result":{}}`, nil, 202, ""},
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`, nil, 200, "-32601"},
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}`, nil, 200, "-32601"},
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, []string{"Mcp-Session-Id", "stale"}, 200, `"protocolVersion":"2025-06-18"`},
	} {
		if status, body := send(c.method, c.body, c.headers...); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %q = %d %s, want %d with %s", c.method, c.body, c.headers, status, body, c.status, c.want)
		}
	}
}
