package login

import (
	"net/url"
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
