package rerun_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/rerun"
)

// Where callers need a credential, the lines that up prints to paste have a place for it, and no
// line starts a gateway without one.
func TestLinesWithCredentials(t *testing.T) {
	g := &rerun.Gateway{URL: "http://127.0.0.1:7420/mcp", File: "/p/mcp.json", Stdio: []string{"up", "--stdio", "--config", "/p/mcp.json"}, Guarded: true}
	lines := g.Lines()
	for _, line := range lines {
		if strings.Contains(line, g.URL) && !strings.Contains(line, "Bearer CREDENTIAL") {
			t.Errorf("%q has no credential", line)
		}
		if strings.Contains(line, "--stdio") {
			t.Errorf("%q starts a gateway that lets in everybody", line)
		}
	}
	if !strings.Contains(strings.Join(lines, " "), "write Basic instead of Bearer, and USER:PASSWORD in base64") {
		t.Errorf("nothing is said about passwords: %q", lines)
	}
	g.Callback = "https://mcp.example.com/oauth/callback"
	if lines := strings.Join(g.Lines(), "\n"); strings.Contains(lines, "CREDENTIAL") || strings.Contains(lines, "--stdio") || !strings.Contains(lines, "must have this redirect URI:\n  "+g.Callback+"\n") {
		t.Errorf("where people log in: %s", lines)
	}
	g.Guarded, g.Callback = false, ""
	if plain := g.Lines(); slices.ContainsFunc(plain, func(l string) bool { return strings.Contains(l, "CREDENTIAL") }) || len(plain) <= len(lines)-2 {
		t.Errorf("without --auth: %q", plain)
	}
}
