package wildcard

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// A pattern matches what a regular expression matches in which its stars are ".*".
func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{{"*", ""}, {"a*b*c", "aXbbYc"}, {"a*a", "a"}, {"**", "x"}, {"ab", "ab"}, {"*ab", "aab"}, {"a?", "ab"}, {"[a]", "a"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if !json.Valid([]byte(name)) && strings.ContainsRune(name, '\uFFFD') || len(pattern) > 100 {
			return // a regular expression does not tell apart bytes that are no text
		}
		if strings.ToValidUTF8(pattern, "") != pattern || strings.ToValidUTF8(name, "") != name {
			return
		}
		re := regexp.MustCompile(`(?s)\A` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `\z`)
		if got, want := Match(pattern, name), re.MatchString(name); got != want {
			t.Errorf("Match(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	})
}
