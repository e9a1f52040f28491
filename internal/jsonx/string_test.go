package jsonx

import (
	stdjson "encoding/json"
	"strings"
	"testing"
)

func TestAppendString(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", `""`},
		{"plain text that is longer than one word", `"plain text that is longer than one word"`},
		{"a\"b\\c/d", `"a\"b\\c/d"`},
		{"\b\f\n\r\t\x00\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\""},
		{"<&>\u2028\u2029", "\"<&>\u2028\u2029\""},
		{"Reykjavík 😀", `"Reykjavík 😀"`},
		{"a\xffb\xc3", "\"a\uFFFDb\uFFFD\""},
		{"\xed\xa0\x80", "\"\uFFFD\uFFFD\uFFFD\""},
		{"\uFFFD", "\"\uFFFD\""},
	} {
		if got := string(AppendString([]byte("x"), tt.in)); got != "x"+tt.want {
			t.Errorf("AppendString(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

// Every byte is found at every position of a word, with plain bytes around it.
func TestAppendStringEveryByte(t *testing.T) {
	for c := range 256 {
		for at := range 20 {
			in := strings.Repeat("z", at) + string([]byte{byte(c)}) + strings.Repeat("y", 19-at)
			out := AppendString(nil, in)
			var want string
			if err := stdjson.Unmarshal(out, &want); err != nil || Valid(out, 0) != nil {
				t.Fatalf("AppendString(%q) = %s: %v, %v", in, out, err, Valid(out, 0))
			}
			if got, err := Unquote(out); err != nil || got != want || want != strings.ToValidUTF8(in, "\uFFFD") {
				t.Fatalf("Unquote(%s) = %q, %v, want %q", out, got, err, want)
			}
			raw := []byte(`"` + in + `"`)
			wantOK := c >= 0x20 && c < 0x80 && c != '"' && c != '\\'
			if c == '\\' && at == 19 {
				wantOK = false // the closing quote is escaped
			}
			if err := Valid(raw, 0); (err == nil) != wantOK {
				t.Fatalf("Valid(%q) = %v, want ok %v", raw, err, wantOK)
			}
		}
	}
}

func TestUnquote(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`"\u00e9\ud83d\uDE00\/\b\f\n\r\t\"\\"`, "é😀/\b\f\n\r\t\"\\"},
		{`"\u0000"`, "\x00"}, {`""`, ""}, {`"\ufffd"`, "\uFFFD"},
	} {
		if got, err := Unquote([]byte(tt.in)); err != nil || got != tt.want {
			t.Errorf("Unquote(%s) = %q, %v, want %q", tt.in, got, err, tt.want)
		}
		if got, err := AppendUnquote([]byte("x"), []byte(tt.in)); err != nil || string(got) != "x"+tt.want {
			t.Errorf("AppendUnquote(x, %s) = %q, %v, want %q", tt.in, got, err, "x"+tt.want)
		}
	}
	for _, in := range []string{``, `"`, `a`, `"a`, `"a"b`, ` "a"`, `"a" `, `"\ud800"`, "\"\xff\"", `1`, `null`} {
		if got, err := Unquote([]byte(in)); err == nil {
			t.Errorf("Unquote(%q) = %q, want an error", in, got)
		}
		if got, err := AppendUnquote([]byte("x"), []byte(in)); err == nil || string(got) != "x" {
			t.Errorf("AppendUnquote(x, %q) = %q, %v, want x and an error", in, got, err)
		}
	}
}

// FuzzString: AppendString's output is read by Unquote and by encoding/json as the string with
// its invalid bytes replaced.
func FuzzString(f *testing.F) {
	f.Add("plain")
	f.Add("a\xff\"\\\n\u2028😀\xf0\x9f")
	f.Fuzz(func(t *testing.T, in string) {
		out := AppendString(nil, in)
		if err := Valid(out, 0); err != nil {
			t.Fatalf("AppendString(%q) = %q: %v", in, out, err)
		}
		want := string([]rune(in)) // one U+FFFD for each invalid byte
		got, err := Unquote(out)
		if err != nil || got != want {
			t.Fatalf("AppendString(%q) = %q is read as %q, %v", in, out, got, err)
		}
		var std string
		if err := stdjson.Unmarshal(out, &std); err != nil || std != want {
			t.Fatalf("AppendString(%q) = %q is read by encoding/json as %q, %v", in, out, std, err)
		}
	})
}

func BenchmarkAppendString(b *testing.B) {
	for _, bb := range []struct{ name, in string }{
		{"ascii=16B", "get_weather_now!"},
		{"ascii=64KiB", strings.Repeat("The quick brown fox. ", 3121)},
		{"lines=64KiB", strings.Repeat("one line of a source file here\n", 2114)},
		{"greek=64KiB", strings.Repeat("Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία. ", 1000)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.in)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = AppendString(dst[:0], bb.in)
			}
		})
	}
}
