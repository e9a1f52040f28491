package interop

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "cuelang.org/go/cue/token" // of the module that includes the JSON-Schema-Test-Suite

	"github.com/patchbay-dev/patchbay/schema"
)

// suiteDialects are the folders of the suite, with the $schema that its schemas
// omit.
var suiteDialects = []struct {
	folder, uri string
	tests       int // the minimum; with fewer the suite was not found
}{
	{"draft4", "http://json-schema.org/draft-04/schema#", 600},
	{"draft6", "http://json-schema.org/draft-06/schema#", 800},
	{"draft7", "http://json-schema.org/draft-07/schema#", 900},
	{"draft2019-09", "https://json-schema.org/draft/2019-09/schema", 1200},
	{"draft2020-12", "https://json-schema.org/draft/2020-12/schema", 1200},
}

// suiteRefused are the groups of tests, by file, that need a remote document:
// documents are never loaded, so Compile refuses their schemas (JSON-26-006,
// JSON-26-008, JSON-26-011). An empty list is all of a file.
var suiteRefused = map[string][]string{
	"refRemote.json": {}, // documents of http://localhost:1234
	"dynamicRef.json": { // the same
		"strict-tree schema, guards against misspelled properties",
		"tests for implementation dynamic anchor and reference link",
		"$ref and $dynamicAnchor are independent of order - $defs first",
		"$ref and $dynamicAnchor are independent of order - $ref first",
		"$ref to $dynamicRef finds detached $dynamicAnchor",
	},
	"vocabulary.json": { // dialects of http://localhost:1234
		"schema that uses custom metaschema with with no validation vocabulary",
		"ignore unrecognized optional vocabulary",
	},
}

// TestSuite runs the required part of the official JSON-Schema-Test-Suite on
// foreign schemas, in all dialects. JSON-26-001 to JSON-26-005.
func TestSuite(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "cuelang.org/go").Output()
	if err != nil {
		t.Fatal(err)
	}
	suite := filepath.Join(strings.TrimSpace(string(out)), "encoding", "jsonschema", "testdata", "external", "tests")
	for _, d := range suiteDialects {
		t.Run(d.folder, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(suite, d.folder, "*.json"))
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, file := range files {
				raw, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				var groups []suiteGroup
				if err := json.Unmarshal(raw, &groups); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				for _, g := range groups {
					n += g.run(t, filepath.Base(file), d.uri)
				}
			}
			if n < d.tests {
				t.Errorf("%d tests in %d files, want %d or more", n, len(files), d.tests)
			}
		})
	}
}

// suiteGroup is a schema of the suite with its tests.
type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// run returns the number of tests that ran.
func (g *suiteGroup) run(t *testing.T, file, dialect string) int {
	s := bytes.TrimSpace(g.Schema)
	if s[0] == '{' && !bytes.Contains(s, []byte(`"$schema"`)) {
		comma := ","
		if len(bytes.TrimSpace(s[1:])) == 1 {
			comma = ""
		}
		s = append([]byte(`{"$schema":"`+dialect+`"`+comma), s[1:]...)
	}
	v, err := schema.Compile(s)
	if refused, ok := suiteRefused[file]; ok && (len(refused) == 0 || slices.Contains(refused, g.Description)) {
		if err == nil || !strings.Contains(err.Error(), "http://localhost:1234/") {
			t.Errorf("%s: %s: error %v, want one that names the document that is needed", file, g.Description, err)
		}
		return len(g.Tests)
	}
	if err != nil {
		t.Errorf("%s: %s: %v", file, g.Description, err)
		return len(g.Tests)
	}
	for _, test := range g.Tests {
		if err := v.Validate(test.Data); (err == nil) != test.Valid {
			t.Errorf("%s: %s: %s: Validate(%s) = %v, want valid: %v", file, g.Description, test.Description, test.Data, err, test.Valid)
		}
	}
	return len(g.Tests)
}
