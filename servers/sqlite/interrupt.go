package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"sync"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// interruptible makes the engine stop the connection's statement when ctx ends. The
// caller calls stop before it returns the connection.
//
// The driver (v1.61.1) does so itself, but only until the first row: a query that
// never ends after it could not be stopped. The engine's handle is a private field of
// the driver's connection, which reflection may read; TestCancel fails if it moves.
// Remove when the driver watches the context in Rows.Next.
func interruptible(ctx context.Context, conn *sql.Conn) (stop func(), err error) {
	var db uintptr
	err = conn.Raw(func(dc any) error {
		v := reflect.Indirect(reflect.ValueOf(dc))
		if v.Kind() == reflect.Struct {
			if f := v.FieldByName("db"); f.Kind() == reflect.Uintptr {
				db = uintptr(f.Uint())
			}
		}
		if db == 0 {
			return errors.New("this version of the SQLite driver cannot be interrupted")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	running.Add(1)
	unwatch := context.AfterFunc(ctx, func() {
		defer running.Done()
		tls := libc.NewTLS()
		defer tls.Close()
		lib.Xsqlite3_interrupt(tls, db)
	})
	return func() {
		if !unwatch() {
			running.Wait() // the handle must not be closed meanwhile
		}
	}, nil
}
