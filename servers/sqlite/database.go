package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/sqlitefile"
	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// readers bounds concurrent reading queries.
const readers = 4

// Settings of every connection. _defensive keeps SQL from corrupting the file,
// trusted_schema keeps a schema somebody else made from calling unsafe functions.
const settings = "_busy_timeout=5000&_defensive=1&_error_rc=1&_foreign_keys=1&_pragma=trusted_schema(0)"

// database is an open database. SQLite has one writer at a time, so there is one
// connection for writing.
type database struct {
	write *sql.DB
	read  *sql.DB

	// anchor keeps a database in memory alive with an unused connection, because the database ends
	// with its last connection, and the pools drop interrupted ones. Nil for a file.
	anchor *sql.DB

	objects bool // Options.Objects
}

// Check returns an error if the database could not be opened: a folder does not
// exist, a file is not a database, or rights are missing. It creates nothing.
func (o Options) Check() error {
	if o.inMemory() {
		return nil
	}
	return sqlitefile.Check(o.DB)
}

// inMemory reports whether the database is not in a file.
func (o Options) inMemory() bool { return o.DB == "" || o.DB == sqlitefile.Memory }

// open opens, and if need be creates, the database.
func open(ctx context.Context, o Options) (_ *database, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	name, more := "file:/patchbay-"+rand.Text(), "vfs=memdb&"
	if !o.inMemory() {
		if name, err = sqlitefile.URI(o.DB); err != nil {
			return nil, err
		}
		more = ""
	}
	db := &database{objects: o.Objects}
	defer func() {
		if err != nil {
			db.close()
		}
	}()
	if db.write, err = sql.Open("sqlite", name+"?"+more+settings); err != nil {
		return nil, fmt.Errorf("database %q: %w", o.DB, err)
	}
	db.write.SetMaxOpenConns(1)
	if o.inMemory() {
		if db.anchor, err = sql.Open("sqlite", name+"?"+more+settings); err != nil {
			return nil, err
		}
		db.anchor.SetMaxOpenConns(1)
		if err = db.anchor.PingContext(ctx); err != nil {
			return nil, fmt.Errorf("database in memory: %w", err)
		}
	}
	// The writer goes first, because it creates the file, and recovers it after a crash.
	if _, err := db.write.ExecContext(ctx, "SELECT count(*) FROM sqlite_schema"); err != nil {
		return nil, fmt.Errorf("database %q: %w", o.DB, err)
	}
	if db.read, err = sql.Open("sqlite", name+"?"+more+"mode=ro&_query_only=1&"+settings); err != nil {
		return nil, fmt.Errorf("database %q: %w", o.DB, err)
	}
	db.read.SetMaxOpenConns(readers)
	db.read.SetMaxIdleConns(readers)
	if _, err := db.read.ExecContext(ctx, "SELECT count(*) FROM sqlite_schema"); err != nil {
		return nil, fmt.Errorf("database %q: %w", o.DB, err)
	}
	return db, nil
}

// close waits for queries in progress and closes the database.
func (db *database) close() error {
	var errs []error
	if db.read != nil {
		errs = append(errs, db.read.Close())
	}
	if db.write != nil {
		errs = append(errs, db.write.Close())
	}
	if db.anchor != nil {
		errs = append(errs, db.anchor.Close())
	}
	return errors.Join(errs...)
}
