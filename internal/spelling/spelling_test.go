package spelling

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"city", "city", 0}, {"citty", "city", 1}, {"ctiy", "city", 1},
		{"cty", "city", 1}, {"cite", "city", 1}, {"", "city", 4}, {"comand", "command", 1},
		{"kitten", "sitting", 3}, {strings.Repeat("x", 1000), "x", 1000},
	}
	for _, tt := range tests {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("Distance(%.10q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := Distance(tt.b, tt.a); got != tt.want {
			t.Errorf("Distance(%q, %.10q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}
