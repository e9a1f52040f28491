package text_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/text"
)

func TestEscape(t *testing.T) {
	for s, want := range map[string]string{
		"":                                 "",
		"plain \"text\"\t\n":               "plain \"text\"\t\n",
		"Grüße, 世界 😀":                      "Grüße, 世界 😀",
		"\x1b[31m\x7f":                     `\u001b[31m\u007f`,
		"\u0080a\u009b2Jz\u00a0":           `\u0080a\u009b2Jz` + "\u00a0",
		"\u202e\u2066x\u2069\u2028\u200f!": `\u202e\u2066x\u2069\u2028\u200f!`,
		"\xff\u061c\xc2":                   "\xff" + `\u061c` + "\xc2",
	} {
		if got := string(text.Escape([]byte("at "), s)); got != "at "+want {
			t.Errorf("Escape(%q) = %q, want %q", s, got, want)
		}
		if text.Plain([]byte(s)) && s != want {
			t.Errorf("Plain(%q) is true", s)
		}
	}
}

// JSON keeps its value, and has none of the characters.
func FuzzEscape(f *testing.F) {
	f.Add("a\u009b\u202e\x1b\\\"")
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			t.Skip()
		}
		raw, _ := json.Marshal(s)
		out := text.Escape(nil, string(raw))
		var got string
		if err := json.Unmarshal(out, &got); err != nil || got != s {
			t.Fatalf("%q became %s: %v", s, out, err)
		}
		for _, r := range string(out) {
			if text.Obeyed(r) {
				t.Fatalf("%q is in %q", r, out)
			}
		}
	})
}
