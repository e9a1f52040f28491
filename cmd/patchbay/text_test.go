package main

import (
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

func TestDidYouMean(t *testing.T) {
	names := []string{"echo", "add", "list_tables", "describe_table"}
	tests := []struct{ word, want string }{
		{"ecko", `; did you mean "echo"?`},
		{"ehco", `; did you mean "echo"?`},
		{"Echo", `; did you mean "echo"?`},
		{"list_table", `; did you mean "list_tables"?`},
		{"weather", ""},
		{"xyz", ""},
		{strings.Repeat("x", 1000), ""},
	}
	for _, tt := range tests {
		if got := didYouMean(tt.word, names); got != tt.want {
			t.Errorf("didYouMean(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}

func TestShell(t *testing.T) {
	got := shell([]string{"patchbay", "call", `it's`, `{"a": 1}`, "a=b", ""})
	if want := `patchbay call 'it'\''s' '{"a": 1}' a=b ''`; got != want {
		t.Errorf("shell = %s, want %s", got, want)
	}
}

// TestProgress draws over one line on a terminal, and keeps it apart from other lines.
func TestProgress(t *testing.T) {
	var out strings.Builder
	k := &talk{w: &out, tty: true, width: 40}
	k.progress(mcp.ProgressEvent{Done: 1, Total: 4, Message: "a message that is too long for the line"})
	k.always("a line")
	k.endProgress()
	bar := "[██████░░░░░░░░░░░░░░░░░░]  25%  a mes…"
	want := "\r" + bar + "\x1b[K" + "\r\x1b[Ka line\n" + "\r" + bar + "\x1b[K" + "\r\x1b[K"
	if got := out.String(); got != want {
		t.Errorf("the terminal got\n%q, want\n%q", got, want)
	}
}

// TestProgressLines writes lines where there is no terminal, and not one for each of a
// thousand steps.
func TestProgressLines(t *testing.T) {
	var out strings.Builder
	k := &talk{w: &out}
	for i := range 1001 {
		k.progress(mcp.ProgressEvent{Done: float64(i), Total: 1000})
	}
	if n := strings.Count(out.String(), "\n"); n != 11 {
		t.Errorf("1001 steps made %d lines, want 11:\n%s", n, out.String())
	}
	if !strings.HasSuffix(out.String(), "progress 1000/1000\n") {
		t.Errorf("the last line of %q is not the last step", out.String())
	}
}
