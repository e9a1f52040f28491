// Package ledger has no code of its own: its test holds the list of the rules of the
// specification against the tests of this module and writes docs/protocol.md.
//
// testdata/rows.tsv has one rule a line. A test says that it checks a rule by naming its
// id, such as TOOL-26-003, in its doc comment or inside its function; "TOOL-26-003 to
// -005" and "TOOL-26-003, -007" name several. testdata/reasons.tsv says why a rule
// has no test. testdata/open.txt lists the binding rules that have neither yet: it may
// only get shorter.
//
// After a change: go test ./internal/ledger -update
package ledger
