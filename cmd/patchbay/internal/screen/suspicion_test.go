package screen

import (
	"net/url"
	"testing"
)

// TestSuspiciousPages warns of URLs that deceive (ELIC-26-035, ELIC-26-041).
func TestSuspiciousPages(t *testing.T) {
	tests := []struct {
		url  string
		want int
	}{
		{"https://example.com/a", 0},
		{"http://localhost:8080/a", 0},
		{"http://127.0.0.1/a", 0},
		{"http://example.com/a", 1},
		{"https://xn--pple-43d.com/", 1},
		{"https://аpple.com/", 1}, // the first letter is Cyrillic
		{"https://bank.example@evil.example/", 1},
		{"file://host/etc/passwd", 1},
	}
	for _, tt := range tests {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := Suspicions(u); len(got) != tt.want {
			t.Errorf("Suspicions(%q) = %q, want %d", tt.url, got, tt.want)
		}
	}
}
