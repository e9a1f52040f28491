package interop

import (
	"context"
	"regexp"
	"testing"
	"time"
)

// The scenarios of the tasks extension, which belong to no suite.
var taskScenarios = []string{
	"lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input",
	"request-headers", "dispatch-and-envelope", "required-task-error", "mrtr-composition",
}

// passed is the last line of a scenario without a failure or warning.
var passed = regexp.MustCompile(`Passed: ([1-9]\d*)/([1-9]\d*), 0 failed, 0 warnings`)

// TestConformanceTasks runs the scenarios of the tasks extension against our server. That
// of status notifications checks nothing yet in this release of the suite.
func TestConformanceTasks(t *testing.T) {
	node(t)
	url := startServer(t, patchbay(t, "serve", "everything", "--http", "127.0.0.1:0"), home(t)...)
	for _, name := range taskScenarios {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			stdout, stderr, err := run(ctx, []string{node(t), suiteNext, "server", "--url", url,
				"--scenario", "tasks-" + name, "--spec-version", "2026-07-28", "--force"})
			if m := passed.FindStringSubmatch(stdout); err != nil || m == nil || m[1] != m[2] {
				t.Fatalf("conformance tasks-%s: %v\n%s\nstderr: %s", name, err, stdout, stderr)
			}
		})
	}
}
