package listen

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// An endpoint with a sandbox has its port at both addresses of loopback. Documents at localhost reach the frames of views
// there, and nothing of the server; programs reach the server by this name as before.
func TestSandbox(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &mcp.Server{Name: "x", Version: "1"}
	e := New(srv, l, Options{Log: slog.New(slog.DiscardHandler)})
	origin, why := e.Sandbox()
	if why != "" {
		t.Fatal(why)
	}
	e.HandlePage(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }), func() {})
	e.Serve()
	defer e.End(t.Context(), 0)
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if origin != "http://localhost:"+port {
		t.Errorf("the sandbox is at %q", origin)
	}
	client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, tt := range []struct {
		at, host, origin, site string
		path                   string
		status                 int
	}{
		{"127.0.0.1", "localhost", "", "", "/mcp", 400},
		{"127.0.0.1", "127.0.0.1", "http://127.0.0.1:" + port, "same-origin", "/mcp", 400},
		{"127.0.0.1", "localhost", origin, "same-origin", "/mcp", 403},
		{"127.0.0.1", "localhost", origin, "", "/mcp/s/db", 403},
		{"127.0.0.1", "localhost", "null", "", "/mcp", 403},
		{"127.0.0.1", "localhost", "", "same-origin", "/mcp", 403},
		{"127.0.0.1", "localhost", "", "same-origin", "/ui/state", 403},
		{"127.0.0.1", "localhost", "", "", "/sandbox", http.StatusTeapot},
		{"[::1]", "localhost", "", "", "/sandbox", http.StatusTeapot},
		{"[::1]", "localhost", "null", "", "/mcp", 403},
	} {
		if e.beside == nil && tt.at == "[::1]" {
			continue // there is no IPv6
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+tt.at+":"+port+tt.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = tt.host + ":" + port
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for name, value := range map[string]string{"Origin": tt.origin, "Sec-Fetch-Site": tt.site} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatalf("%+v: %v", tt, err)
		}
		res.Body.Close()
		if res.StatusCode != tt.status {
			t.Errorf("%+v: HTTP %d", tt, res.StatusCode)
		}
	}
}

// Where another program may answer for localhost, there is no sandbox.
func TestNoSandbox(t *testing.T) {
	ports, err := Loopback()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range ports {
		defer l.Close()
	}
	if len(ports) < 2 {
		t.Skip("there is no IPv6")
	}
	e := New(&mcp.Server{Name: "x", Version: "1"}, ports[0], Options{Log: slog.New(slog.DiscardHandler)})
	if origin, why := e.Sandbox(); origin != "" || !strings.Contains(why, "another program has port") {
		t.Errorf("the sandbox is at %q, %v", origin, why)
	}
	all, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip(err) // macOS has no such address
	}
	defer all.Close()
	e = New(&mcp.Server{Name: "x", Version: "1"}, all, Options{Log: slog.New(slog.DiscardHandler)})
	if origin, why := e.Sandbox(); origin != "" || !strings.Contains(why, "it is at 127.0.0.2") {
		t.Errorf("the sandbox is at %q, %v", origin, why)
	}
}

// At the host of a sandbox that the operator names, an endpoint serves the frames of views and nothing else, whoever asks.
func TestSandboxAt(t *testing.T) {
	endpoint := func(hosts ...string) *Endpoint {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := &mcp.Server{Name: "x", Version: "1"}
		srv.HTTP.AllowedHosts = hosts
		guard := &auth.Guard{Verifiers: []auth.Verifier{&auth.JWT{Secret: "0123456789abcdef0123456789abcdef"}}, Resource: &auth.ResourceMetadata{Resource: "https://gateway.example/mcp"}}
		e := New(srv, l, Options{Guard: guard, Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(func() { l.Close() })
		return e
	}
	for _, own := range []string{"https://127.0.0.1", "https://mcp.example:9", "https://MCP.example", "https://proxy.example:8443", "https://gateway.example:8443"} {
		if err := endpoint("mcp.example", "proxy.example:443").SandboxAt(own); err == nil || !strings.Contains(err.Error(), "is the host of the gateway itself") {
			t.Errorf("a sandbox at %s: %v", own, err)
		}
	}
	e := endpoint("mcp.example")
	if err := e.SandboxAt("https://apps.example"); err != nil {
		t.Fatal(err)
	}
	e.HandlePage(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }), func() {})
	e.Mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {})
	for _, tt := range []struct {
		host, path string
		status     int
	}{
		{"mcp.example", "/", http.StatusTeapot},
		{"mcp.example", "/mcp", http.StatusUnauthorized},
		{"apps.example", "/sandbox", http.StatusTeapot},
		{"apps.example", "/assets/sandbox-X.js", http.StatusTeapot},
		{"apps.example", "/", http.StatusForbidden},
		{"apps.example", "/ui/state", http.StatusForbidden},
		{"apps.example", "/mcp", http.StatusForbidden},
		{"apps.example", "/mcp/s/db", http.StatusForbidden},
		{"apps.example", "/healthz", http.StatusForbidden},
		{"apps.example", "/.well-known/oauth-protected-resource", http.StatusForbidden},
		{"apps.example:443", "/mcp", http.StatusForbidden},
		{"APPS.example.", "/mcp", http.StatusForbidden},
	} {
		r, w := httptest.NewRequest(http.MethodGet, "https://"+tt.host+tt.path, nil), httptest.NewRecorder()
		if e.http.Handler.ServeHTTP(w, r); w.Code != tt.status {
			t.Errorf("%s at %s: HTTP %d %s", tt.path, tt.host, w.Code, w.Body)
		}
	}
}
