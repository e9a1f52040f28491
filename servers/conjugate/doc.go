// Package conjugate is a server for a table of English verbs: 20 verbs in 5 tenses
// and 3 persons. It is small enough to read in a few minutes, and has one of each
// feature that a server of plain functions needs: a tool with enums, a prompt with
// completions, a resource and a resource template.
//
// From the command line:
//
//	patchbay call conjugate/conjugate verb=go tense=past person=third
//	patchbay serve conjugate --http 127.0.0.1:7420
//
// From Go:
//
//	http.Handle("/mcp", conjugate.New(conjugate.Options{}))
//
// # Features
//
//	conjugate                 one cell of the table: a verb, a tense and a person, in singular and plural
//	conjugate_verb            a prompt that practises one cell, with completions
//	conjugate://verbs         the whole table
//	conjugate://verbs/{verb}  the cells of one verb
//
// # The table
//
// A cell holds two clauses with their subjects, "I am" and "we are". The tenses are present, past,
// future, present_perfect and past_perfect. Regular forms are derived by rule and not stored: a
// regular verb is its base form, an irregular one its base form, past and participle, and only "be"
// and "have" have a present of their own.
package conjugate
