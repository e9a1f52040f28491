package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/sqlitefile"
)

// migrations make a new database, each from the result of the one before. They are never changed,
// only added to.
var migrations = []string{
	// Times are Unix times in milliseconds. The words of an entry have its number, those of a
	// title the negative one of its conversation.
	`CREATE TABLE conversations (
		n        INTEGER PRIMARY KEY,
		id       TEXT    NOT NULL UNIQUE,
		title    TEXT    NOT NULL,
		created  INTEGER NOT NULL,
		updated  INTEGER NOT NULL,
		model    TEXT    NOT NULL,
		folder   TEXT    NOT NULL,
		entries  INTEGER NOT NULL DEFAULT 0,
		input    INTEGER NOT NULL DEFAULT 0,
		output   INTEGER NOT NULL DEFAULT 0,
		cached   INTEGER NOT NULL DEFAULT 0,
		stored   INTEGER NOT NULL DEFAULT 0,
		cost     REAL    NOT NULL DEFAULT 0
	);
	CREATE INDEX conversations_updated ON conversations (updated);
	CREATE INDEX conversations_folder ON conversations (folder, updated);
	CREATE TABLE entries (
		n            INTEGER PRIMARY KEY,
		conversation INTEGER NOT NULL REFERENCES conversations (n),
		position     INTEGER NOT NULL, -- from 0
		at           INTEGER NOT NULL,
		turn         INTEGER NOT NULL,
		role         TEXT    NOT NULL,
		model        TEXT    NOT NULL,
		input        INTEGER NOT NULL,
		output       INTEGER NOT NULL,
		cached       INTEGER NOT NULL,
		stored       INTEGER NOT NULL,
		cost         REAL    NOT NULL,
		message      BLOB    NOT NULL, -- JSON
		UNIQUE (conversation, position)
	);
	CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = "unicode61 remove_diacritics 2");
	INSERT INTO words (words, rank) VALUES ('secure-delete', 1);`,
	`ALTER TABLE conversations ADD COLUMN parameters TEXT NOT NULL DEFAULT '{}'; -- JSON
	ALTER TABLE conversations ADD COLUMN mode TEXT NOT NULL DEFAULT '';`,
}

// Store is an open file of conversations. It is safe for concurrent use.
type Store struct {
	path string
	db   *sql.DB
}

// DefaultPath returns the file of the user's conversations: conversations.db in the folder
// patchbay of the user's data.
func DefaultPath() (string, error) { return ownfile.Data("conversations.db") }

// Open opens a file of conversations, and creates it and its folder if needed. An empty path
// means [DefaultPath]. A file of a newer version is an error.
func Open(path string) (*Store, error) {
	if path == "" {
		var err error
		if path, err = DefaultPath(); err != nil {
			return nil, fmt.Errorf("where to keep conversations: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("conversations: %w", err)
	}
	if err := sqlitefile.Check(path); err != nil {
		return nil, fmt.Errorf("conversations: %w", err)
	}
	s := &Store{path: path}
	db, err := sqlitefile.Open(path, migrations, "secure_delete(1)")
	if err != nil {
		return nil, s.fail("open", err)
	}
	s.db = db
	return s, nil
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }

// Close closes the file. Methods called afterwards fail.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return s.fail("close", err)
	}
	return nil
}

// Errors of an id, and of a conversation that is written. They are wrapped.
var (
	ErrNone      = errors.New("memory: no conversation has this id")
	ErrMany      = errors.New("memory: several conversations have ids that begin like this")
	ErrElsewhere = errors.New("memory: the conversation was continued elsewhere")
)

// fail adds the operation and the file to err.
func (s *Store) fail(doing string, err error) error {
	if sqlitefile.Damaged(err) {
		err = fmt.Errorf("%w; the file is damaged: move it away, with -wal and -shm beside it, and a new one is made", err)
	}
	return fmt.Errorf("%s: conversations in %q: %w", doing, s.path, err)
}

// change makes a change, whole or not at all.
func (s *Store) change(ctx context.Context, doing string, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.fail(doing, err)
	}
	defer tx.Rollback() // does nothing after Commit
	if err = do(tx); err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return s.fail(doing, err)
	}
	return nil
}
