package screen

import (
	"strings"
	"testing"
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
		if got := DidYouMean(tt.word, names); got != tt.want {
			t.Errorf("DidYouMean(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}
