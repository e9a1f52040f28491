package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/mcp"
)

// With --sse, clients of 2024-11-05 use the servers of serve and up under the same guard as those of
// Streamable HTTP: without a credential they are refused, and a session is only for the principal
// that opened it (SSE-24-004 to -007).
func TestServeSSE(t *testing.T) {
	runtimeFolder(t)
	file, keys := filepath.Join(t.TempDir(), "keys"), map[string]string{}
	var lines []byte
	for _, name := range []string{"alice", "bob"} {
		key, entry := auth.NewAPIKey(name)
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		keys[name], lines = "Bearer "+key, append(append(lines, line...), '\n')
	}
	if err := os.WriteFile(file, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	up := startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}}, "--sse", "--auth", "apikeys:"+file)
	for _, tt := range []struct{ verb, url, tool string }{
		{"serve", "http://" + startServe(t, "--sse", "--auth", "apikeys:"+file) + "/sse", "echo"},
		{"up", strings.TrimSuffix(up.url, listen.Path) + "/sse", "all_echo"},
	} {
		t.Run(tt.verb, func(t *testing.T) {
			if tt.verb == "up" && !strings.Contains(up.banner, "(clients of 2024-11-05, over HTTP+SSE: "+tt.url+")\n") {
				t.Errorf("up does not print %s: %s", tt.url, up.banner)
			}
			client := &mcp.Client{Revisions: []mcp.Revision{mcp.V2024_11_05}, Header: http.Header{"Authorization": {keys["alice"]}}}
			s, err := client.Dial(t.Context(), tt.url)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			res, err := s.CallTool(t.Context(), tt.tool, map[string]any{"message": "hi"})
			if err != nil || res.Text() != "hi" || !strings.Contains(s.Negotiation(), "HTTP+SSE") {
				t.Errorf("%s by %s = %v, %v", tt.tool, s.Negotiation(), res, err)
			}

			slashed, err := client.Dial(t.Context(), tt.url+"/")
			if err != nil {
				t.Fatal(err)
			}
			slashed.Close()

			ask := func(method, url, caller, body string, header ...string) *http.Response {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Accept", "text/event-stream")
				req.Header.Set("Content-Type", "application/json")
				if caller != "" {
					req.Header.Set("Authorization", keys[caller])
				}
				for i := 0; i < len(header); i += 2 {
					req.Header.Set(header[i], header[i+1])
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			stream := ask("GET", tt.url, "alice", "")
			defer stream.Body.Close()
			events := bufio.NewReader(stream.Body)
			events.ReadString('\n') // event: endpoint
			endpoint, err := events.ReadString('\n')
			posts := strings.TrimSuffix(tt.url, "sse") + strings.TrimSpace(strings.TrimPrefix(endpoint, "data: "))
			if err != nil || !strings.Contains(posts, "/messages?sessionId=") {
				t.Fatalf("the endpoint is %q, %v", endpoint, err)
			}
			const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
			for _, bad := range []struct {
				name, method, url, caller, body string
				header                          []string
				status                          int
			}{
				{"a stream of nobody", "GET", tt.url, "", "", nil, 401},
				{"a message of nobody", "POST", posts, "", ping, nil, 401},
				{"a message of another caller", "POST", posts, "bob", ping, nil, 404},
				{"a message for no session", "POST", posts + "x", "alice", ping, nil, 404},
				{"a message of a web page", "POST", posts, "alice", ping, []string{"Origin", "https://evil.example"}, 403},
				{"a message that is too long", "POST", posts, "alice", `"` + strings.Repeat("x", 4<<20) + `"`, nil, 413},
				{"a message", "POST", posts, "alice", ping, nil, 202},
			} {
				res := ask(bad.method, bad.url, bad.caller, bad.body, bad.header...)
				res.Body.Close()
				if res.StatusCode != bad.status {
					t.Errorf("%s: HTTP %d, want %d", bad.name, res.StatusCode, bad.status)
				}
			}
		})
	}
}

// Over stdio there is no address for HTTP+SSE, and the error says how to get one.
func TestSSENeedsHTTP(t *testing.T) {
	for _, args := range []string{"serve everything --sse", "up --stdio --sse -s everything"} {
		var said strings.Builder
		if code := run(t.Context(), strings.Fields(args), strings.NewReader(""), io.Discard, &said); code != exitUsage || !strings.Contains(said.String(), "--sse needs HTTP") || !strings.Contains(said.String(), "--http 127.0.0.1:7420") {
			t.Errorf("patchbay %s = %d %s", args, code, said.String())
		}
		if strings.Contains(said.String()[strings.Index(said.String(), "hint: "):], "--stdio") {
			t.Errorf("patchbay %s: the hint leads to the same error: %s", args, said.String())
		}
	}
}

// A flag that stdio cannot obey is an error, and so is an empty value, which would turn a protection
// off.
func TestFlagsWithoutEffect(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"up", "--stdio", "--http", "127.0.0.1:0", "-s", "everything"}, "--stdio excludes --http"},
		{[]string{"serve", "everything", "--insecure-no-auth"}, "--insecure-no-auth need HTTP"},
		{[]string{"up", "--stdio", "-s", "everything", "--auth-scope", "x"}, "--auth-scope, "},
		{[]string{"serve", "everything", "--policy", ""}, "--policy needs a value: --policy FILE"},
		{[]string{"serve", "everything", "--http", ""}, "--http needs a value: --http ADDR"},
		{[]string{"up", "-s", "everything", "--log="}, "--log needs a value: --log FILE"},
		{[]string{"serve", "everything", "--http", "127.0.0.1:0", "--tls-cert", "", "--client-ca", ""}, "--tls-cert needs a value"},
		{[]string{"serve", "sqlite", "--db", ""}, "--db needs a value"},
		{[]string{"serve", "everything", "--http", "127.0.0.1"}, "the port is missing; use 127.0.0.1:7420"},
		// A flag that the server has is the server's, and one that is for clients does not go unnoticed.
		{[]string{"serve", "fetch", "--timeout", "never"}, `server "fetch": invalid value "never" for --timeout`},
		{[]string{"serve", "sqlite", "--timeout=never"}, `server "sqlite": invalid value "never" for --timeout`},
		{[]string{"openapi", "petstore.yaml", "--timeout", "never"}, `server "openapi": invalid value "never" for --timeout`},
		{[]string{"serve", "--timeout", "5s", "fetch"}, "serve does not use --timeout"},
		{[]string{"serve", "openapi", "petstore.yaml", "--header", "X-Key: 1"}, "serve does not use --header"},
		{[]string{"openapi", "petstore.yaml", "--env=A=b"}, "openapi does not use --env"},
	} {
		var said strings.Builder
		if code := run(t.Context(), tt.args, strings.NewReader(""), io.Discard, &said); code != exitUsage || !strings.Contains(said.String(), tt.want) {
			t.Errorf("patchbay %q = %d %s, want %s", tt.args, code, said.String(), tt.want)
		}
	}
}
