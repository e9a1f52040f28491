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
)

const (
	first  person = "first"
	second person = "second"
	third  person = "third"
)

var (
	tenses  = []tense{present, past, future, presentPerfect, pastPerfect}
	persons = []person{first, second, third}
)

func (verbName) Enum() []string {
	names := make([]string, len(verbs))
	for i, v := range verbs {
		names[i] = v.base
	}
	return names
}

func (tense) Enum() []string  { return words(tenses) }
func (person) Enum() []string { return words(persons) }

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
	Singular string   `json:"singular" doc:"with its subject: I am"`
	Plural   string   `json:"plural" doc:"with its subject: we are"`
}

func newCell(v verb, t tense, p person) cell {
	return cell{verbName(v.base), t, p, clause(v, t, p, false), clause(v, t, p, true)}
}

// clause is a subject and a verb.
func clause(v verb, t tense, p person, plural bool) string {
	subject := subjects[p][0]
	if plural {
		subject = subjects[p][1]
	}
	switch t {
	case past:
		return subject + " " + v.preterite(p, plural)
	case future:
		return subject + " will " + v.base
	case presentPerfect:
		return subject + " " + have.present(p, plural) + " " + v.participle
	case pastPerfect:
		return subject + " " + have.past + " " + v.participle
	}
	return subject + " " + v.present(p, plural)
}

// subjects are the pronouns of each person, singular and plural.
var subjects = map[person][2]string{
	first:  {"I", "we"},
	second: {"you", "you"},
	third:  {"he/she/it", "they"},
}

// lookUp returns the cells of a verb, none if the table does not have it.
func lookUp(name verbName) []cell {
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.base == string(name) })
	if i < 0 {
		return nil
	}
	cells := make([]cell, 0, len(tenses)*len(persons))
	for _, t := range tenses {
		for _, p := range persons {
			cells = append(cells, newCell(verbs[i], t, p))
		}
	}
	return cells
}
