package conjugate

import (
	"slices"
	"strings"
	"testing"
)

// forms is written by hand, and independent of any rule in the package: what follows
// he/she/it in the present, the past, and the participle.
var forms = map[string][3]string{
	"be":    {"is", "was", "been"},
	"have":  {"has", "had", "had"},
	"do":    {"does", "did", "done"},
	"say":   {"says", "said", "said"},
	"go":    {"goes", "went", "gone"},
	"make":  {"makes", "made", "made"},
	"know":  {"knows", "knew", "known"},
	"think": {"thinks", "thought", "thought"},
	"take":  {"takes", "took", "taken"},
	"see":   {"sees", "saw", "seen"},
	"come":  {"comes", "came", "come"},
	"give":  {"gives", "gave", "given"},
	"find":  {"finds", "found", "found"},
	"write": {"writes", "wrote", "written"},
	"begin": {"begins", "began", "begun"},
	"look":  {"looks", "looked", "looked"},
	"use":   {"uses", "used", "used"},
	"work":  {"works", "worked", "worked"},
	"try":   {"tries", "tried", "tried"},
	"stop":  {"stops", "stopped", "stopped"},

	"play":   {"plays", "played", "played"},
	"walk":   {"walks", "walked", "walked"},
	"talk":   {"talks", "talked", "talked"},
	"listen": {"listens", "listened", "listened"},
	"watch":  {"watches", "watched", "watched"},
	"study":  {"studies", "studied", "studied"},
	"finish": {"finishes", "finished", "finished"},
	"start":  {"starts", "started", "started"},
	"like":   {"likes", "liked", "liked"},
	"want":   {"wants", "wanted", "wanted"},
	"eat":    {"eats", "ate", "eaten"},
}

func TestTableIsComplete(t *testing.T) {
	if len(verbs) != 31 || len(tenses) != 5 || len(persons) != 3 {
		t.Fatalf("%d verbs, %d tenses, %d persons; want 31, 5, 3", len(verbs), len(tenses), len(persons))
	}
	seen := map[cell]bool{}
	for _, v := range verbs {
		for _, c := range v.cells() {
			if c.Verb != verbName(v.base) || c.Form != "" {
				t.Errorf("a cell of %q is %+v", v.base, c)
			}
			seen[cell{Verb: c.Verb, Tense: c.Tense, Person: c.Person}] = true
		}
	}
	if len(seen) != 31*5*3 {
		t.Errorf("%d different cells, want 465", len(seen))
	}
	if got, ok := find("shine"); ok {
		t.Errorf("shine = %v, want none", got)
	}
}

// Every clause of every verb but "be", whose forms differ between more persons.
func TestForms(t *testing.T) {
	if len(forms) != len(verbs) {
		t.Errorf("%d verbs written by hand, %d in the table", len(forms), len(verbs))
	}
	for _, v := range verbs {
		f, base := forms[v.base], v.base
		if base == "be" {
			continue
		}
		want := []string{
			"I " + base, "we " + base, "you " + base, "you " + base, "he/she/it " + f[0], "they " + base,
			"I " + f[1], "we " + f[1], "you " + f[1], "you " + f[1], "he/she/it " + f[1], "they " + f[1],
			"I will " + base, "we will " + base, "you will " + base, "you will " + base, "he/she/it will " + base, "they will " + base,
			"I have " + f[2], "we have " + f[2], "you have " + f[2], "you have " + f[2], "he/she/it has " + f[2], "they have " + f[2],
			"I had " + f[2], "we had " + f[2], "you had " + f[2], "you had " + f[2], "he/she/it had " + f[2], "they had " + f[2],
		}
		if got := clauses(base); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", base, got, want)
		}
	}
}

func TestBe(t *testing.T) {
	want := []string{
		"I am", "we are", "you are", "you are", "he/she/it is", "they are",
		"I was", "we were", "you were", "you were", "he/she/it was", "they were",
		"I will be", "we will be", "you will be", "you will be", "he/she/it will be", "they will be",
		"I have been", "we have been", "you have been", "you have been", "he/she/it has been", "they have been",
		"I had been", "we had been", "you had been", "you had been", "he/she/it had been", "they had been",
	}
	if got := clauses("be"); !slices.Equal(got, want) {
		t.Errorf("be:\n got %q\nwant %q", got, want)
	}
}

// The tenses and persons of schoolbooks, as they write them: 20 verbs, 300 forms.
func TestSchoolForms(t *testing.T) {
	n := 0
	for base := range strings.FieldsSeq("work play walk talk listen watch study finish start look want like be have do go come see eat write") {
		v, ok := find(verbName(base))
		if !ok {
			t.Errorf("no verb %q", base)
			continue
		}
		f := forms[base]
		present, past := [3]string{base, base, f[0]}, [3]string{f[1], f[1], f[1]}
		if base == "be" {
			present, past = [3]string{"am", "are", "is"}, [3]string{"was", "were", "was"}
		}
		for i, p := range []person{"1st singular", "2nd singular", "3rd singular"} {
			for tense, want := range map[tense]string{
				"infinitive": base, "present simple": present[i], "past simple": past[i], "past participle": f[2], "simple future": "will " + base,
			} {
				n++
				if got := newCell(v, tense, p); got.Form != want {
					t.Errorf("%s, %s, %s = %q, want %q", base, tense, p, got.Form, want)
				}
			}
		}
	}
	if n != 300 {
		t.Errorf("%d forms, want 300", n)
	}
}

func clauses(base string) []string {
	v, _ := find(verbName(base))
	var out []string
	for _, c := range v.cells() {
		out = append(out, c.Singular, c.Plural)
	}
	return out
}

// The rules of spelling hold beyond the verbs of the table.
func TestSpelling(t *testing.T) {
	for base, want := range map[string][2]string{
		"play":  {"plays", "played"},
		"carry": {"carries", "carried"},
		"plan":  {"plans", "planned"},
		"fix":   {"fixes", "fixed"},
		"show":  {"shows", "showed"},
		"watch": {"watches", "watched"},
		"wash":  {"washes", "washed"},
		"pass":  {"passes", "passed"},
		"buzz":  {"buzzes", "buzzed"},
		"agree": {"agrees", "agreed"},
		"clean": {"cleans", "cleaned"},
		"add":   {"adds", "added"},
		"open":  {"opens", "opened"},
		"visit": {"visits", "visited"},
		"hug":   {"hugs", "hugged"},
	} {
		if v := regular(base); v.past != want[1] || v.participle != want[1] || v.present(third, false) != want[0] {
			t.Errorf("%s: %s, %s, %s; want %s, %s", base, v.present(third, false), v.past, v.participle, want[0], want[1])
		}
	}
}
