package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// The calls in the pages of the first server and client have the results that the pages show.
func TestPages(t *testing.T) {
	s := mcptest.Connect(t, newServer(), &mcp.Client{Name: "test"}, mcp.V2026_07_28)
	found := 0
	check := func(page, tool string, args any, want string) {
		t.Helper()
		found++
		if res, err := s.CallTool(t.Context(), tool, args); err != nil || res.Text() != want {
			t.Errorf("%s: %s %v = %v, %v, want %s", page, tool, args, res, err, want)
		}
	}
	read := func(page string) string {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(text), "\r", "")
	}
	for _, m := range regexp.MustCompile(`(?m)^\$ patchbay call (\w+)(.*) -- \./units\n([{\[].*)`).FindAllStringSubmatch(read("write-a-server.md"), -1) {
		args := map[string]any{}
		for _, word := range strings.Fields(m[2]) {
			name, value, _ := strings.Cut(word, "=")
			if args[name] = value; json.Valid([]byte(value)) {
				args[name] = json.RawMessage(value)
			}
		}
		check("write-a-server.md", m[1], args, m[3])
	}
	for _, page := range []string{"write-a-client.md", "cookbook/client.md"} {
		for _, m := range regexp.MustCompile(`(?m)^\$ .*caller (\w+) '(.*)' .*\n(?:\w+: .*\n){2}(?:convert: )?(.*)`).FindAllStringSubmatch(read(page), -1) {
			check(page, m[1], json.RawMessage(m[2]), m[3])
		}
	}
	if found != 5 {
		t.Errorf("the pages have %d calls; the search is broken", found)
	}
}
