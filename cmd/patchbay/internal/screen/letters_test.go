package screen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLetters(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"", nil},
		{"ab\n", []string{"a", "b", "\n"}},
		{"e\u0301x", []string{"e\u0301", "x"}},
		{"👩\u200d👧!", []string{"👩\u200d👧", "!"}},
		{"👍🏽❤\ufe0f", []string{"👍🏽", "❤\ufe0f"}},
		{"🇩🇪🇫🇷", []string{"🇩🇪", "🇫🇷"}},
		{"\n\u0301", []string{"\n", "\u0301"}},
	}
	for _, tt := range tests {
		got := Letters(tt.text)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Letters(%q) (-want +got):\n%s", tt.text, diff)
		}
		if strings.Join(got, "") != tt.text {
			t.Errorf("Letters(%q) loses something: %q", tt.text, got)
		}
	}
}
