package terminal

import (
	"strings"
	"testing"
)

// TestProgress overwrites one line on a terminal, and keeps it apart from other lines.
func TestProgress(t *testing.T) {
	var out strings.Builder
	k := &Talk{W: &out, TTY: true, Width: 40}
	k.Progress(1, 4, "a message that is too long for the line")
	k.Always("a line")
	k.EndProgress()
	bar := "[██████░░░░░░░░░░░░░░░░░░]  25%  a mes…"
	want := "\r" + bar + "\x1b[K" + "\r\x1b[Ka line\n" + "\r" + bar + "\x1b[K" + "\r\x1b[K"
	if got := out.String(); got != want {
		t.Errorf("the terminal got\n%q, want\n%q", got, want)
	}
}

// TestProgressLines writes lines without a terminal, fewer than one for each of a thousand steps.
func TestProgressLines(t *testing.T) {
	var out strings.Builder
	k := &Talk{W: &out}
	for i := range 1001 {
		k.Progress(float64(i), 1000, "")
	}
	if n := strings.Count(out.String(), "\n"); n != 11 {
		t.Errorf("1001 steps made %d lines, want 11:\n%s", n, out.String())
	}
	if !strings.HasSuffix(out.String(), "progress 1000/1000\n") {
		t.Errorf("the last line of %q is not the last step", out.String())
	}
}

// TestProgressOfSeveralCalls says whose each line is, and counts the lines of each call apart.
func TestProgressOfSeveralCalls(t *testing.T) {
	var out strings.Builder
	k := &Talk{W: &out}
	for i := range 3 {
		for _, name := range []string{"a/x", "b/y"} {
			k.ProgressOf(name, float64(i), 100, "")
		}
	}
	k.ProgressOf("a/x", 50, 100, "half")
	if got, want := out.String(), "progress a/x 0/100\nprogress b/y 0/100\nprogress a/x 50/100 half\n"; got != want {
		t.Errorf("standard error has %q, want %q", got, want)
	}
	out.Reset()
	k = &Talk{W: &out, TTY: true, Width: 60}
	k.ProgressOf("a/x", 1, 4, "a message")
	if got := out.String(); !strings.Contains(got, "25%  a/x  a message") {
		t.Errorf("the terminal has %q, want the name", got)
	}
}
