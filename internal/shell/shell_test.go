package shell

import (
	"runtime"
	"testing"
)

func TestJoin(t *testing.T) {
	for _, tt := range []struct{ word, posix, windows string }{
		{"a=b", "a=b", "a=b"},
		{"", "''", `""`},
		{"it's", `'it'\''s'`, `"it's"`},
		{`{"a": 1}`, `'{"a": 1}'`, `"{\"a\": 1}"`},
		{`C:\Users\me`, `'C:\Users\me'`, `C:\Users\me`},
		{`C:\my folder\`, `'C:\my folder\'`, `"C:\my folder\\"`},
		{`C:\@scope\x`, `'C:\@scope\x'`, `C:\@scope\x`},
		{"@FILE", "@FILE", `"@FILE"`},
		{"${KEY}", "'${KEY}'", "'${KEY}'"},
		{"a&b", "'a&b'", `"a&b"`},
	} {
		if got := posixWord(tt.word); got != tt.posix {
			t.Errorf("POSIX: %s, want %s", got, tt.posix)
		}
		if got := windowsWord(tt.word); got != tt.windows {
			t.Errorf("Windows: %s, want %s", got, tt.windows)
		}
	}
	want := "patchbay 'a b'"
	if runtime.GOOS == "windows" {
		want = `patchbay "a b"`
	}
	if got := Join([]string{"patchbay", "a b"}); got != want {
		t.Errorf("Shell = %s, want %s", got, want)
	}
}
