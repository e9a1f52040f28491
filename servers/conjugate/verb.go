package conjugate

import "strings"

// verb holds the parts from which the forms of a verb are made.
type verb struct {
	base       string
	past       string
	participle string // the past participle
}

// verbs are in the order in which people see them: irregular ones first.
var verbs = []verb{
	be,
	have,
	{"do", "did", "done"},
	{"say", "said", "said"},
	{"go", "went", "gone"},
	{"make", "made", "made"},
	{"know", "knew", "known"},
	{"think", "thought", "thought"},
	{"take", "took", "taken"},
	{"see", "saw", "seen"},
	{"come", "came", "come"},
	{"give", "gave", "given"},
	{"find", "found", "found"},
	{"write", "wrote", "written"},
	{"begin", "began", "begun"},
	{"eat", "ate", "eaten"},
	regular("look"),
	regular("use"),
	regular("work"),
	regular("try"),
	regular("stop"),
	regular("play"),
	regular("walk"),
	regular("talk"),
	regular("listen"),
	regular("watch"),
	regular("study"),
	regular("finish"),
	regular("start"),
	regular("like"),
	regular("want"),
}

// The present of these two is irregular. All other verbs need have for their perfect
// tenses.
var (
	be   = verb{"be", "was", "been"}
	have = verb{"have", "had", "had"}
)

// regular returns a verb with a past and participle by the rules of spelling: used,
// tried, stopped, looked. It doubles the last consonant of verbs with one vowel: stopped, but
// listened.
func regular(base string) verb {
	ed := base + "ed"
	n := len(base)
	switch last := base[n-1]; {
	case last == 'e':
		ed = base + "d"
	case last == 'y' && !vowel(base[n-2]):
		ed = base[:n-1] + "ied"
	case !vowel(last) && !strings.ContainsRune("wxy", rune(last)) && vowel(base[n-2]) && !strings.ContainsAny(base[:n-2], vowels):
		ed = base + string(last) + "ed"
	}
	return verb{base, ed, ed}
}

// form is the verb in a tense, without its subject. Persons that include a number are not for it.
func (v verb) form(t tense, p person, plural bool) string {
	switch t {
	case infinitive:
		return v.base
	case past, pastSimple:
		return v.preterite(p, plural)
	case pastParticiple:
		return v.participle
	case future, simpleFuture:
		return "will " + v.base
	case presentPerfect:
		return have.present(p, plural) + " " + v.participle
	case pastPerfect:
		return have.past + " " + v.participle
	}
	return v.present(p, plural)
}

// present is the form of "I go" or "it goes".
func (v verb) present(p person, plural bool) string {
	thirdSingular := p == third && !plural
	switch {
	case v == be && p == first && !plural:
		return "am"
	case v == be && thirdSingular:
		return "is"
	case v == be:
		return "are"
	case v == have && thirdSingular:
		return "has"
	case thirdSingular:
		return withS(v.base)
	}
	return v.base
}

// preterite is the form of "I went".
func (v verb) preterite(p person, plural bool) string {
	if v == be && (plural || p == second) {
		return "were"
	}
	return v.past
}

// withS is the form of "it goes", "it tries", "it looks".
func withS(base string) string {
	n := len(base)
	switch {
	case base[n-1] == 'y' && !vowel(base[n-2]):
		return base[:n-1] + "ies"
	case base[n-1] == 'o', strings.HasSuffix(base, "s"), strings.HasSuffix(base, "x"), strings.HasSuffix(base, "z"),
		strings.HasSuffix(base, "ch"), strings.HasSuffix(base, "sh"):
		return base + "es"
	}
	return base + "s"
}

const vowels = "aeiou"

func vowel(b byte) bool { return strings.IndexByte(vowels, b) >= 0 }
