package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// maxValue bounds one text or blob, in bytes, so that a query such as SELECT
// zeroblob(1e9) cannot fill the memory of the server.
const maxValue = 64 << 20

// guard is the authorizer of one statement: it permits or refuses its actions
// during compilation, and records them. The engine calls it on the goroutine that
// runs the statement.
type guard struct {
	reading bool   // whether the connection cannot write
	refused string // why the statement was refused, for people; empty if it was not

	inserts bool // whether it is an INSERT or REPLACE
	writes  bool // whether it changes anything
	creates bool // whether it creates a table
}

// tells are the informative pragmas, with the kind of their argument.
var tells = map[string]bool{
	"application_id": false, "collation_list": false, "compile_options": false, "data_version": false,
	"encoding": false, "foreign_keys": false, "freelist_count": false, "function_list": false,
	"journal_mode": false, "module_list": false, "page_count": false, "page_size": false,
	"pragma_list": false, "schema_version": false, "user_version": false,

	// The argument of these is a name, not a new value.
	"foreign_key_check": true, "foreign_key_list": true, "index_info": true, "index_list": true,
	"index_xinfo": true, "integrity_check": true, "quick_check": true, "table_info": true,
	"table_list": true, "table_xinfo": true,
}

// modules are the virtual tables that keep all data inside the database.
var modules = map[string]bool{
	"fts3": true, "fts4": true, "fts5": true, "fts5vocab": true, "geopoly": true,
	"rtree": true, "rtree_i32": true, "vec0": true,
}

// install sets the guard of a connection, in place of the previous one. A caller's
// statement must never run without a guard.
func (g *guard) install(conn *sql.Conn) error {
	for limit, n := range map[int]int{lib.SQLITE_LIMIT_ATTACHED: 0, lib.SQLITE_LIMIT_LENGTH: maxValue} {
		if _, err := driver.Limit(conn, limit, n); err != nil {
			return err
		}
	}
	return register(conn, g.authorize)
}

// uninstall removes the guard of a connection, for the server's own statements.
func uninstall(conn *sql.Conn) error { return register(conn, nil) }

func register(conn *sql.Conn, f driver.AuthorizerFn) error {
	return conn.Raw(func(dc any) error {
		r, ok := dc.(driver.AuthorizerRegisterer)
		if !ok {
			return errors.New("the SQLite driver has no authorizer")
		}
		return r.RegisterAuthorizer(f)
	})
}

// authorize decides on one action. Its arguments are those of
// https://www.sqlite.org/c3ref/c_alter_table.html; "" stands for NULL.
func (g *guard) authorize(action driver.AuthorizerActionCode, arg1, arg2, _, _ string) driver.AuthorizerReturnCode {
	switch action {
	case driver.AuthSelect, driver.AuthRead, driver.AuthRecursive:
		return driver.AuthorizerOK
	case driver.AuthFunction:
		if strings.EqualFold(arg2, "load_extension") {
			return g.refuse("load_extension is not available")
		}
		return driver.AuthorizerOK
	case driver.AuthPragma:
		takes, ok := tells[strings.ToLower(arg1)]
		if !ok || (arg2 != "" && !takes) {
			return g.refuse("PRAGMA %s is not available: only informative pragmas are, such as table_info", arg1)
		}
		return driver.AuthorizerOK
	case driver.AuthAttach, driver.AuthDetach:
		return g.refuse("ATTACH, DETACH and VACUUM are not available: this server works on one database")
	case driver.AuthTransaction, driver.AuthSavepoint:
		return g.refuse("%s is not available: each statement is a transaction of its own", arg1)
	case driver.AuthCreateTempIndex, driver.AuthCreateTempTable, driver.AuthCreateTempTrigger, driver.AuthCreateTempView,
		driver.AuthDropTempIndex, driver.AuthDropTempTable, driver.AuthDropTempTrigger, driver.AuthDropTempView:
		return g.refuse("temporary objects are not available: use a WITH clause or a table")
	case driver.AuthCreateVTable:
		if !modules[strings.ToLower(arg2)] {
			return g.refuse("virtual tables of module %q are not available; use fts5 or rtree", text.Short(arg2))
		}
		g.creates, g.writes = true, true
		return driver.AuthorizerOK
	case driver.AuthCreateTable:
		// Virtual tables create tables of their own while they are created.
		g.creates, g.writes = true, true
		return driver.AuthorizerOK
	case driver.AuthInsert:
		// The first action of a statement is its own; later ones may belong to triggers
		// and virtual tables. The schema is a table too.
		if !g.writes && !strings.HasPrefix(arg1, "sqlite_") {
			g.inserts = true
		}
		g.writes = true
		return driver.AuthorizerOK
	case driver.AuthUpdate, driver.AuthDelete, driver.AuthAlterTable, driver.AuthReindex, driver.AuthAnalyze,
		driver.AuthCreateIndex, driver.AuthCreateTrigger, driver.AuthCreateView, driver.AuthDropIndex,
		driver.AuthDropTable, driver.AuthDropTrigger, driver.AuthDropView, driver.AuthDropVTable:
		g.writes = true
		return driver.AuthorizerOK
	}
	return g.refuse("action %d of the engine is not available", action)
}

func (g *guard) refuse(format string, args ...any) driver.AuthorizerReturnCode {
	if g.refused == "" {
		g.refused = fmt.Sprintf(format, args...)
	}
	return driver.AuthorizerDeny
}

// explain adds the next step to an error of the engine.
func (g *guard) explain(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	if g.refused != "" {
		return errors.New(g.refused)
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_READONLY:
		if g.reading {
			return errors.New("read_query cannot change the database; use write_query")
		}
		return errors.New("the database file cannot be written; check the permissions of it and its folder")
	case lib.SQLITE_BUSY:
		return errors.New("the database is locked by another program; try again")
	case lib.SQLITE_TOOBIG:
		return fmt.Errorf("a value is over %d MiB, the limit of this server", maxValue>>20)
	}
	return err
}
