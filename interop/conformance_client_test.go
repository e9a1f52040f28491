package interop

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/long"
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

// loginScenarios are the scenarios in which the client has to log in.
var loginScenarios = []scenario{
	{"auth/metadata-default", v2025_11_25, last, true},
	{"auth/metadata-var1", v2025_11_25, last, true},
	{"auth/metadata-var2", v2025_11_25, last, true},
	{"auth/metadata-var3", v2025_11_25, last, true},
	{"auth/basic-cimd", v2025_11_25, last, true},
	{"auth/scope-from-www-authenticate", v2025_11_25, last, true},
	{"auth/scope-from-scopes-supported", v2025_11_25, last, true},
	{"auth/scope-omitted-when-undefined", v2025_11_25, last, true},
	{"auth/scope-step-up", v2025_11_25, last, true},
	{"auth/scope-retry-limit", v2025_11_25, last, true},
	{"auth/token-endpoint-auth-basic", v2025_06_18, last, true},
	{"auth/token-endpoint-auth-post", v2025_06_18, last, true},
	{"auth/token-endpoint-auth-none", v2025_06_18, last, true},
	{"auth/pre-registration", v2025_11_25, last, true},
	{"auth/2025-03-26-oauth-metadata-backcompat", v2025_03_26, v2025_03_26, true},
	{"auth/2025-03-26-oauth-endpoint-fallback", v2025_03_26, v2025_03_26, true},
	{"auth/resource-mismatch", last, last, true},
	{"auth/offline-access-scope", last, last, true},
	{"auth/offline-access-not-supported", last, last, true},
	{"auth/authorization-server-migration", last, last, false},
	{"auth/iss-supported", last, last, false},
	{"auth/iss-not-advertised", last, last, false},
	{"auth/iss-supported-missing", last, last, false},
	{"auth/iss-wrong-issuer", last, last, false},
	{"auth/iss-unexpected", last, last, false},
	{"auth/iss-normalized", last, last, false},
	{"auth/metadata-issuer-mismatch", last, last, false},
	{"auth/dpop", "", "", false},
	{"auth/dpop-nonce", "", "", false},
	{"auth/wif-jwt-bearer", "", "", false},
	{"auth/enterprise-managed-authorization", "", "", false},
	{"auth/client-credentials-jwt", "", "", true},
	{"auth/client-credentials-basic", "", "", true},
}

// TestConformanceClient runs the suites against our client, internal/conformance/client.
func TestConformanceClient(t *testing.T) {
	node(t)
	client := filepath.Join(t.TempDir(), "client.exe") // the suite splits the command at spaces
	build := exec.Command("go", "build", "-o", client, "./internal/conformance/client")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the client: %v\n%s", err, out)
	}
	all := slices.Concat(clientScenarios, loginScenarios)
	// The released suite has another name for one of them.
	released := append(slices.Clip(all), scenario{"auth/cross-app-access-complete-flow", "", "", true})
	// Its suites run one after the other: a client of sse-retry has 200 ms for its answer.
	group := func(s scenario) string {
		switch {
		case !s.released:
			return ""
		case s.from == "":
			return "extensions"
		case s.until == v2025_03_26:
			return "backcompat"
		case s.from == last:
			return "draft"
		}
		return "core"
	}
	for _, name := range []string{"core", "backcompat", "extensions", "draft"} {
		t.Run("0.1.16 "+name, func(t *testing.T) {
			r := suiteRun{t.Name(), suiteReleased, []string{"--suite", name}, func(s scenario) bool { return group(s) == name }}
			conform(t, "client", r, released, "--command", client)
		})
	}
	extension := func(s scenario) bool { return s.from == "" && strings.HasPrefix(s.name, "auth/") }
	for _, r := range nextRuns(map[string]func(scenario) bool{
		v2025_11_25: func(s scenario) bool { return s.in(v2025_11_25) || extension(s) },
		v2026_07_28: func(s scenario) bool { return s.in(v2026_07_28) || extension(s) },
	}) {
		t.Run(r.name, func(t *testing.T) {
			if strings.Contains(r.name, " requirements ") {
				long.Only(t)
			}
			// The suite runs all clients at once, which is slow on a small machine.
			conform(t, "client", r, all, "--command", client, "--timeout", "120000")
		})
	}
}
