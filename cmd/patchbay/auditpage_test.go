package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The commands of docs/audit.md with an output print that output.
func TestAuditPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), "\r\n", "\n")
	t.Chdir("../../docs/testdata/audit")
	t.Setenv("COLUMNS", "")
	hours := regexp.MustCompile(`2026-11-2\d \d\d:\d\d`) // of the zone of this machine
	commands := regexp.MustCompile("(?m)^\\$ patchbay (.*)\n((?:[^$`].*\n)*)").FindAllStringSubmatch(text, -1)
	for _, c := range commands {
		var out, talk strings.Builder
		run(t.Context(), strings.Fields(c[1]), strings.NewReader(""), &out, &talk)
		if got, want := hours.ReplaceAllString(out.String(), ""), hours.ReplaceAllString(c[2], ""); got != want {
			t.Errorf("patchbay %s prints\n%s%s\nwant\n%s", c[1], got, talk.String(), want)
		}
	}
	if len(commands) < 5 {
		t.Errorf("the page has %d commands; the search is broken", len(commands))
	}
}
