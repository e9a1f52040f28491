package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// The scenarios of a host, each over the three provider APIs and in text mode: a script in
// testdata/host is the model, and the program runs as a person runs it.

// apis are prefixes of --model.
var apis = []string{"openai", "openai-responses", "anthropic", "text"}

// ran is the result of a run of the program.
type ran struct {
	code           int
	stdout, stderr string
}

// alone gives a test an environment without configuration, data and keys.
func alone(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "AppData", "LocalAppData", "USERPROFILE"} {
		t.Setenv(name, dir)
	}
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"} {
		t.Setenv(name, "")
	}
	t.Chdir(dir)
	return dir
}

// scripted starts a scripted model, and sets the environment to it.
func scripted(t *testing.T, script *modeltest.Script) *modeltest.Server {
	t.Helper()
	s, url := modeltest.Start(t, script)
	for _, of := range []string{"OPENAI", "ANTHROPIC"} {
		t.Setenv(of+"_BASE_URL", url+"/v1")
		t.Setenv(of+"_API_KEY", "key-of-the-test")
	}
	s.Require("key-of-the-test")
	return s
}

// typed runs the program in this process.
func typed(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return ran{code, stdout.String(), stderr.String()}
}

// expect compares a run with an exit code, standard output, and parts of standard error.
func (o ran) expect(t *testing.T, code int, stdout string, stderr ...string) {
	t.Helper()
	if o.code != code || o.stdout != stdout {
		t.Errorf("exit code %d, stdout %q; want %d, %q", o.code, o.stdout, code, stdout)
	}
	for _, part := range stderr {
		if !strings.Contains(o.stderr, part) {
			t.Errorf("stderr is without %q", part)
		}
	}
	if t.Failed() {
		t.Logf("stderr:\n%s", o.stderr)
	}
}

// overAPIs runs a scenario with each API.
func overAPIs(t *testing.T, script string, scenario func(t *testing.T, model string)) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			s, err := modeltest.Load(filepath.Join("testdata", "host", script))
			if err != nil {
				t.Fatal(err)
			}
			alone(t)
			scripted(t, s)
			scenario(t, api+"/scripted")
		})
	}
}

// dolphins creates a database.
func dolphins(t *testing.T, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE dolphin_species (id INTEGER PRIMARY KEY, name TEXT);
		CREATE TABLE evolutionary_relationships (ancestor INTEGER, descendant INTEGER)`); err != nil {
		t.Fatal(err)
	}
}

func TestScenarioDolphins(t *testing.T) {
	overAPIs(t, "dolphins.yaml", func(t *testing.T, model string) {
		dolphins(t, "dolphins.db")
		if err := os.WriteFile("mcp.json", []byte(`{"mcpServers": {"sqlite": {"builtin": "sqlite", "args": ["--db", "dolphins.db"]}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		typed(t, "", "config", "trust")
		// Read-only tools of the built-in server need no --allow.
		typed(t, "", "run", "list tables", "-m", model).expect(t, exitOK,
			"There are two tables: dolphin_species and evolutionary_relationships.\n",
			"I look them up.\n", "→ sqlite/list_tables {}", "← sqlite/list_tables", "2 steps, 1 call, 1900+50 tokens")
	})
}

func TestScenarioShop(t *testing.T) {
	overAPIs(t, "shop.yaml", func(t *testing.T, model string) {
		typed(t, "", "run", "order two stoves for Amara", "-m", model, "-s", "shop", "--allow", "shop/add-to-cart", "--allow", "shop/place-*").expect(t, exitOK,
			"Ordered two Ember Stoves for Amara Lindqvist, 159.80 EUR.\n", "→ shop/place-order {\"cart\":\"crt-1003\"}")
	})
}

func TestScenarioCreateProduct(t *testing.T) {
	overAPIs(t, "create.yaml", func(t *testing.T, model string) {
		typed(t, "", "run", "Add a hammock for 59 euros", "-m", model, "-s", "shop", "--allow", "shop/create-product", "--allow-sampling", "shop").expect(t, exitOK,
			"Hangabout is in the catalogue.\n")
	})
}

func TestScenarioBookTrip(t *testing.T) {
	overAPIs(t, "trip.yaml", func(t *testing.T, model string) {
		day := time.Now().AddDate(0, 0, 200).Format(time.DateOnly)
		if err := os.WriteFile("answers.json", fmt.Appendf(nil, `{"date": %q}`, day), 0o600); err != nil {
			t.Fatal(err)
		}
		typed(t, "", "run", "Book Lofoten for Amara", "-m", model, "-s", "shop", "--allow", "shop/book-trip", "--on-elicit", "@answers.json").expect(t, exitOK,
			"The trip is booked.\n")
	})
}

// With --json each step is a line, and the last one has the answer.
func TestRunTellsEachStep(t *testing.T) {
	overAPIs(t, "dolphins.yaml", func(t *testing.T, model string) {
		dolphins(t, "dolphins.db")
		o := typed(t, "", "run", "list", "tables", "-m", model, "--json", "--", "patchbay-is-not-asked")
		if o.code != exitUnreachable {
			t.Errorf("exit code %d of a command that is not there", o.code)
		}
		if err := os.WriteFile("mcp.json", []byte(`{"mcpServers": {"sqlite": {"builtin": "sqlite", "args": ["--db", "dolphins.db"]}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		typed(t, "", "config", "trust")
		o = typed(t, "", "run", "list", "tables", "-m", model, "--json")
		var kinds []string
		var last host.Event
		for line := range strings.Lines(o.stdout) {
			var e host.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if e.Kind != host.TextCame && e.Kind != host.Noted {
				kinds = append(kinds, string(e.Kind))
			}
			last = e
		}
		if got, want := strings.Join(kinds, " "), "asking answered called started result asking answered ended"; got != want {
			t.Errorf("events: %s, want %s", got, want)
		}
		if o.code != exitOK || !strings.Contains(last.Text, "dolphin_species and") || last.Usage == nil || last.Usage.Input != 1900 {
			t.Errorf("exit code %d, last event %+v\n%s", o.code, last, o.stderr)
		}
	})
}
