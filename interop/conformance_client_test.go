package interop

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// clientScenarios are the scenarios for a client, of both suites.
var clientScenarios = []scenario{
	{"initialize", v2025_06_18, lastLegacy, true},
	{"tools_call", v2025_06_18, last, true},
	{"elicitation-sep1034-client-defaults", v2025_11_25, lastLegacy, true},
	{"sse-retry", v2025_11_25, lastLegacy, true},
	{"request-metadata", last, last, false},
	{"sep-2322-client-request-state", last, last, false},
	{"http-standard-headers", last, last, false},
	{"http-custom-headers", last, last, false},
	{"http-invalid-tool-headers", last, last, false},
	{"json-schema-ref-no-deref", last, last, false},
	{"json-schema-2020-12-preservation", v2025_11_25, last, false},
	{"sep-2640-client-no-prefetch", "", "", false},
	{"sep-2640-client-verify-digest", "", "", false},
	{"sep-2640-client-verify-size", "", "", false},
	{"sep-2640-client-verify-frontmatter", "", "", false},
}

// TestConformanceClient runs the suites against our client, internal/conformance/client.
// The client cannot log in yet, so the scenarios of auth/ wait.
func TestConformanceClient(t *testing.T) {
	node(t)
	client := filepath.Join(t.TempDir(), "client.exe") // the suite splits the command at spaces
	build := exec.Command("go", "build", "-o", client, "./internal/conformance/client")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the client: %v\n%s", err, out)
	}
	// The released suite's backcompat and, in the newer one, 2025-03-26 are about
	// logging in alone.
	runs := append([]suiteRun{
		{"0.1.16 core", suiteReleased, []string{"--suite", "core"}, func(s scenario) bool { return s.released }},
		{"0.1.16 backcompat", suiteReleased, []string{"--suite", "backcompat"}, func(scenario) bool { return false }},
	}, nextRuns(map[string]func(scenario) bool{
		v2025_11_25: func(s scenario) bool { return s.in(v2025_11_25) },
		v2026_07_28: func(s scenario) bool { return s.in(v2026_07_28) },
	})...)
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			// The suite runs all clients at once, which takes a small machine a while.
			conform(t, "client", r, clientScenarios, "auth/", "--command", client, "--timeout", "120000")
		})
	}
}
