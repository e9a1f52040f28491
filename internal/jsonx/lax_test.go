package jsonx

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// Names that lax readers take for a known one, and names that they do not (trap 5).
func TestMistakable(t *testing.T) {
	tests := []struct {
		name, known string
		want        bool
	}{
		{"name", "name", false},
		{"Name", "name", true},
		{"NAME", "name", true},
		{"namE", "name", true},
		{"names", "name", false},
		{"nam", "name", false},
		{"", "name", false},
		{"", "", false},
		{"_", "", true},
		{"argumentſ", "arguments", true}, // U+017F
		{"taſKId", "taskId", true},       // U+017F, and U+212A for the k
		{"uri", "uri", false},
		{"urı", "uri", true}, // dotless, an I in upper case
		{"urİ", "uri", true},
		{"task_id", "taskId", true}, // pydantic with populate_by_name
		{"input-responses", "inputResponses", true},
		{"meta", "_meta", true},
		{"progress token", "progressToken", false},
		{"io.modelcontextprotocol/ClientInfo", "io.modelcontextprotocol/clientInfo", true},
		{"name\x00", "name", false},
		{"nаme", "name", false}, // a Cyrillic а: no reader takes it for another letter
	}
	for _, tt := range tests {
		if got := Mistakable([]byte(tt.name), tt.known); got != tt.want {
			t.Errorf("Mistakable(%q, %q) = %v, want %v", tt.name, tt.known, got, tt.want)
		}
	}
}

// FuzzMistakable compares Mistakable with readers of the standard library.
func FuzzMistakable(f *testing.F) {
	for _, name := range []string{"Name", "namE", "K", "arguments", "a_B", "\xff"} {
		f.Add(name)
	}
	const known = "taskId"
	f.Fuzz(func(t *testing.T, name string) {
		got := Mistakable([]byte(name), known)
		if name == known {
			if got {
				t.Fatalf("Mistakable(%q) of itself", name)
			}
			return
		}
		// Readers fold in different ways, and these three disagree: lower("İ") is "i̇".
		lower, upper := strings.ToLower(name), strings.ToUpper(name)
		lax := strings.EqualFold(name, known) || lower == strings.ToLower(known) || upper == strings.ToUpper(known)
		var read struct {
			Task string `json:"taskId"`
		}
		if quoted, err := json.Marshal(map[string]string{name: "x"}); err == nil && json.Unmarshal(quoted, &read) == nil && read.Task != "" {
			lax = true
		}
		if lax && !got {
			t.Fatalf("Mistakable(%q, %q) = false, and a reader takes it for that", name, known)
		}
	})
}

// All letters that fold to an ASCII one are known.
func TestMistakableLetters(t *testing.T) {
	for c := 'a'; c <= 'z'; c++ {
		for r := rune(0x80); r <= unicode.MaxRune; r++ {
			lower, upper := unicode.ToLower(r) == c, unicode.ToUpper(r) == unicode.ToUpper(c)
			if (lower || upper) && !Mistakable([]byte(string(r)), string(c)) {
				t.Errorf("%q is not taken for %q", r, c)
			}
		}
	}
}
