package auth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// AUTH-26-057 to -060.
func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		"https://mcp.example.com/mcp":          "https://mcp.example.com/mcp",
		"HTTPS://MCP.Example.com:8443/Mcp/":    "https://mcp.example.com:8443/Mcp/",
		"https://mcp.example.com/":             "https://mcp.example.com",
		"https://mcp.example.com/a%2Fb?key=x":  "https://mcp.example.com/a%2Fb",
		"https://mcp.example.com/server/mcp#x": "https://mcp.example.com/server/mcp",
	} {
		if got := canonical(mustURL(t, in)); got != want {
			t.Errorf("canonical(%q) = %q, want %q", in, got, want)
		}
	}
}

// AUTH-26-059.
func TestCovers(t *testing.T) {
	server := "https://mcp.example.com/a/b"
	for resource, want := range map[string]bool{
		"https://mcp.example.com/a/b":     true,
		"https://mcp.example.com/a/b/":    true,
		"HTTPS://MCP.EXAMPLE.COM:443/a":   true,
		"https://mcp.example.com":         true,
		"https://mcp.example.com/":        true,
		"https://mcp.example.com/a/bc":    false,
		"https://mcp.example.com/a/b/c":   false,
		"https://mcp.example.com/A":       false,
		"http://mcp.example.com/a/b":      false,
		"https://mcp.example.com:8/a/b":   false,
		"https://x@mcp.example.com/a/b":   false,
		"https://mcp.example.com/a/b?q":   false,
		"https://mcp.example.com.evil.io": false,
		"https://mcp.example.com/a/b#f":   false,
		"mcp.example.com":                 false,
		"":                                false,
	} {
		if got := covers(resource, mustURL(t, server)); got != want {
			t.Errorf("covers(%q, %q) = %v, want %v", resource, server, got, want)
		}
	}
}

// http is for what is on loopback, and asked for by a server that is there.
func TestCheckURL(t *testing.T) {
	const remote, local = "https://mcp.example.com", "http://localhost:1"
	tests := []struct {
		server, url string
		want        bool
	}{
		{remote, "https://login.example.com/x?y=z", true},
		{remote, "http://login.example.com", false},
		{remote, "http://127.0.0.1:1/x", false},
		{local, "http://127.0.0.1:1/x", true},
		{local, "http://[::1]:1/x", true},
		{local, "http://LOCALHOST/x", true},
		{local, "http://localhost.evil.io/x", false},
		{local, "http://0.0.0.0/x", false},
		{remote, "https:/x", false},
		{remote, "https://:443/x", false},
		{remote, "//login.example.com", false},
		{remote, "ftp://login.example.com", false},
		{remote, "https://a:b@login.example.com", false},
	}
	for _, tt := range tests {
		if _, err := checkURL(tt.url, mustURL(t, tt.server)); (err == nil) != tt.want {
			t.Errorf("checkURL(%q) for %s: %v, want allowed %v", tt.url, tt.server, err, tt.want)
		}
	}
}

// A name that leads to this machine is not connected to for a server of elsewhere.
func TestGuard(t *testing.T) {
	reached := 0
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{}`)
	}))
	defer hs.Close()
	var doc struct{}
	for server, want := range map[string]string{
		"https://8.8.8.8":        "inside of this network",
		"https://10.0.0.1":       "inside of this network",
		"http://127.0.0.1:1/mcp": "",
	} {
		err := newFetcher(mustURL(t, server), nil).get(t.Context(), mustURL(t, hs.URL), "", &doc)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("for %s: %v, want %q", server, err, want)
		}
	}
	if reached != 1 {
		t.Errorf("reached %d times, want once", reached)
	}
}

// Secrets do not print. XAUTH-26-019.
func TestSecretsDoNotPrint(t *testing.T) {
	for _, v := range []any{Credentials{ID: "id", Secret: "hidden"}, &Credentials{ID: "id", Secret: "hidden"}, &token{access: "hidden", refresh: "hidden"}, identity{Credentials: Credentials{ID: "id", Secret: "hidden"}}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, "hidden") {
				t.Errorf("%s of %T is %s", verb, v, got)
			}
		}
	}
}
