package secrets

import "testing"

func TestShownURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://h/a%20b":             "https://h/a%20b",
		"https://${env:H}/mcp":        "https://${env:H}/mcp",
		"https://me:pw@h/":            "https://[redacted]@h/",
		"https://h/?a=1&b=${input}":   "https://h/?a=[redacted]&b=${input}",
		"https://h/?token=%zzpw&pw":   "https://h/?token=[redacted]&[redacted]",
		"https://${H}/?token=pw#pw":   "https://${H}/?token=[redacted]#pw",
		"https://me:pw%zz@h/%zz?b=pw": "https://me:[redacted]@h/%zz?b=[redacted]",
	} {
		if got := ShownURL(in); got != want {
			t.Errorf("ShownURL(%q) = %q, want %q", in, got, want)
		}
	}
}

// A URI that Go does not parse shows as little as others.
func TestShownURI(t *testing.T) {
	for in, want := range map[string]string{
		"https://me:pw@h/a%20b?token=pw&x=1#pw": "https://h/a%20b?token=[redacted]&x=[redacted]",
		"evil://h/a/%zz?token=pw":               "evil://h/a/%zz?token=[redacted]",
		"evil://me:pw@h/a\x7f?pw":               "evil://h/a\x7f?[redacted]",
		"evil://h/a#?pw":                        "evil://h/a",
		"evil:me:pw@h":                          "evil:h",
		"evil:x;password=pw":                    "evil:x;password=[redacted]",
		"evil://h/ghp_0123456789abcdef0123456789abcdef0123/%zz?a": "evil://h/[redacted]/%zz?[redacted]",
	} {
		if got := ShownURI(in); got != want {
			t.Errorf("ShownURI(%q) = %q, want %q", in, got, want)
		}
	}
}
