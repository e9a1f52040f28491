package main

import (
	"strings"
	"testing"
)

// TestHelpFitsOneScreen: the help of every verb fits 80 columns and 30 lines, and begins with an
// example.
func TestHelpFitsOneScreen(t *testing.T) {
	topics := [][]string{{"help"}}
	for _, p := range helpPages {
		topics = append(topics, []string{"help", p.name})
	}
	pages := len(topics)
	eachVerb(func(_ *verb, path string) { topics = append(topics, append([]string{"help"}, strings.Fields(path)...)) })
	for i, args := range topics {
		out := patchbay(t, args...)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if len(lines) > 30 {
			t.Errorf("patchbay %v prints %d lines, want at most 30", args, len(lines))
		}
		for _, line := range lines {
			if columns(line) > 80 {
				t.Errorf("patchbay %v prints a line of %d columns, want at most 80: %q", args, columns(line), line)
			}
		}
		if i == 0 || i >= pages {
			if len(lines) < 3 || !strings.HasPrefix(lines[2], "  patchbay ") {
				t.Errorf("patchbay %v does not begin with an example:\n%s", args, out)
			}
		}
	}
}
