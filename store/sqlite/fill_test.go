package sqlite

import (
	"testing"
)

// Fill makes the disk of a store full: the file may not grow any more.
func Fill(t *testing.T, s *Store) {
	t.Helper()
	var pages int
	if err := s.db.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // no less than there are
		t.Fatal(err)
	}
}
