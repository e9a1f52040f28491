package conjugate

import "slices"

// The three coordinates of a cell. As Go types with Enum they are enums of the tool's
// schema, and a prompt refuses other values.
type (
	verbName string
	tense    string
	person   string
)

const (
	present        tense = "present"
	past           tense = "past"
	future         tense = "future"
	presentPerfect tense = "present_perfect"
	pastPerfect    tense = "past_perfect"

	infinitive     tense = "infinitive"
	presentSimple  tense = "present simple"
	pastSimple     tense = "past simple"
	pastParticiple tense = "past participle"
	simpleFuture   tense = "simple future"
)

const (
	first  person = "first"
	second person = "second"
	third  person = "third"

	firstSingular  person = "1st singular"
	secondSingular person = "2nd singular"
	thirdSingular  person = "3rd singular"
)

// The resources list tenses and persons; the tool and the prompt also take the names of schoolbooks.
var (
	tenses        = []tense{present, past, future, presentPerfect, pastPerfect}
	persons       = []person{first, second, third}
	schoolTenses  = []tense{infinitive, presentSimple, pastSimple, pastParticiple, simpleFuture}
	schoolPersons = []person{firstSingular, secondSingular, thirdSingular}
)

// singular maps the persons that include a number to those that do not.
var singular = map[person]person{firstSingular: first, secondSingular: second, thirdSingular: third}

func (verbName) Enum() []string {
	names := make([]string, len(verbs))
	for i, v := range verbs {
		names[i] = v.base
	}
	return names
}

func (tense) Enum() []string  { return words(slices.Concat(tenses, schoolTenses)) }
func (person) Enum() []string { return words(slices.Concat(persons, schoolPersons)) }

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// cell is one cell of the table.
type cell struct {
	Verb     verbName `json:"verb"`
	Tense    tense    `json:"tense"`
	Person   person   `json:"person"`
	Form     string   `json:"form,omitempty" doc:"without a subject: am; absent if the person has no number"`
	Singular string   `json:"singular" doc:"with its subject, if the tense has one: I am"`
	Plural   string   `json:"plural" doc:"with its subject, if the tense has one: we are"`
}

func newCell(v verb, t tense, p person) cell {
	c := cell{Verb: verbName(v.base), Tense: t, Person: p}
	if of, ok := singular[p]; ok {
		p, c.Form = of, v.form(t, of, false)
	}
	c.Singular, c.Plural = clause(v, t, p, false), clause(v, t, p, true)
	return c
}

// clause is a subject and a verb, or a form that takes no subject.
func clause(v verb, t tense, p person, plural bool) string {
	form := v.form(t, p, plural)
	switch {
	case t == infinitive || t == pastParticiple:
		return form
	case plural:
		return subjects[p][1] + " " + form
	}
	return subjects[p][0] + " " + form
}

// subjects are the pronouns of each person, singular and plural.
var subjects = map[person][2]string{
	first:  {"I", "we"},
	second: {"you", "you"},
	third:  {"he/she/it", "they"},
}

// find returns a verb of the table.
func find(name verbName) (verb, bool) {
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.base == string(name) })
	if i < 0 {
		return verb{}, false
	}
	return verbs[i], true
}

// cells returns the cells of the verb in tenses and persons.
func (v verb) cells() []cell {
	cells := make([]cell, 0, len(tenses)*len(persons))
	for _, t := range tenses {
		for _, p := range persons {
			cells = append(cells, newCell(v, t, p))
		}
	}
	return cells
}
