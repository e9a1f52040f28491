package screen

import (
	"testing"
	"unicode/utf8"
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
		if got := Cut(tt.text, tt.most); got != tt.want || tt.most > 0 && Columns(got) > tt.most {
			t.Errorf("Cut(%q, %d) = %q of %d columns, want %q", tt.text, tt.most, got, Columns(got), tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	if got, want := Wrap("one two three\nfour", 7), "one two\nthree\nfour"; got != want {
		t.Errorf("Wrap = %q, want %q", got, want)
	}
	if got, want := Wrap("averyverylongword x", 5), "averyverylongword\nx"; got != want {
		t.Errorf("Wrap = %q, want %q", got, want)
	}
}

// FuzzVisible compares the visible text with what a terminal obeys.
func FuzzVisible(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b]0;title\a", "a\r\nb\tc", "\u009b1m", "\xff\xfe", "\u202eabc", "日本\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := Visible(in)
		if !utf8.ValidString(out) {
			t.Errorf("Visible(%q) = %q, not valid UTF-8", in, out)
		}
		for _, r := range out {
			if (r < 0x20 && r != '\n' && r != '\t') || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Errorf("Visible(%q) = %q, with %U in it", in, out, r)
			}
		}
		if again := Visible(out); again != out {
			t.Errorf("Visible of %q is %q, and of that %q", in, out, again)
		}
	})
}
