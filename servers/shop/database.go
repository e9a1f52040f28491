package shop

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/patchbay-dev/patchbay/internal/sqlitefile"
	"github.com/patchbay-dev/patchbay/internal/text"
	"modernc.org/sqlite"
)

//go:embed schema.sql
var schemaSQL string

//go:embed seed.sql
var seedSQL string

//go:embed upgrade.sql
var upgradeSQL string

const (
	// application is SQLite's application id of a shop's file ("shop" in ASCII).
	application = 0x73686f70
	// version is the version of the tables: schema.sql is the first, upgrade.sql makes the second
	// of it.
	version = 2
)

// settings of the connection. It waits 5 seconds for another program's lock. A writing
// transaction locks at its beginning: one that locks later could be refused at once.
const settings = "_busy_timeout=5000&_txlock=immediate&_foreign_keys=1&_defensive=1&_error_rc=1&_pragma=trusted_schema(0)"

// database is an open database. SQLite has one writer at a time and all transactions here are
// short, so one connection is enough.
type database struct {
	db *sql.DB

	// anchor keeps a database in memory alive with an unused connection, because the database ends
	// with its last connection, and the pool drops interrupted ones. Nil for a file.
	anchor *sql.Conn
}

// Check returns an error if the database could not be opened: a folder does not exist, a file
// is not a database or not a shop's, or rights are missing. It creates nothing.
func (o Options) Check() error {
	if o.inMemory() {
		return nil
	}
	if err := sqlitefile.Check(o.DB); err != nil {
		return err
	}
	f, err := os.Open(o.DB)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("database %q: %w", o.DB, err)
	}
	defer f.Close()
	// The application id is in the bytes from 68 on, see "The Database Header" of the file
	// format of SQLite. 0 may still be an empty database, which open checks.
	head := make([]byte, 72)
	if _, err := io.ReadFull(f, head); err != nil {
		return nil // too short for a database with content
	}
	if id := binary.BigEndian.Uint32(head[68:]); id != 0 && id != application {
		return fmt.Errorf("database %q: %w", o.DB, errForeign)
	}
	return nil
}

var errForeign = errors.New("it belongs to another program; name another file")

// inMemory reports whether the database is not in a file.
func (o Options) inMemory() bool { return o.DB == "" || o.DB == sqlitefile.Memory }

// open opens the database. It creates and fills a missing one.
func open(ctx context.Context, o Options) (_ *database, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	shown, name, more := "in memory", "file:/patchbay-"+rand.Text(), "vfs=memdb&"
	if !o.inMemory() {
		shown, more = fmt.Sprintf("%q", o.DB), ""
		if name, err = sqlitefile.URI(o.DB); err != nil {
			return nil, err
		}
		// SQLite would create a file that everybody can read.
		f, err := os.OpenFile(o.DB, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("database %s: %w", shown, err)
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("database %s: %w", shown, err)
		}
	}
	pool, err := sql.Open("sqlite", name+"?"+more+settings)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", shown, err)
	}
	d := &database{db: pool}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("database %s: %w", shown, err), d.close())
		}
	}()
	if o.inMemory() {
		if d.anchor, err = pool.Conn(ctx); err != nil {
			return nil, err
		}
		pool.SetMaxOpenConns(2)
	} else {
		pool.SetMaxOpenConns(1)
	}
	if _, err := change(ctx, d, func(tx *sql.Tx) (none, error) { return none{}, prepare(ctx, tx) }); err != nil {
		return nil, err
	}
	if !o.inMemory() {
		// The mode persists in the file, so it is set only once the file is known to be ours. While
		// another program uses the file it cannot be set, and need not be.
		if _, err := pool.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil && codeOf(err) != codeBusy {
			return nil, err
		}
	}
	return d, nil
}

// prepare creates and fills the tables of an empty database, upgrades those of version 1, and
// refuses a database that is not ours.
func prepare(ctx context.Context, tx *sql.Tx) error {
	var app, have, objects int
	steps := []string{schemaSQL, seedSQL, upgradeSQL, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", application, version)}
	err := tx.QueryRowContext(ctx, "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version").Scan(&app, &have, &objects)
	switch {
	case err != nil:
		return err
	case app == application && have == version:
		return nil
	case app == application && have == 1:
		steps = steps[2:]
	case app == application:
		return fmt.Errorf("it was made by another version (schema %d, this one knows %d); use that version, or name another file", have, version)
	case app != 0 || objects > 0:
		return errForeign
	}
	for _, query := range steps {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// close waits for transactions in progress and closes the database.
func (d *database) close() error {
	var err error
	if d.anchor != nil {
		err = d.anchor.Close()
	}
	return errors.Join(err, d.db.Close())
}

// view runs fn in a reading transaction.
func view[T any](ctx context.Context, d *database, fn func(*sql.Tx) (T, error)) (T, error) {
	return run(ctx, d, &sql.TxOptions{ReadOnly: true}, fn)
}

// change runs fn in a writing transaction, and rolls it back if fn fails.
func change[T any](ctx context.Context, d *database, fn func(*sql.Tx) (T, error)) (T, error) {
	return run(ctx, d, nil, fn)
}

func run[T any](ctx context.Context, d *database, o *sql.TxOptions, fn func(*sql.Tx) (T, error)) (out T, err error) {
	tx, err := d.db.BeginTx(ctx, o)
	if err == nil {
		defer tx.Rollback() // does nothing after Commit
		out, err = fn(tx)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, explain(err)
}

// Result codes of SQLite, in the lowest byte.
const (
	codeBusy     = 5
	codeReadOnly = 8
	codeIO       = 10
	codeFull     = 13
)

// codeOf returns the result code of an error of SQLite, 0 for any other.
func codeOf(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// explain adds the next step to an error of SQLite. The transaction was rolled back in any
// case.
func explain(err error) error {
	why := ""
	switch codeOf(err) {
	case codeBusy:
		why = "another program uses the database; try again"
	case codeReadOnly:
		why = "the database cannot be written; check the permissions of the file and its folder"
	case codeIO:
		why = "the disk cannot be read or written, or is full"
	case codeFull:
		why = "the disk is full; make room and try again"
	default:
		return err
	}
	return fmt.Errorf("nothing was changed: %s: %w", why, err)
}

// list returns the rows of a query. The function fields returns the destinations of the columns.
func list[T any](ctx context.Context, tx *sql.Tx, fields func(*T) []any, query string, args ...any) ([]T, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []T{}
	for rows.Next() {
		var v T
		if err := rows.Scan(fields(&v)...); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// nextID returns the number and the id for the next row of a table.
func nextID(ctx context.Context, tx *sql.Tx, table, prefix string) (n int64, id string, err error) {
	err = tx.QueryRowContext(ctx, "SELECT coalesce(max(n), 1000) + 1 FROM "+table).Scan(&n)
	return n, fmt.Sprintf("%s-%d", prefix, n), err
}

// known returns an error unless a table has the id; tool is the tool that lists ids.
func known(ctx context.Context, tx *sql.Tx, table, what, id, tool string) error {
	err := tx.QueryRowContext(ctx, "SELECT 1 FROM "+table+" WHERE id = ?", id).Scan(new(int))
	if errors.Is(err, sql.ErrNoRows) {
		return unknown(what, id, tool)
	}
	return err
}

// errUnknown is wrapped by errors about unknown ids.
var errUnknown = errors.New("there is no")

func unknown(what, id, tool string) error {
	return fmt.Errorf("%w %s %s; %s lists the known ones", errUnknown, what, quoted(id), tool)
}

// quoted quotes a caller's text for an error.
func quoted(s string) string {
	const most = 60
	return fmt.Sprintf("%q", text.Clip(s, most))
}
