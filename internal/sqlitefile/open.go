package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"modernc.org/sqlite"
)

// settings apply to each connection: database/sql opens another one after a cancelled statement.
// A second process may hold the lock for 5 seconds. A transaction takes the lock at its
// beginning: one that takes it later fails at once.
const settings = "_busy_timeout=5000&_txlock=immediate&_journal_mode=WAL&_synchronous=NORMAL&_foreign_keys=1&_defensive=1&_error_rc=1&_pragma=trusted_schema(0)"

// Result codes of SQLite, in the lowest byte.
const (
	codeBusy    = 5
	codeCorrupt = 11
	codeNotADB  = 26
)

// Open opens a database of the program in a file: one connection, write-ahead log, private to its
// owner. It creates the file if needed, in an existing folder, and migrates an old one: migrations
// make a new database, each from the result of the one before. They are never changed, only added
// to. A database with more migrations is an error. The pragmas, such as "secure_delete(1)", apply
// to each connection in addition to the common ones.
func Open(path string, migrations []string, pragmas ...string) (*sql.DB, error) {
	uri, err := URI(path)
	if err != nil {
		return nil, err
	}
	// SQLite would create a file that everybody can read.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	uri += "?" + settings
	for _, p := range pragmas {
		uri += "&_pragma=" + url.QueryEscape(p)
	}
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer at a time, and answers are short
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := prepare(ctx, db, migrations); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// code returns the SQLite result code of an error, 0 if it has none.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// Damaged reports whether an error means that a file is not a database, or a damaged one.
func Damaged(err error) bool {
	c := code(err)
	return c == codeCorrupt || c == codeNotADB
}

// prepare makes the connection and the tables. SQLite does not wait while another process
// initializes a new file; prepare does.
func prepare(ctx context.Context, db *sql.DB, migrations []string) error {
	for begun := time.Now(); ; {
		err := migrate(ctx, db, migrations)
		if code(err) != codeBusy || time.Since(begun) > 5*time.Second {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func migrate(ctx context.Context, db *sql.DB, migrations []string) error {
	tx, err := db.BeginTx(ctx, nil)
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
