package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/sqlitefile"
	"modernc.org/sqlite"
)

// settings of the connection. A second process may hold the lock for 5 seconds. A
// transaction has it from its beginning: one that takes it later is refused at once.
const settings = "_busy_timeout=5000&_txlock=immediate&_journal_mode=WAL&_synchronous=NORMAL&_foreign_keys=1&_defensive=1&_error_rc=1&_pragma=trusted_schema(0)"

// migrations make a new database, each from what the one before left. They are never
// changed, only added to.
var migrations = []string{
	`CREATE TABLE events (
		n        INTEGER PRIMARY KEY AUTOINCREMENT,
		stream   TEXT    NOT NULL,
		position INTEGER NOT NULL,
		at       INTEGER NOT NULL, -- Unix time in milliseconds
		event    BLOB    NOT NULL,
		UNIQUE (stream, position)
	)`,
	// What all tasks take is counted as they come and go, since summing takes long.
	`CREATE TABLE tasks (
		id      TEXT    PRIMARY KEY,
		owner   TEXT    NOT NULL,
		expires INTEGER NOT NULL, -- Unix time in milliseconds
		over    INTEGER NOT NULL, -- its state is final
		data    BLOB    NOT NULL
	) WITHOUT ROWID;
	CREATE INDEX tasks_owner ON tasks (owner, id);
	CREATE INDEX tasks_expires ON tasks (expires);
	CREATE TABLE task_size (bytes INTEGER NOT NULL);
	INSERT INTO task_size VALUES (0);
	CREATE TRIGGER tasks_added AFTER INSERT ON tasks BEGIN UPDATE task_size SET bytes = bytes + length(NEW.data); END;
	CREATE TRIGGER tasks_changed AFTER UPDATE OF data ON tasks BEGIN UPDATE task_size SET bytes = bytes - length(OLD.data) + length(NEW.data); END;
	CREATE TRIGGER tasks_dropped AFTER DELETE ON tasks BEGIN UPDATE task_size SET bytes = bytes - length(OLD.data); END`,
}

// Store is an open database. Its methods are safe for several goroutines, and
// several processes may have it open.
type Store struct {
	path string
	db   *sql.DB

	eventsOnce sync.Once
	events     *Events

	tasksOnce sync.Once
	tasks     *Tasks
}

// Open opens the database in a file. It makes one where there is none, and brings that
// of an older version of this package up to date; the folder must exist. That of a
// newer version is an error.
func Open(path string) (*Store, error) {
	uri, err := sqlitefile.URI(path)
	if err != nil {
		return nil, err
	}
	// SQLite would make a file that everybody may read.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db, err := sql.Open("sqlite", uri+"?"+settings)
	if err != nil {
		return nil, fmt.Errorf("store %q: %w", path, err)
	}
	db.SetMaxOpenConns(1) // SQLite has one writer at a time, and answers are short
	s := &Store{path: path, db: db}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("store %q: %w", path, err), db.Close())
	}
	return s, nil
}

// prepare makes the connection and the tables. While another process makes a new file a
// database, SQLite does not wait for that; prepare does.
func (s *Store) prepare(ctx context.Context) error {
	const codeBusy = 5 // SQLITE_BUSY, in the lowest byte
	for begun := time.Now(); ; {
		err := s.migrate(ctx)
		var busy *sqlite.Error
		if !errors.As(err, &busy) || busy.Code()&0xff != codeBusy || time.Since(begun) > 5*time.Second {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func (s *Store) migrate(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("it was made by a newer version (schema %d, this one knows %d); upgrade, or name another file", version, len(migrations))
	}
	if version == len(migrations) {
		return nil
	}
	for _, m := range migrations[version:] {
		if _, err := tx.ExecContext(ctx, m); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(migrations))); err != nil {
		return err
	}
	return tx.Commit()
}

// Close closes the database. What is used after that fails.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("store %q: %w", s.path, err)
	}
	return nil
}
