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

func TestAbout(t *testing.T) {
	for _, tt := range []struct{ name, title, description, want string }{
		{"get", "", "Gets it.", "Gets it."},
		{"get_pet", "Get pet", "Gets it.", "Gets it."},
		{"get", "A pet", "", "A pet"},
		{"get", "A pet", "Gets it.", "A pet: Gets it."},
		{"get", "Get a pet", "Get a pet\n\nby its id.", "Get a pet\n\nby its id."}, // as openapi makes it of a summary
		{"get", "Get a pet", "Get a pet", "Get a pet"},
	} {
		if got := About(tt.name, tt.title, tt.description); got != tt.want {
			t.Errorf("About(%q, %q, %q) = %q, want %q", tt.name, tt.title, tt.description, got, tt.want)
		}
	}
}
