package gateway_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/long"
)

// docs/translation.md names only tests that exist, and contains every rule that code and tests
// cite.
func TestTranslationDocument(t *testing.T) {
	long.WithoutRace(t)
	text, err := os.ReadFile("../docs/translation.md")
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{
		"gateway": ".", "mcp": "../mcp", "interop": "../interop", "revision": "../internal/revision", "engine": "../internal/engine",
		"streamable": "../internal/transport/streamable", "eventmemory": "../internal/eventmemory", "sse": "../internal/transport/sse", "duplex": "../internal/transport/duplex",
	}
	code := map[string]string{} // the tests of a folder
	for name, folder := range folders {
		files, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code[name] += string(b)
		}
	}
	named := regexp.MustCompile(`\b([a-z]+)\.(Test\w+)`).FindAllStringSubmatch(string(text), -1)
	if len(named) < 150 {
		t.Errorf("%d tests named, want many", len(named))
	}
	for _, n := range named {
		if !strings.Contains(code[n[1]], "\nfunc "+n[2]+"(") {
			t.Errorf("there is no test %s in %s", n[2], n[1])
		}
	}

	rules := map[int]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if strings.HasPrefix(line, "| T-") || strings.HasPrefix(line, "T-") {
			addRules(rules, cell)
		}
	}
	cited := regexp.MustCompile(`\bT-(\d{2,3})\b`)
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range cited.FindAllStringSubmatch(string(b), -1) {
			if n, _ := strconv.Atoi(m[1]); !rules[n] {
				t.Errorf("%s cites %s, which docs/translation.md has not", path, m[0])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// addRules reads "T-21, T-22", "T-60 to T-69".
func addRules(rules map[int]bool, cell string) {
	for _, m := range regexp.MustCompile(`T-(\d+)( to T-(\d+))?`).FindAllStringSubmatch(cell, -1) {
		from, _ := strconv.Atoi(m[1])
		to := from
		if m[3] != "" {
			to, _ = strconv.Atoi(m[3])
		}
		for n := from; n <= to; n++ {
			rules[n] = true
		}
	}
}
