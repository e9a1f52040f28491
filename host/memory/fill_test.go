package memory

import (
	"context"
	"testing"
	"time"
)

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

// Interrupt cancels a statement while it runs, after which the store has another connection.
func Interrupt(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var n int
	if err := s.db.QueryRowContext(ctx, "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c").Scan(&n); err == nil {
		t.Fatal("a statement without end has ended")
	}
}

// Overwrites tells whether a store overwrites what it deletes.
func Overwrites(t *testing.T, s *Store) bool {
	t.Helper()
	var on int
	if err := s.db.QueryRowContext(t.Context(), "PRAGMA secure_delete").Scan(&on); err != nil {
		t.Fatal(err)
	}
	return on == 1
}
