package arguments_test

import (
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
)

func TestSuggest(t *testing.T) {
	const schema = `{"type": "object", "properties": {"size": {"enum": ["s", "m"]}, "loud": {"type": "boolean"}, "n": {"type": "integer"}}}`
	for current, want := range map[string]string{"": "loud= size=", "size=": "size=s size=m", "loud=t": "loud=true loud=false", "other=": ""} {
		var words []string
		arguments.Suggest([]byte(schema), func(key string) bool { return key == "n" }, current, func(word, _ string) { words = append(words, word) })
		seen := map[string]bool{}
		for _, w := range words {
			seen[w] = true
		}
		for _, w := range strings.Fields(want) {
			if !seen[w] {
				t.Errorf("%q: no %s in %q", current, w, words)
			}
		}
		if len(words) != len(strings.Fields(want)) {
			t.Errorf("%q: %q, want %s", current, words, want)
		}
	}
	arguments.Suggest([]byte(`7`), nil, "", func(word, _ string) { t.Errorf("suggested %q without a schema", word) })
}
