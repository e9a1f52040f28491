package secrets

import "testing"

func TestShownURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://h/a%20b":           "https://h/a%20b",
		"https://${env:H}/mcp":      "https://${env:H}/mcp",
		"https://me:pw@h/":          "https://[redacted]@h/",
		"https://h/?a=1&b=${input}": "https://h/?a=[redacted]&b=${input}",
	} {
		if got := ShownURL(in); got != want {
			t.Errorf("ShownURL(%q) = %q, want %q", in, got, want)
		}
	}
}
