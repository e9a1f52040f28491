package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/mcp"
)

func TestCut(t *testing.T) {
	tests := []struct {
		text string
		most int
		want string
	}{
		{"short", 10, "short"},
		{"exactly10!", 10, "exactly10!"},
		{"eleven char", 10, "eleven ch…"},
		{"two words", 5, "two…"},
		{"日本語のテキスト", 9, "日本語の…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
		{"no bound", 0, "no bound"},
	}
	for _, tt := range tests {
		if got := cut(tt.text, tt.most); got != tt.want || tt.most > 0 && columns(got) > tt.most {
			t.Errorf("cut(%q, %d) = %q of %d columns, want %q", tt.text, tt.most, got, columns(got), tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	if got, want := wrap("one two three\nfour", 7), "one two\nthree\nfour"; got != want {
		t.Errorf("wrap = %q, want %q", got, want)
	}
	if got, want := wrap("averyverylongword x", 5), "averyverylongword\nx"; got != want {
		t.Errorf("wrap = %q, want %q", got, want)
	}
}

// FuzzVisible holds what is shown on a terminal against what a terminal obeys.
func FuzzVisible(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b]0;title\a", "a\r\nb\tc", "\u009b1m", "\xff\xfe", "\u202eabc", "日本\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := visible(in)
		if !utf8.ValidString(out) {
			t.Errorf("visible(%q) = %q, not valid UTF-8", in, out)
		}
		for _, r := range out {
			if (r < 0x20 && r != '\n' && r != '\t') || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Errorf("visible(%q) = %q, with %U in it", in, out, r)
			}
		}
		if again := visible(out); again != out {
			t.Errorf("visible of %q is %q, and of that %q", in, out, again)
		}
	})
}

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
