package screen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFold(t *testing.T) {
	tests := []struct {
		line  string
		width int
		want  []string
	}{
		{"short", 10, []string{"short"}},
		{"abcdefg", 3, []string{"abc", "def", "g"}},
		{"日本語", 3, []string{"日", "本", "語"}},
		{"ab" + Paint("cdef", "31", true) + "g", 3, []string{"ab\x1b[31mc\x1b[0m", "\x1b[31mdef\x1b[0m", "g"}},
		{"", 3, []string{""}},
		{"no bound", 0, []string{"no bound"}},
		{"日", 1, []string{"日"}}, // wider than the line
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, Fold(tt.line, tt.width)); diff != "" {
			t.Errorf("Fold(%q, %d) (-want +got):\n%s", tt.line, tt.width, diff)
		}
	}
}

// FuzzFold wants every letter to survive, and no line wider than the width.
func FuzzFold(f *testing.F) {
	f.Add("ab\x1b[31mcd\x1b[0mef", 2)
	f.Add("日本\u0301語👩\u200d🚀", 3)
	f.Fuzz(func(t *testing.T, line string, width int) {
		line = strings.ReplaceAll(Visible(line), "\n", " ")
		width = 2 + max(0, width%50)
		lines := Fold(Paint(line, "1", true), width)
		if got := Unpainted(strings.Join(lines, "")); got != line {
			t.Fatalf("Fold(%q, %d) says %q", line, width, got)
		}
		for _, l := range lines {
			if n := Columns(Unpainted(l)); n > width {
				t.Fatalf("Fold(%q, %d) has a line of %d columns: %q", line, width, n, l)
			}
		}
	})
}
