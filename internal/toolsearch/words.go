package toolsearch

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
)

//go:embed words.txt
var wordsFile string

// vocabulary is what words.txt says.
type vocabulary struct {
	stop  map[string]bool     // words, with their endings
	alike map[string][]string // words of like meaning, by a word, all without endings
}

var words = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{stop: map[string]bool{}, alike: map[string][]string{}}
	for line := range strings.Lines(wordsFile) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if list, ok := strings.CutPrefix(line, "stop:"); ok {
			for _, word := range strings.Fields(list) {
				v.stop[word] = true
			}
			continue
		}
		group := strings.Fields(line)
		for i := range group {
			group[i] = stem(group[i])
		}
		for _, word := range group {
			for _, other := range group {
				if other != word && !slices.Contains(v.alike[word], other) {
					v.alike[word] = append(v.alike[word], other)
				}
			}
		}
	}
	return v
})

// split calls yield with the words of a text, in lower case: runs of letters and digits, and the
// parts of names such as readFile and HTTPServer.
func split(text string, yield func(word string)) {
	runes := []rune(text)
	for i := 0; i < len(runes); {
		if !unicode.IsLetter(runes[i]) && !unicode.IsDigit(runes[i]) {
			i++
			continue
		}
		start := i
		for i++; i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i])); i++ {
			small, big := unicode.IsLower(runes[i-1]), unicode.IsUpper(runes[i])
			if small && big {
				break
			}
			if i-start > 0 && big && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
				break
			}
		}
		yield(strings.ToLower(string(runes[start:i])))
	}
}

// stem returns an English word without the ending that its forms differ in. It is the same for
// words that are often not related, too: a search needs no more.
func stem(word string) string {
	if len(word) < 4 {
		return word
	}
	cut := func(ending, put string, rest int) bool {
		if base, ok := strings.CutSuffix(word, ending); ok && len(base) >= rest {
			word = base + put
			return true
		}
		return false
	}
	_ = cut("sses", "ss", 2) || cut("ies", "y", 2) || cut("xes", "x", 2) || cut("ches", "ch", 2) || cut("shes", "sh", 2) ||
		!strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us") && !strings.HasSuffix(word, "is") && cut("s", "", 3)
	if cut("ation", "", 4) || cut("ing", "", 3) || cut("ed", "", 3) || cut("ment", "", 4) || cut("er", "", 4) {
		if n := len(word); n > 3 && word[n-1] == word[n-2] && !strings.ContainsRune("lsz", rune(word[n-1])) {
			word = word[:n-1]
		}
	}
	_ = cut("e", "", 3)
	return word
}
