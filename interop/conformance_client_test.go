package interop

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// loginScenarios are those of the released suite in which the client has to log in.
var loginScenarios = []scenario{
	{"auth/metadata-default", "", "", true},
	{"auth/metadata-var1", "", "", true},
	{"auth/metadata-var2", "", "", true},
	{"auth/metadata-var3", "", "", true},
	{"auth/basic-cimd", "", "", true},
	{"auth/scope-from-www-authenticate", "", "", true},
	{"auth/scope-from-scopes-supported", "", "", true},
	{"auth/scope-omitted-when-undefined", "", "", true},
	{"auth/scope-step-up", "", "", true},
	{"auth/scope-retry-limit", "", "", true},
	{"auth/token-endpoint-auth-basic", "", "", true},
	{"auth/token-endpoint-auth-post", "", "", true},
	{"auth/token-endpoint-auth-none", "", "", true},
	{"auth/pre-registration", "", "", true},
	{"auth/2025-03-26-oauth-metadata-backcompat", "", "", true},
	{"auth/2025-03-26-oauth-endpoint-fallback", "", "", true},
}

// TestConformanceClient runs the suites against our client, internal/conformance/client.
// The scenarios of auth/ in the newer suite wait, those that would pass among them.
func TestConformanceClient(t *testing.T) {
	node(t)
	client := filepath.Join(t.TempDir(), "client.exe") // the suite splits the command at spaces
	build := exec.Command("go", "build", "-o", client, "./internal/conformance/client")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the client: %v\n%s", err, out)
	}
	released := slices.Concat(clientScenarios, loginScenarios)
	backcompat := func(s scenario) bool { return strings.HasPrefix(s.name, "auth/2025-03-26-") }
	for _, r := range []suiteRun{
		{"0.1.16 core", suiteReleased, []string{"--suite", "core"}, func(s scenario) bool { return s.released && !backcompat(s) }},
		{"0.1.16 backcompat", suiteReleased, []string{"--suite", "backcompat"}, backcompat},
	} {
		t.Run(r.name, func(t *testing.T) {
			conform(t, "client", r, released, "", "--command", client)
		})
	}
	for _, r := range nextRuns(map[string]func(scenario) bool{
		v2025_11_25: func(s scenario) bool { return s.in(v2025_11_25) },
		v2026_07_28: func(s scenario) bool { return s.in(v2026_07_28) },
	}) {
		t.Run(r.name, func(t *testing.T) {
			// The suite runs all clients at once, which takes a small machine a while.
			conform(t, "client", r, clientScenarios, "auth/", "--command", client, "--timeout", "120000")
		})
	}
}
