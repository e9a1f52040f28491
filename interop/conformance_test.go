package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The official suites that npm installed: the released one, and the newest alpha, the only
// one with 2026-07-28.
var (
	suiteReleased = npmFile("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	suiteNext     = npmFile("node_modules", "conformance-next", "dist", "index.js")
)

// scenario is one scenario of the suites.
type scenario struct {
	name        string
	from, until string // revisions that it belongs to, both included; empty: an extension, which has none
	released    bool   // the released suite has it too
}

// in reports whether a scenario belongs to a revision.
func (s scenario) in(revision string) bool {
	return s.from != "" && s.from <= revision && revision <= s.until
}

// suiteRun is one run of a suite, with the scenarios that must be in it.
type suiteRun struct {
	name  string
	suite string
	args  []string
	want  func(scenario) bool
}

// outcome is a suite's result of one scenario.
type outcome struct {
	checks []check
	stderr string // of the client; a server has none
}

// check is one check of a scenario.
type check struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Message string `json:"errorMessage"`
}

// conform runs a suite, with each scenario as a subtest. A scenario fails if a check fails
// or warns, if it has no checks, if the client writes to standard error, or if it does not
// run. There are no expected failures, and the suite runs no other scenarios.
func conform(t *testing.T, role string, r suiteRun, all []scenario, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	begin := func(args ...string) []string {
		return append([]string{node(t), r.suite, role, "-o", dir}, args...)
	}
	command := begin(append(slices.Clip(args), r.args...)...)
	stdout, stderr, err := run(ctx, command) // the exit code ignores omitted scenarios
	ran := results(t, dir)
	for again := 0; again < 3 && onlyLate(ran["sse-retry"]); again++ {
		t.Logf("sse-retry was late beside %d other clients (%v), so it runs again by itself", len(ran)-1, complaints(ran["sse-retry"]))
		dir = t.TempDir()
		_, _, err = run(ctx, begin(slices.Concat(args, r.args[2:], []string{"--scenario", "sse-retry"})...)) // without the choice of a suite
		ran["sse-retry"] = results(t, dir)["sse-retry"]
	}
	if role == "server" { // the suite puts the role before the name
		bare := map[string]outcome{}
		for name, out := range ran {
			bare[strings.TrimPrefix(name, "server-")] = out
		}
		ran = bare
	}
	if len(ran) == 0 {
		t.Fatalf("conformance %q: %v\n%s\nstderr: %s", command, err, stdout, stderr)
	}
	passed, skipped := 0, []string(nil)
	for _, s := range all {
		if !r.want(s) {
			continue
		}
		out, found := ran[s.name]
		checks := out.checks
		delete(ran, s.name)
		t.Run(s.name, func(t *testing.T) {
			if !found || len(checks) == 0 {
				t.Errorf("the scenario did not run\n%s\nstderr: %s", stdout, stderr)
			}
			if out.stderr != "" {
				t.Errorf("the client says: %s", out.stderr)
			}
			for _, c := range complaints(out) {
				t.Errorf("%s: %s: %s", c.Status, c.ID, c.Message)
			}
			for _, c := range checks {
				switch c.Status {
				case "SKIPPED":
					skipped = append(skipped, s.name+"/"+c.ID)
				case "SUCCESS":
					passed++
				}
			}
		})
	}
	for name := range ran {
		t.Errorf("the suite ran %q, which is not in our list: add it", name)
	}
	if least, known := leastChecks[t.Name()]; !known || passed < least && !t.Failed() {
		t.Errorf("%d checks passed; leastChecks has %d for this run (listed: %v)", passed, least, known)
	}
	fmt.Printf("report: %s: %d checks passed, skipped by the suite: %q\n", t.Name(), passed, skipped)
	if err != nil && !t.Failed() {
		t.Errorf("conformance %q: %v, though no scenario failed\n%s\nstderr: %s", command, err, stdout, stderr)
	}
}

// complaints are the checks that failed or warned: a warning is a violated SHOULD, and Patchbay violates none.
func complaints(out outcome) []check {
	var found []check
	for _, c := range out.checks {
		if c.Status == "FAILURE" || c.Status == "WARNING" {
			found = append(found, c)
		}
	}
	return found
}

// onlyLate reports whether all that a scenario complains of is a client that came back later than 200 ms after its time.
// The suite starts all clients at once, and on a crowded machine it measures the machine.
func onlyLate(out outcome) bool {
	found := complaints(out)
	return len(found) == 1 && found[0].ID == "client-sse-retry-timing" && strings.Contains(found[0].Message, " late ")
}

// leastChecks are the checks that the pinned versions of the suites have made in each run: fewer of them mean that
// something was left out in silence.
var leastChecks = map[string]int{
	"TestConformanceServer/0.1.16_all":                             46,
	"TestConformanceServer/0.2.0-alpha.12_2025-03-26":              3,
	"TestConformanceServer/0.2.0-alpha.12_2025-06-18":              56,
	"TestConformanceServer/0.2.0-alpha.12_2025-11-25":              83,
	"TestConformanceServer/0.2.0-alpha.12_2026-07-28":              152,
	"TestConformanceServer/0.2.0-alpha.12_all":                     275,
	"TestConformanceServer/0.2.0-alpha.12_requirements_2025-11-25": 83,
	"TestConformanceServer/0.2.0-alpha.12_requirements_2026-07-28": 196,

	// 0.1.16 has 311 checks of clients in four runs.
	"TestConformanceClient/0.1.16_core":                            229,
	"TestConformanceClient/0.1.16_draft":                           33,
	"TestConformanceClient/0.1.16_extensions":                      28,
	"TestConformanceClient/0.1.16_backcompat":                      21,
	"TestConformanceClient/0.2.0-alpha.12_2025-03-26":              19,
	"TestConformanceClient/0.2.0-alpha.12_2025-06-18":              60,
	"TestConformanceClient/0.2.0-alpha.12_2025-11-25":              249,
	"TestConformanceClient/0.2.0-alpha.12_2026-07-28":              416,
	"TestConformanceClient/0.2.0-alpha.12_all":                     505,
	"TestConformanceClient/0.2.0-alpha.12_requirements_2025-11-25": 308,
	"TestConformanceClient/0.2.0-alpha.12_requirements_2026-07-28": 473,
}

// results reads the results of a suite, by scenario: a folder each, with the time in its
// name.
func results(t *testing.T, dir string) map[string]outcome {
	t.Helper()
	found := map[string]outcome{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var out outcome
		if err := json.Unmarshal(raw, &out.checks); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if said, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stderr.txt")); err == nil {
			out.stderr = strings.TrimSpace(string(said))
		}
		name, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		name = name[:max(len(name)-len("-2006-01-02T15-04-05-000Z"), 0)]
		found[name] = out
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// spoken are the revisions of the newer suite.
var spoken = []string{v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28}

// nextRuns are the runs of the newer suite: all scenarios of each revision; both lists of
// requirements, with what the suite adds to them; and all there are, the extensions
// among them, each in the revision that the suite picks. The lists run in the long form:
// each of their scenarios is in another run.
func nextRuns(required map[string]func(scenario) bool) []suiteRun {
	var runs []suiteRun
	for _, v := range spoken {
		runs = append(runs, suiteRun{"0.2.0-alpha.12 " + v, suiteNext, []string{"--suite", "all", "--spec-version", v}, func(s scenario) bool { return s.in(v) }})
	}
	for _, v := range slices.Sorted(maps.Keys(required)) {
		runs = append(runs, suiteRun{"0.2.0-alpha.12 requirements " + v, suiteNext, []string{"--requirements", v}, required[v]})
	}
	return append(runs, suiteRun{"0.2.0-alpha.12 all", suiteNext, []string{"--suite", "all"}, func(scenario) bool { return true }})
}

// A scenario runs again only if nothing but a late client speaks against it.
func TestOnlyLate(t *testing.T) {
	late := check{"client-sse-retry-timing", "WARNING", "Client reconnected slightly late (816ms instead of 500ms)."}
	early := check{"client-sse-retry-timing", "FAILURE", "Client reconnected too early (100ms instead of 500ms)."}
	unsent := check{"client-sse-last-event-id", "WARNING", "Client did not send Last-Event-ID header on reconnection."}
	fine := check{"client-sse-graceful-reconnect", "SUCCESS", ""}
	for name, tt := range map[string]struct {
		checks []check
		want   bool
	}{
		"late": {[]check{fine, late}, true}, "early": {[]check{fine, early}, false}, "late and something else": {[]check{late, unsent}, false},
		"something else": {[]check{unsent}, false}, "fine": {[]check{fine}, false}, "nothing": {nil, false},
	} {
		if got := onlyLate(outcome{checks: tt.checks}); got != tt.want {
			t.Errorf("%s: onlyLate is %v", name, got)
		}
	}
}
