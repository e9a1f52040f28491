package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Credentials of up's clients stay with up: a server behind it gets them in no header, URL or
// message. And up is not an authorization server for its clients, which could pass on a consent
// that somebody else gave (the confused deputy): it has no such endpoint. AUTH-26-115.
func TestUpKeepsCredentials(t *testing.T) {
	runtimeFolder(t)
	var mu sync.Mutex
	var got bytes.Buffer // everything sent to the server behind
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		fmt.Fprintln(&got, r.Method, r.URL, r.Header, string(body))
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		stubHTTP.ServeHTTP(w, r)
	}))
	t.Cleanup(behind.Close) // after up has ended, which connects to it
	key, entry := auth.NewAPIKey("alice")
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, line, 0o600); err != nil {
		t.Fatal(err)
	}
	r := startUp(t, map[string]any{"web": map[string]any{"url": behind.URL + "/mcp", "headers": map[string]string{"X-Own": "of-the-configuration"}}}, "--auth", "apikeys:"+keys)

	for _, revision := range mcp.Revisions() {
		for _, show := range []http.Header{
			{"Authorization": {"Bearer " + key}},
			{"X-Api-Key": {key}, "Cookie": {"session=" + key}, "Proxy-Authorization": {"Bearer " + key}, "X-Forwarded-Authorization": {key}},
		} {
			client := &mcp.Client{Header: show, Revisions: []mcp.Revision{revision}}
			s, err := client.Dial(t.Context(), r.url)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.CallTool(t.Context(), "web_args", map[string]any{"text": "hello " + string(revision)}); err != nil {
				t.Errorf("%s: %v", revision, err)
			}
			s.Close()
		}
		mu.Lock()
		if !strings.Contains(got.String(), "hello "+string(revision)) || !strings.Contains(got.String(), "of-the-configuration") {
			t.Errorf("%s: the call did not reach the server behind", revision)
		}
		mu.Unlock()
	}
	mu.Lock()
	defer mu.Unlock()
	for _, word := range []string{key, "Bearer", "Cookie", "Authorization"} {
		if strings.Contains(got.String(), word) {
			t.Errorf("%q came through to the server behind:\n%s", word, got.String())
		}
	}

	at, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/authorize?response_type=code&client_id=x&redirect_uri=https://example.com/", "/register", "/token", "/callback?code=x", "/consent",
		"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration",
	} {
		req, err := http.NewRequest(http.MethodGet, "http://"+at.Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", key)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusNotFound || res.Header.Get("Set-Cookie") != "" || res.Header.Get("Location") != "" {
			t.Errorf("GET %s: HTTP %d with %v, want 404 and nothing more", path, res.StatusCode, res.Header)
		}
	}
}
