package wildcard

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// A pattern matches like a regular expression with ".*" for each star.
func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{{"*", ""}, {"a*b*c", "aXbbYc"}, {"a*a", "a"}, {"**", "x"}, {"ab", "ab"}, {"*ab", "aab"}, {"a?", "ab"}, {"[a]", "a"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if !json.Valid([]byte(name)) && strings.ContainsRune(name, '\uFFFD') || len(pattern) > 100 {
			return // a regular expression does not distinguish bytes that are not UTF-8
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
