package mention

import (
	"slices"
	"testing"
)

// Split reads what Quote writes, whatever surrounds it.
func FuzzSplit(f *testing.F) {
	f.Add("a", "b c")
	f.Add(`x"y`, `\`)
	f.Add("", " ")
	f.Fuzz(func(t *testing.T, a, b string) {
		line := Quote(a) + "  " + Quote(b)
		fields := Split(line)
		if len(fields) != 2 || fields[0].Value != a || fields[1].Value != b || fields[1].to != len(line) || fields[1].open {
			t.Errorf("Split(%q) = %+v, want %q and %q", line, fields, a, b)
		}
		for _, f := range Split(a) {
			if f.from < 0 || f.from >= f.to || f.to > len(a) {
				t.Errorf("Split(%q) has a field from %d to %d", a, f.from, f.to)
			}
		}
	})
}

// Mentions begin words, name servers, and do not include the punctuation of the sentence.
func TestResources(t *testing.T) {
	servers := []string{"lib", "lib:old"}
	listed := func(server, uri string) bool { return uri == "app:what?" }
	for text, want := range map[string][]Resource{
		"read @lib:app:notes, please":     {{"lib", "app:notes"}},
		"(@lib:old:app:notes)":            {{"lib:old", "app:notes"}},
		`@lib:"app:my notes" @lib:app:x.`: {{"lib", "app:my notes"}, {"lib", "app:x"}},
		"@lib:app:what? @lib:app:where?":  {{"lib", "app:what?"}, {"lib", "app:where"}},
		"ada@lib:app:notes and @other:x":  nil,
		"@lib:app:notes @lib:app:notes":   {{"lib", "app:notes"}},
		"@lib: @lib":                      nil,
	} {
		if got := Resources(servers, text, listed); !slices.Equal(got, want) {
			t.Errorf("Resources(%q) = %q, want %q", text, got, want)
		}
	}
	if got, want := Words("#a/b, then #c. not#d ##e #"), []string{"a/b", "c"}; !slices.Equal(got, want) {
		t.Errorf("Words = %q, want %q", got, want)
	}
}
