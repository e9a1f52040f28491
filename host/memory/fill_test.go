package memory

import (
	"context"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/sqlitefile"
)

// Fill simulates a full disk: the file cannot grow any more.
func Fill(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // the minimum is the current number
		t.Fatal(err)
	}
}

// First makes a file of the first version, with a conversation.
func First(t *testing.T, path, id string) {
	t.Helper()
	db, err := sqlitefile.Open(path, migrations[:1])
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "INSERT INTO conversations (id, title, created, updated, model, folder) VALUES (?, 't', 1, 1, 'm', 'f')", id); err != nil {
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
