package config

import (
	"strings"
	"testing"
)

// A value in double quotes is read back unchanged, and every variable has a name and a line of
// the file.
func FuzzParseEnv(f *testing.F) {
	f.Add("A=1\nexport B = 'x y' # c\n", "two\nlines \"and\" \\n")
	f.Add("A='", "'")
	f.Add("\xef\xbb\xbfA=\"\\", "")
	f.Fuzz(func(t *testing.T, before, value string) {
		quiet := func(int, string, string) {}
		lines := strings.Count(before, "\n") + 1
		for _, e := range parseEnv([]byte(before), quiet) {
			if e.name == "" || strings.ContainsAny(e.name, " =\x00") || strings.ContainsRune(e.value, 0) || e.line < 1 || e.line > lines {
				t.Fatalf("%q gave %+v", before, e)
			}
		}
		if strings.ContainsAny(before, "\"'") || strings.ContainsAny(value, "\x00\r") {
			return // the quotes would be others
		}
		text := before + "\nLAST=\"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + "\"\n"
		all := parseEnv([]byte(text), quiet)
		if len(all) == 0 || all[len(all)-1].name != "LAST" || all[len(all)-1].value != value || all[len(all)-1].line != lines+1 {
			t.Fatalf("%q gave %+v, want %q in LAST", text, all, value)
		}
	})
}
