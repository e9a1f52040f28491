// Package conjugate is a server for a table of English verbs: 31 verbs in 5 tenses
// and 3 persons, also under the names of schoolbooks. It is small enough to read in a few minutes, and has one of each
// feature that a server of plain functions needs: a tool with enums, a prompt with
// completions, a resource and a resource template.
//
// From the command line:
//
//	patchbay call conjugate/conjugate verb=eat tense="past simple" person="3rd singular"
//	patchbay call conjugate/conjugate verb=go tense=past person=third
//	patchbay serve conjugate --http 127.0.0.1:7420
//
// From Go:
//
//	http.Handle("/mcp", conjugate.New(conjugate.Options{}))
//
// # Features
//
//	conjugate                 one cell of the table: a verb in a tense and a person
//	conjugate_verb            a prompt that practises one cell, with completions
//	conjugate://verbs         the cells of all verbs
//	conjugate://verbs/{verb}  the cells of one verb
//
// # The table
//
// A cell holds two clauses with their subjects, "I am" and "we are". The tenses are present, past,
// future, present_perfect and past_perfect, the persons first, second and third; the resources have
// these 15 cells of each verb. Regular forms are derived by rule and not stored: a regular verb is
// its base form, an irregular one its base form, past and participle, and only "be" and "have" have
// a present of their own.
//
// The tool and the prompt also take the tenses infinitive, present simple, past simple, past
// participle and simple future, and the persons 1st singular, 2nd singular and 3rd singular. A
// person with a number selects one form: it is the text of the result ("ate"), and the member form
// of its structured content. The infinitive ("eat") and the participle ("eaten") are the same for
// all persons and have no subject. Names may be written with other capitals, and with underscores or
// more white space between their words (past_simple).
package conjugate
