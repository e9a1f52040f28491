package jsonx

import (
	"strings"
	"testing"
)

var canonicals = []struct {
	in, want string
	plain    bool // it is not formatted
}{
	{`{"message":"The quick brown fox, größer"}`, `{"message":"The quick brown fox, größer"}`, true},
	{`{"a":1,"b":[true,null,-1.5E+3,{},[]],"c":{"d":"e"}}`, `{"a":1,"b":[true,null,-1.5E+3,{},[]],"c":{"d":"e"}}`, true},
	{`"text"`, `"text"`, true},
	{`{}`, `{}`, true},
	{`"line\nline\t\"x\"\\"`, `"line\nline\t\"x\"\\"`, true},
	{`"a\/b"`, `"a/b"`, false},
	{`"\u001f"`, `"\u001f"`, false},
	{`{"a\n":1}`, `{"a\n":1}`, false},
	{`"\`, `"\`, true},
	{`"`, `"`, true},
	{`{"a":1,"a!":2,"a\"":3}`, `{"a":1,"a!":2,"a\"":3}`, false},
	{`{"a!":1,"a":2}`, `{"a":2,"a!":1}`, false},
	{`{"b":1,"a":2}`, `{"a":2,"b":1}`, false},
	{`{"x":[{"b":1,"a":2}]}`, `{"x":[{"a":2,"b":1}]}`, false},
	{`{"ä":1,"b":2}`, `{"b":2,"ä":1}`, false},
	{`{"a": 1}`, `{"a":1}`, false},
	{` {"a":1}`, `{"a":1}`, false},
	{"[1,2\n]", `[1,2]`, false},
	{`"a\u0062"`, `"ab"`, false},
	{`{"a":1,"a":2}`, `{"a":1,"a":2}`, false}, // not valid, like those below
	{`{"a":1`, `{"a":1`, false},
	{`{"a"}`, `{"a"}`, false},
	{`{,}`, `{,}`, false},
	{`[1,]`, `[1,]`, false},
	{`[1}`, `[1}`, false},
	{`1 2`, `1 2`, false},
	{``, ``, false},
	{"\"\xff\"", "\"\xff\"", true},
}

func TestCanonical(t *testing.T) {
	for _, tt := range canonicals {
		if got := string(Canonical([]byte(tt.in))); got != tt.want {
			t.Errorf("Canonical(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if got := plain([]byte(tt.in), 0, plainDepth) == len(tt.in) && tt.in != ""; got != tt.plain {
			t.Errorf("%q is plain: %t, want %t", tt.in, got, tt.plain)
		}
	}
	deep := []byte(strings.Repeat("[", 1<<20))
	if got := Canonical(deep); len(got) != len(deep) {
		t.Errorf("Canonical of deep brackets has %d bytes", len(got))
	}
}

// A value that is not formatted would not change.
func FuzzCanonical(f *testing.F) {
	for _, tt := range canonicals {
		f.Add([]byte(tt.in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if got, want := Canonical(in), formatted(in); string(got) != string(want) {
			t.Fatalf("Canonical(%q) = %q, and formatted it is %q", in, got, want)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	for name, raw := range map[string]string{"plain": `{"message":"` + strings.Repeat("The quick brown fox. ", 5) + `"}`, "formatted": `{"message": "` + strings.Repeat("The quick brown fox. ", 5) + `"}`} {
		b.Run(name, func(b *testing.B) {
			in := []byte(raw)
			b.ReportAllocs()
			for b.Loop() {
				Canonical(in)
			}
		})
	}
}
