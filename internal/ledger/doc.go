// Package ledger has only a test: it compares the rules of the specification with the
// tests of this module and writes docs/protocol.md.
//
// testdata/rows.tsv has one rule per line. A test cites a rule that it checks by its id, such as
// TOOL-26-003, in its doc comment or inside its function; "TOOL-26-003 to -005" and "TOOL-26-003,
// -007" name several. testdata/reasons.tsv says why a rule does not have a test. testdata/open.txt
// lists the binding rules without either: it may only get shorter.
//
// After a change: go test ./internal/ledger -update
package ledger
