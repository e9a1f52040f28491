package sqlite

import (
	"database/sql"
	"fmt"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/sqlitefile"
)

// migrations create a new database; each starts from the result of the one before. Never change
// one, only append.
var migrations = []string{
	`CREATE TABLE events (
		n        INTEGER PRIMARY KEY AUTOINCREMENT,
		stream   TEXT    NOT NULL,
		position INTEGER NOT NULL,
		at       INTEGER NOT NULL, -- Unix time in milliseconds
		event    BLOB    NOT NULL,
		UNIQUE (stream, position)
	)`,
	// The sum over all tasks is maintained as they come and go, because computing it is slow.
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

// Store is an open database. Its methods are safe for several goroutines, and several processes may
// open the same file.
type Store struct {
	path string
	db   *sql.DB

	eventsOnce sync.Once
	events     *Events

	tasksOnce sync.Once
	tasks     *Tasks
}

// Open opens the database in a file. It creates a missing file, but not its folder, and upgrades
// one of an older version of this package. A file of a newer version is an error.
func Open(path string) (*Store, error) {
	db, err := sqlitefile.Open(path, migrations)
	if err != nil {
		return nil, fmt.Errorf("store %q: %w", path, err)
	}
	return &Store{path: path, db: db}, nil
}

// Close closes the database. Later operations fail.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("store %q: %w", s.path, err)
	}
	return nil
}
