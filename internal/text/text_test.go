package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// Text is cut between characters (trap 43).
func TestClip(t *testing.T) {
	tests := []struct {
		s    string
		most int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"aé", 2, "a…"},
		{"aé", 3, "aé"},
		{"€€", 5, "€…"},
		{"😀😀", 7, "😀…"},
		{"😀", 2, "…"},
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80…"}, // not UTF-8: it ends somewhere
	}
	for _, tt := range tests {
		if got := text.Clip(tt.s, tt.most); got != tt.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", tt.s, tt.most, got, tt.want)
		}
		if got := text.Clip([]byte(tt.s), tt.most); got != tt.want {
			t.Errorf("Clip of the bytes %q, %d = %q, want %q", tt.s, tt.most, got, tt.want)
		}
	}
	long := strings.Repeat("aé€😀", 10)
	for most := range len(long) {
		if got := text.Clip(long, most); !utf8.ValidString(got) || !strings.HasPrefix(long, strings.TrimSuffix(got, "…")) || len(got) > most+len("…") {
			t.Errorf("Clip(…, %d) = %q", most, got)
		}
	}
}

func TestCommonEnds(t *testing.T) {
	for _, tt := range []struct {
		a, b       string
		head, tail int
	}{{"", "", 0, 0}, {"abc", "abc", 3, 0}, {"abc", "axc", 1, 1}, {"aa", "aaa", 2, 0}, {"abab", "ab", 2, 0}, {"xb", "yb", 0, 1}, {"x", "y", 0, 0}} {
		if head, tail := text.CommonEnds([]byte(tt.a), []byte(tt.b)); head != tt.head || tail != tt.tail {
			t.Errorf("CommonEnds(%q, %q) = %d, %d, want %d, %d", tt.a, tt.b, head, tail, tt.head, tt.tail)
		}
	}
}
