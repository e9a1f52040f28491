package main

import (
	"slices"
	"strings"
	"testing"
)

// Where callers need a credential, the lines that up prints to paste have a place for it, and no
// line starts a gateway without one.
func TestLinesWithCredentials(t *testing.T) {
	h := &upServer{url: "http://127.0.0.1:7420/mcp", plan: &plan{path: "/p/mcp.json", stdio: []string{"up", "--stdio", "--config", "/p/mcp.json"}}, guarded: true}
	lines := h.lines()
	for _, line := range lines {
		if strings.Contains(line, h.url) && !strings.Contains(line, "Bearer CREDENTIAL") {
			t.Errorf("%q has no credential", line)
		}
		if strings.Contains(line, "--stdio") {
			t.Errorf("%q starts a gateway that lets in everybody", line)
		}
	}
	if !strings.Contains(strings.Join(lines, " "), "write Basic instead of Bearer, and USER:PASSWORD in base64") {
		t.Errorf("nothing is said about passwords: %q", lines)
	}
	h.guarded = false
	if plain := h.lines(); slices.ContainsFunc(plain, func(l string) bool { return strings.Contains(l, "CREDENTIAL") }) || len(plain) <= len(lines)-2 {
		t.Errorf("without --auth: %q", plain)
	}
}
