package interop

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The official suites that npm installed: the released one, and the newest alpha,
// which alone knows 2026-07-28.
var (
	suiteReleased = npmFile("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	suiteNext     = npmFile("node_modules", "conformance-next", "dist", "index.js")
)

// TestConformanceServer runs the suites against our server. No failure is
// expected in advance: the exit code decides.
func TestConformanceServer(t *testing.T) {
	node(t)
	url := startServer(t, patchbay(t, "serve", "everything", "--http", "127.0.0.1:0"), home(t)...)
	tests := []struct {
		name, suite string
		args        []string
	}{
		{"0.1.16 active", suiteReleased, []string{"--suite", "active"}},
		{"0.1.16 all", suiteReleased, []string{"--suite", "all"}},
		{"0.2.0-alpha.12 2025-03-26", suiteNext, []string{"--suite", "all", "--spec-version", "2025-03-26"}},
		{"0.2.0-alpha.12 2025-06-18", suiteNext, []string{"--suite", "all", "--spec-version", "2025-06-18"}},
		{"0.2.0-alpha.12 2025-11-25", suiteNext, []string{"--suite", "all", "--spec-version", "2025-11-25"}},
		{"0.2.0-alpha.12 2026-07-28", suiteNext, []string{"--suite", "all", "--spec-version", "2026-07-28"}},
	}
	for _, tt := range tests { // one after the other: some scenarios measure time
		t.Run(tt.name, func(t *testing.T) {
			conform(t, tt.suite, append([]string{"server", "--url", url}, tt.args...)...)
		})
	}
}

// conform runs a suite and prints its total. It fails with all that the suite said.
func conform(t *testing.T, suite string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	stdout, stderr, err := run(ctx, append([]string{node(t), suite}, args...))
	total := ""
	for line := range strings.Lines(stdout) {
		if strings.HasPrefix(line, "Total:") {
			total = strings.TrimSpace(line)
		}
	}
	if err != nil || total == "" {
		t.Fatalf("conformance %q: %v\n%s\nstderr: %s", args, err, stdout, stderr)
	}
	fmt.Printf("report: %s: %s\n", t.Name(), total) // worth a line even when it passes
}
