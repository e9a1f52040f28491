package trace

import "testing"

// The expressions find nothing in text that mayHave lets pass without a look.
func FuzzMayHave(f *testing.F) {
	for _, s := range []string{"Authorization: Bearer abc", "api_key=1", "A-P-I-Key : 2", "ba\u017fic abc", "pass\u017fword=x", "to\u212aen: y", "https://u:p@h", "listening on port 3000: ok", "b-earer xyz"} {
		f.Add(s)
	}
	r := NewRedactor(nil)
	f.Fuzz(func(t *testing.T, s string) {
		scheme, name := r.mayHave([]byte(s))
		if !scheme && authScheme().MatchString(s) {
			t.Errorf("%q has a scheme", s)
		}
		if !name && r.rules().text.MatchString(authScheme().ReplaceAllString(s, "$1 "+Redacted)) {
			t.Errorf("%q has a name of a secret", s)
		}
	})
}

func BenchmarkRedactStderr(b *testing.B) {
	r := NewRedactor(nil)
	for name, line := range map[string]string{"plain": "2026-11-24 12:00:00 INFO server: listening on port 3000, ready in 20 ms (pid 1234)", "secret": "2026-11-24 12:00:00 DEBUG server: api_key=abcdefgh ready"} {
		f := Frame{Dir: In, Conn: "c", Kind: KindStderr, Raw: []byte(line)}
		b.Run("line="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Frame(f)
			}
		})
	}
}
