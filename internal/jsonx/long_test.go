package jsonx

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Long texts are escaped, checked and unescaped as their short pieces are.
func TestLongTexts(t *testing.T) {
	units := []string{"a", "0123456", "line\n", "\"", "\\", "\x00", "\x1f", "\x7f", "é", "世界", "\U0001F600", "\xff", "\xe4\xb8", strings.Repeat("plain ", 20)}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var text strings.Builder
		var want []byte
		for n := rng.IntN(200); n > 0; n-- {
			unit := units[rng.IntN(len(units))]
			if text.Len()+len(unit) > longText && strings.HasSuffix(text.String(), "\xe4\xb8") {
				continue // the next bytes would complete it
			}
			short := AppendString(nil, unit) // is shorter than longText
			text.WriteString(unit)
			want = append(want, short[1:len(short)-1]...)
		}
		s := text.String()
		got := AppendString([]byte("x"), s)
		if string(got) != `x"`+string(want)+`"` {
			t.Fatalf("AppendString(%q) = %q, want %q", s, got[1:], want)
		}
		next, escaped, err := scanString(got, 1)
		if err != nil || next != len(got) || escaped != strings.Contains(string(want), `\`) {
			t.Fatalf("scanString(%q) = %d, %t, %v of %d", got[1:], next, escaped, err, len(got))
		}
		if back, err := Unquote(got[1:]); err != nil || back != strings.ToValidUTF8(oneByOne(s), "") {
			t.Fatalf("Unquote(%q) = %q, %v, want %q", got[1:], back, err, oneByOne(s))
		}
	}
}

// oneByOne replaces each byte that is not UTF-8.
func oneByOne(s string) string { return string([]rune(s)) }

// A fault in a long string is reported at the same offset as in a short one.
func TestLongFaults(t *testing.T) {
	head := `"` + strings.Repeat(`0123456789012345678901234567890123456789\n`, 20)
	for _, tt := range []struct{ tail, msg string }{
		{"\x01" + `"`, "control character inside a string"},
		{strings.Repeat("x", 9) + "\x1f" + `xxxxxxxxx"`, "control character inside a string"},
		{`\x"`, "unknown escape sequence"},
		{`\ud800"`, "escaped surrogate without its partner"},
		{`\u12"`, `\u without four hexadecimal digits`},
		{``, "unexpected end inside a string"},
		{`\"`, "unexpected end inside a string"},
		{"\x01", "control character inside a string"},
		{`\`, "unexpected end inside a string"},
		{"\xff" + `"`, "invalid UTF-8"},
	} {
		short := `"` + tt.tail
		_, _, want := scanString([]byte(short), 0)
		next, _, err := scanString([]byte(head+tt.tail), 0)
		if err == nil || err.Msg != tt.msg || want == nil || want.Msg != tt.msg {
			t.Errorf("%q: %v to %d, short %v; want %s", tt.tail, err, next, want, tt.msg)
			continue
		}
		if err.Offset != want.Offset+len(head)-1 {
			t.Errorf("%q: at %d, want %d", tt.tail, err.Offset, want.Offset+len(head)-1)
		}
	}
}
