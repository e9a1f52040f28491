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
