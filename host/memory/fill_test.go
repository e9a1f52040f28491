package memory

import "testing"

// Fill makes the disk of a store full: the file may not grow any more.
func Fill(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // no less than there are
		t.Fatal(err)
	}
}

// Version says by which schema the file of a store was made.
func Version(t *testing.T, s *Store, version string) {
	t.Helper()
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA user_version = "+version); err != nil {
		t.Fatal(err)
	}
}
