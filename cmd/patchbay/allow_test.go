package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/listen"
)

// With --allow-host and --allow-origin, requests through a proxy that keeps Host, and from an
// inspector on another port, reach every verb that listens; without the flags the refusal names
// them (trap 20).
func TestAllowedHostsAndOrigins(t *testing.T) {
	flags := []string{"--allow-host", "mcp.example.com", "--allow-origin", "http://localhost:6274", "--allow-origin", "https://app.example.com"}
	verbs := map[string]string{
		"serve": "http://" + startServe(t, flags...) + "/mcp",
		"up":    startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}}, flags...).url,
	}
	verbs["bridge"] = bridged(t, append([]string{"--http", "127.0.0.1:0", "--sse", "-s", "everything"}, flags...)...)
	verbs["bridge, SSE"] = strings.TrimSuffix(verbs["bridge"], listen.Path) + "/sse"
	verbs["up, health"] = strings.TrimSuffix(verbs["up"], listen.Path) + "/healthz"
	for verb, url := range verbs {
		for _, tt := range []struct {
			name, method, host, origin string
			status                     int // zero: any status but 403
			says                       string
		}{
			{"a loopback name", "GET", "localhost:1", "", 0, ""},
			{"the name of the proxy", "GET", "mcp.example.com", "", 0, ""},
			{"the name with a port", "GET", "MCP.example.com:8443", "", 0, ""},
			{"another name", "GET", "evil.example", "", 403, `--allow-host NAME`},
			{"another name, named", "GET", "evil.example", "", 403, `evil.example`},
			{"the inspector", "GET", "", "http://localhost:6274", 0, ""},
			{"the inspector behind the proxy", "GET", "mcp.example.com", "https://app.example.com", 0, ""},
			{"the page of the proxy itself", "GET", "mcp.example.com", "https://mcp.example.com", 0, ""},
			{"preflight of the inspector", "OPTIONS", "", "http://localhost:6274", 204, ""},
			{"another page", "GET", "", "http://localhost:6275", 403, `--allow-origin ORIGIN`},
			{"another page, in Go", "GET", "", "http://localhost:6275", 403, `HTTPConfig.AllowedOrigins`},
			{"preflight of another page", "OPTIONS", "", "https://evil.example", 403, `https://evil.example`},
		} {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = tt.host
			req.Header.Set("Accept", "application/json") // an admitted request then gets an error, and not a stream
			if tt.origin != "" {
				req.Header.Set("Origin", tt.origin)
				req.Header.Set("Access-Control-Request-Method", "POST")
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
			res.Body.Close()
			if tt.status == 0 && res.StatusCode == 403 || tt.status != 0 && res.StatusCode != tt.status || !strings.Contains(string(body), tt.says) {
				t.Errorf("%s: %s = %d %s, want %d %s", verb, tt.name, res.StatusCode, body, tt.status, tt.says)
			}
			foreign := tt.status != 403 && tt.origin != "" && !strings.HasSuffix(tt.origin, "mcp.example.com")
			if got := res.Header.Get("Access-Control-Allow-Origin"); foreign && got != tt.origin || tt.status == 403 && got != "" {
				t.Errorf("%s: %s may be read by %q", verb, tt.name, got)
			}
		}
	}
}

// Impossible values, and flags without a meaning over stdio, are refused with advice.
func TestAllowFlags(t *testing.T) {
	for _, tt := range []struct {
		args, want string
	}{
		{"serve everything --http 127.0.0.1:0 --allow-host https://mcp.example.com", `allowed host "https://mcp.example.com"`},
		{"serve everything --http 127.0.0.1:0 --allow-host *", `allowed host "*"`},
		{"serve everything --http 127.0.0.1:0 --allow-origin app.example.com", "--allow-origin http://localhost:6274"},
		{"serve everything --http 127.0.0.1:0 --allow-origin https://app.example.com/", "without a path"},
		{"serve everything --allow-host mcp.example.com", "stdio"},
		{"up --stdio --allow-origin http://localhost:6274", "--http 127.0.0.1:7420"},
	} {
		var said strings.Builder
		if code := run(t.Context(), strings.Fields(tt.args), strings.NewReader(""), io.Discard, &said); code != exitUsage || !strings.Contains(said.String(), tt.want) {
			t.Errorf("patchbay %s = %d %s, want %q", tt.args, code, said.String(), tt.want)
		}
	}
}
