package oauth

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
		if got := Canonical(mustURL(t, in)); got != want {
			t.Errorf("Canonical(%q) = %q, want %q", in, got, want)
		}
	}
}

// Plain http is for loopback, on behalf of a server on loopback.
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
		if _, err := CheckURL(tt.url, mustURL(t, tt.server)); (err == nil) != tt.want {
			t.Errorf("CheckURL(%q) for %s: %v, want allowed %v", tt.url, tt.server, err, tt.want)
		}
	}
}

// A name that leads to this machine is not connected to on behalf of a public server.
func TestAddressGuard(t *testing.T) {
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
		err := NewFetcher(mustURL(t, server), nil).Get(t.Context(), mustURL(t, hs.URL), "", &doc)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("for %s: %v, want %q", server, err, want)
		}
	}
	if reached != 1 {
		t.Errorf("reached %d times, want once", reached)
	}
}
