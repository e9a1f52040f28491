package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tests that docs/security.md names exist, in the named packages.
func TestNamedTestsExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`([a-z0-9/_]+)` (?:Test|Fuzz)|\\b((?:Test|Fuzz)[A-Z]\\w*)")
	text := map[string]string{} // of the test files of a package
	found := 0
	for n, line := range strings.Split(string(page), "\n") {
		folder := ""
		for rest := line; ; {
			at := names.FindStringSubmatchIndex(rest)
			if at == nil {
				break
			}
			if at[2] >= 0 { // the package; the name follows
				folder = rest[at[2]:at[3]]
				rest = rest[at[3]:]
				continue
			}
			name := rest[at[4]:at[5]]
			rest = rest[at[5]:]
			if _, ok := text[folder]; !ok {
				files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range files {
					source, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					text[folder] += string(source)
				}
			}
			if found++; !strings.Contains(text[folder], "\nfunc "+name+"(") {
				t.Errorf("docs/security.md:%d: there is no %s in %q", n+1, name, folder)
			}
		}
	}
	if found < 100 {
		t.Errorf("%d tests are named, want the hundred and more of the tables", found)
	}
}
