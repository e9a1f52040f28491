package memory

import (
	"context"
	"testing"
	"time"
)

// Fill simulates a full disk: the file cannot grow any more.
func Fill(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // the minimum is the current number
		t.Fatal(err)
	}
}

// Version sets the schema version of the file of a store.
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

// Overwrites reports whether a store overwrites deleted data.
func Overwrites(t *testing.T, s *Store) bool {
	t.Helper()
	var on int
	if err := s.db.QueryRowContext(t.Context(), "PRAGMA secure_delete").Scan(&on); err != nil {
		t.Fatal(err)
	}
	return on == 1
}
