package mcp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A stream without an end of its own is the last that a connection of HTTP/1.1 has, so that no request is lost with it when the server
// ends. All other answers, and HTTP/2, let their connections go on.
func TestStreamsCloseTheirConnections(t *testing.T) {
	t.Parallel()
	const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
	for _, h2 := range []bool{false, true} {
		srv := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(srv, mcp.Tool{Name: "work"}, func(ctx context.Context, _ struct{}) (string, error) {
			mcp.Progress(ctx, 1, 2, "half")
			return "done", nil
		})
		web := httptest.NewUnstartedServer(srv)
		web.EnableHTTP2 = h2
		web.StartTLS()
		t.Cleanup(web.Close)
		t.Cleanup(func() { srv.Shutdown(context.Background()) })
		session, reused := "", false
		ask := func(method, version, mcpMethod, name, body string) *http.Response {
			t.Helper()
			reused = false
			trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }}
			req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), method, web.URL+"/mcp", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"Mcp-Protocol-Version": version, "Mcp-Session-Id": session, "Mcp-Method": mcpMethod, "Mcp-Name": name,
			} {
				if value != "" {
					req.Header.Set(name, value)
				}
			}
			res, err := web.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { res.Body.Close() })
			if (res.ProtoMajor == 2) != h2 {
				t.Fatalf("%s over %s", method, res.Proto)
			}
			return res
		}
		all := func(res *http.Response) string {
			t.Helper()
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode/100 != 2 {
				t.Fatalf("HTTP %d: %s, %v", res.StatusCode, body, err)
			}
			return string(body)
		}
		goesOn := func(what string, res *http.Response) {
			t.Helper()
			if res.Close {
				t.Errorf("%s: %s closes its connection", res.Proto, what)
			}
		}
		stream := func(what string, res *http.Response) {
			t.Helper()
			if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || res.Close == h2 {
				t.Errorf("%s: %s: HTTP %d, %v, closes its connection: %v", res.Proto, what, res.StatusCode, res.Header, res.Close)
			}
		}

		res := ask("POST", "2026-07-28", "tools/call", "work", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","arguments":{},`+envelope+`,"progressToken":1}}}`)
		goesOn("a call with progress", res)
		if said := all(res); !strings.Contains(said, "notifications/progress") || !strings.Contains(said, "done") {
			t.Errorf("a call with progress: %s", said)
		}
		res = ask("POST", "2026-07-28", "subscriptions/listen", "", `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+envelope+`}}}`)
		if stream("subscriptions/listen", res); !reused {
			t.Errorf("%s: the connection of a call was not reused", res.Proto)
		}
		res = ask("POST", "", "", "", `{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		goesOn("initialize", res)
		all(res)
		session = res.Header.Get("Mcp-Session-Id")
		stream("GET", ask("GET", "2025-11-25", "", "", ""))
		if res = ask("DELETE", "2025-11-25", "", "", ""); h2 && !reused {
			t.Error("a stream has ended a connection of HTTP/2")
		}
		all(res)
	}
}
