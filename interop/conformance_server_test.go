package interop

import (
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/long"
)

const lastLegacy, last = v2025_11_25, v2026_07_28

// serverScenarios are the scenarios for a server, of both suites.
var serverScenarios = []scenario{
	{"server-initialize", v2025_06_18, lastLegacy, true},
	{"server-session-lifecycle", v2025_03_26, lastLegacy, false},
	{"server-stateless", last, last, false},
	{"logging-set-level", v2025_06_18, lastLegacy, true},
	{"ping", v2025_06_18, lastLegacy, true},
	{"completion-complete", v2025_06_18, last, true},
	{"tools-list", v2025_06_18, last, true},
	{"tools-call-simple-text", v2025_06_18, last, true},
	{"tools-call-image", v2025_06_18, last, true},
	{"tools-call-audio", v2025_06_18, last, true},
	{"tools-call-embedded-resource", v2025_06_18, last, true},
	{"tools-call-mixed-content", v2025_06_18, last, true},
	{"tools-call-with-logging", v2025_06_18, lastLegacy, true},
	{"tools-call-error", v2025_06_18, last, true},
	{"tools-call-with-progress", v2025_06_18, last, true},
	{"tools-call-sampling", v2025_06_18, lastLegacy, true},
	{"tools-call-elicitation", v2025_06_18, lastLegacy, true},
	{"json-schema-2020-12", v2025_11_25, last, true},
	{"elicitation-sep1034-defaults", v2025_11_25, lastLegacy, true},
	{"elicitation-sep1330-enums", v2025_11_25, lastLegacy, true},
	{"server-sse-polling", v2025_11_25, lastLegacy, true},
	{"server-sse-multiple-streams", v2025_11_25, last, true},
	{"resources-list", v2025_06_18, last, true},
	{"resources-read-text", v2025_06_18, last, true},
	{"resources-read-binary", v2025_06_18, last, true},
	{"resources-templates-read", v2025_06_18, last, true},
	{"resources-subscribe", v2025_06_18, lastLegacy, true},
	{"resources-unsubscribe", v2025_06_18, lastLegacy, true},
	{"sep-2164-resource-not-found", last, last, false},
	{"prompts-list", v2025_06_18, last, true},
	{"prompts-get-simple", v2025_06_18, last, true},
	{"prompts-get-with-args", v2025_06_18, last, true},
	{"prompts-get-embedded-resource", v2025_06_18, last, true},
	{"prompts-get-with-image", v2025_06_18, last, true},
	{"dns-rebinding-protection", v2025_11_25, last, true},
	{"caching", last, last, false},
	{"http-header-validation", last, last, false},
	{"http-custom-header-server-validation", last, last, false},
	{"input-required-result-basic-elicitation", last, last, false},
	{"input-required-result-basic-sampling", last, last, false},
	{"input-required-result-basic-list-roots", last, last, false},
	{"input-required-result-request-state", last, last, false},
	{"input-required-result-multiple-input-requests", last, last, false},
	{"input-required-result-multi-round", last, last, false},
	{"input-required-result-missing-input-response", last, last, false},
	{"input-required-result-non-tool-request", last, last, false},
	{"input-required-result-result-type", last, last, false},
	{"input-required-result-unsupported-methods", last, last, false},
	{"input-required-result-tampered-state", last, last, false},
	{"input-required-result-capability-check", last, last, false},
	{"input-required-result-ignore-extra-params", last, last, false},
	{"input-required-result-validate-input", last, last, false},
	{"sep-2640-skills-directory", "", "", false},
	{"sep-2640-skills-enumeration", "", "", false},
	{"sep-2640-skills-manifest", "", "", false},
	{"tasks-lifecycle", "", "", false},
	{"tasks-capability-negotiation", "", "", false},
	{"tasks-wire-fields", "", "", false},
	{"tasks-request-state-removal", "", "", false},
	{"tasks-mrtr-input", "", "", false},
	{"tasks-request-headers", "", "", false},
	{"tasks-dispatch-and-envelope", "", "", false},
	{"tasks-status-notifications", "", "", false}, // a stub of the suite, which skips its checks
	{"tasks-required-task-error", "", "", false},
	{"tasks-mrtr-composition", "", "", false},
}

// TestConformanceServer runs the suites against one server of ours, on one endpoint.
func TestConformanceServer(t *testing.T) {
	node(t)
	url := startServer(t, patchbay(t, "serve", "everything", "--http", "127.0.0.1:0"), home(t)...)
	runs := append([]suiteRun{
		{"0.1.16 all", suiteReleased, []string{"--suite", "all"}, func(s scenario) bool { return s.released }},
	}, nextRuns(map[string]func(scenario) bool{
		v2025_11_25: func(s scenario) bool { return s.in(v2025_11_25) },
		v2026_07_28: func(s scenario) bool { return s.in(v2026_07_28) || strings.HasPrefix(s.name, "tasks-") },
	})...)
	for _, r := range runs { // one after the other: some scenarios measure time
		t.Run(r.name, func(t *testing.T) {
			if strings.Contains(r.name, " requirements ") {
				long.Only(t)
			}
			conform(t, "server", r, serverScenarios, "--url", url)
		})
	}
}
