package main

import (
	"io"
	"strings"
	"testing"
)

// TestHelpFitsOneScreen holds the help of every verb against a screen of 80 columns
// and 30 lines, and wants an example before all else.
func TestHelpFitsOneScreen(t *testing.T) {
	topics := [][]string{{"help"}, {"help", "flags"}, {"help", "exits"}}
	for verb := range usages {
		topics = append(topics, append([]string{"help"}, strings.Fields(verb)...))
	}
	for _, args := range topics {
		var out strings.Builder
		if code := run(t.Context(), args, strings.NewReader(""), &out, io.Discard); code != 0 {
			t.Errorf("patchbay %v exited with %d", args, code)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) > 30 {
			t.Errorf("patchbay %v prints %d lines, want at most 30", args, len(lines))
		}
		for _, line := range lines {
			if columns(line) > 80 {
				t.Errorf("patchbay %v prints a line of %d columns, want at most 80: %q", args, columns(line), line)
			}
		}
		if last := args[len(args)-1]; last != "flags" && last != "exits" {
			if len(lines) < 3 || !strings.HasPrefix(lines[2], "  patchbay ") {
				t.Errorf("patchbay %v does not begin with an example:\n%s", args, out.String())
			}
		}
	}
}
