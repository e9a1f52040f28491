package tmux

import (
	"strings"
	"testing"
)

func TestPicture(t *testing.T) {
	got, err := Picture("a <b>\n\x1b[1;31mred\x1b[0m\x1b[7m on \x1b[0m日本|\n\n", `what "it" shows`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`aria-label="what &#34;it&#34; shows"`,
		`<text x="16.0" y="28" textLength="39.0" lengthAdjust="spacingAndGlyphs">a` + "\u00a0&lt;b&gt;</text>",
		`<text x="16.0" y="47" textLength="23.4" lengthAdjust="spacingAndGlyphs" fill="#ff7b72" font-weight="bold">red</text>`,
		`<rect x="39.4" y="33" width="31.2" height="19" fill="#d8dce3"/>`,
		`fill="#16181d">` + "\u00a0on\u00a0</text>",
		`textLength="39.0" lengthAdjust="spacingAndGlyphs">日本|</text>`, // two columns each
		`height="66"`, // two lines
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the picture lacks %s:\n%s", want, got)
		}
	}
	for _, bad := range []string{"\x1b[38;5;208morange", "\x1b]8;;http://a\x1b\\link", "a\x07b"} {
		if _, err := Picture(bad, "x"); err == nil {
			t.Errorf("%q is drawn", bad)
		}
	}
}
