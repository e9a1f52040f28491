package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	driver "modernc.org/sqlite"

	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	// maxResult bounds the cells of a result, in bytes of JSON.
	maxResult = 1 << 20

	// returnedRows bounds the rows of RETURNING in the result of a write.
	returnedRows = 200
)

type readInput struct {
	Query  string `json:"query" doc:"one SQL statement that reads; put ? where params go"`
	Params []any  `json:"params,omitempty" doc:"values for the ? of the query, in order: strings, numbers, booleans, null"`
	Limit  int    `json:"limit,omitempty" doc:"maximum number of rows" default:"200" min:"1" max:"10000"`
}

type writeInput struct {
	Query  string `json:"query" doc:"one SQL statement that writes; put ? where params go"`
	Params []any  `json:"params,omitempty" doc:"values for the ? of the query, in order: strings, numbers, booleans, null"`
}

type createInput struct {
	Query string `json:"query" doc:"one CREATE TABLE statement"`
}

// rowSet holds the rows of a result.
type rowSet struct {
	Columns   []string            `json:"columns"`
	Rows      [][]json.RawMessage `json:"rows" doc:"cells in the order of columns; see the server's package for how values are written"`
	RowCount  int                 `json:"row_count" doc:"number of rows here"`
	Truncated bool                `json:"truncated" doc:"whether there are more rows"`
	Note      string              `json:"note,omitempty" doc:"how to read the rest"`
}

// written is the result of a write.
type written struct {
	RowsAffected int64   `json:"rows_affected"`
	LastInsertID *int64  `json:"last_insert_id,omitempty" doc:"rowid of the last row inserted"`
	Returned     *rowSet `json:"returned,omitempty" doc:"the rows of RETURNING"`
}

func (s *server) addQueries() {
	reading := mcp.Tool{
		Name: "read_query", Title: "Read",
		Description: "Runs one SELECT, EXPLAIN or informative PRAGMA. It cannot change anything.",
		Annotations: reads,
	}
	writing := mcp.Tool{
		Name: "write_query", Title: "Write",
		Description: "Runs one statement that changes data or schema, such as INSERT, UPDATE, DELETE or DROP, in a transaction of its own.",
		Annotations: writes,
	}
	if s.options.Objects {
		s.addObjects(reading, writing)
	} else {
		mcp.AddTool(s.mcp, reading, s.read)
		mcp.AddTool(s.mcp, writing, s.write)
	}
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "create_table", Title: "Create a table", Description: "Runs one CREATE TABLE.",
		Annotations: adds,
	}, s.create)
}

func (s *server) read(ctx context.Context, in readInput) (*rowSet, error) {
	query, err := statement(in.Query)
	if err != nil {
		return nil, err
	}
	args, err := bind(in.Params)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	g := guard{reading: true}
	out, err := s.db.selectRows(ctx, &g, query, args, in.Limit)
	if err != nil {
		return nil, ended(ctx, g.explain(err))
	}
	return out, nil
}

func (s *server) write(ctx context.Context, in writeInput) (*written, error) {
	return s.change(ctx, in.Query, in.Params, func(g *guard) error {
		if !g.writes {
			return errors.New("the statement changes neither data nor schema; use read_query for reading, and VACUUM is not available")
		}
		return nil
	})
}

type created struct {
	Created bool `json:"created"`
}

func (s *server) create(ctx context.Context, in createInput) (*created, error) {
	_, err := s.change(ctx, in.Query, nil, func(g *guard) error {
		if !g.creates {
			return errors.New("the statement is not a CREATE TABLE; use write_query")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &created{true}, nil
}

// change runs a statement that writes. The function allow decides once the statement's actions are
// known.
func (s *server) change(ctx context.Context, query string, params []any, allow func(*guard) error) (*written, error) {
	query, err := statement(query)
	if err != nil {
		return nil, err
	}
	args, err := bind(params)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	var g guard
	out, err := s.db.change(ctx, &g, query, args, allow)
	if err != nil {
		return nil, ended(ctx, g.explain(err))
	}
	return out, nil
}

// bound sets the time limit of a query.
func (s *server) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.options.Timeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, s.options.Timeout,
		fmt.Errorf("the query was stopped after %v; make it do less, with an index, a WHERE or a LIMIT", s.options.Timeout))
}

// ended returns the cause of ctx's end in place of the driver's error.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// selectRows runs a statement on a connection that cannot write.
func (db *database) selectRows(ctx context.Context, g *guard, query string, args []any, limit int) (*rowSet, error) {
	conn, err := db.read.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := g.install(conn); err != nil {
		return nil, err
	}
	columns, err := compile(conn, query)
	if err != nil {
		return nil, err
	}
	if !g.writes { // else it is about to fail, with its original text
		query = rawTimes(query, columns)
	}
	stop, err := interruptible(ctx, conn)
	if err != nil {
		return nil, err
	}
	defer stop()
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out, err := db.fetch(rows, columns, limit)
	if err != nil {
		return nil, err
	}
	if n := len(out.Rows); out.Truncated && n > 0 {
		out.Note += fmt.Sprintf("; to read on, ask again with ORDER BY and LIMIT %d OFFSET %d, or raise limit (at most 10000)", n, n)
	}
	return out, nil
}

// change runs a statement as a transaction. A failure of any kind rolls it back.
func (db *database) change(ctx context.Context, g *guard, query string, args []any, allow func(*guard) error) (out *written, err error) {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := uninstall(conn); err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return nil, err
	}
	settle := context.WithoutCancel(ctx) // a transaction ends even if its caller has cancelled
	defer func() {
		if e := uninstall(conn); err == nil {
			err = e
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			if _, err = conn.ExecContext(settle, "COMMIT"); err == nil {
				return
			}
		}
		out = nil
		if _, e := conn.ExecContext(settle, "ROLLBACK"); e != nil {
			// The engine has rolled back already, or cannot. Either way the connection must
			// not be reused.
			_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn })
		}
	}()
	before, err := changesOf(settle, conn)
	if err != nil {
		return nil, err
	}
	if err := g.install(conn); err != nil {
		return nil, err
	}
	columns, err := compile(conn, query)
	if err != nil {
		return nil, err
	}
	if err := allow(g); err != nil {
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	out = &written{}
	if len(columns) > 0 {
		if out.Returned, err = db.fetch(rows, columns, returnedRows); err == nil && out.Returned.Truncated {
			out.Returned.Note += "; the statement was run in full"
		}
	}
	for err == nil && rows.Next() { // the statement runs to its end, shown or not
	}
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	if err := uninstall(conn); err != nil {
		return nil, err
	}
	after, err := changesOf(settle, conn)
	if err != nil {
		return nil, err
	}
	if after.total != before.total {
		out.RowsAffected = after.last
		if g.inserts && after.last > 0 {
			out.LastInsertID = &after.rowid
		}
	}
	return out, nil
}

// changes are the counters of a connection's changes.
type changes struct{ total, last, rowid int64 }

func changesOf(ctx context.Context, conn *sql.Conn) (c changes, err error) {
	err = conn.QueryRowContext(ctx, "SELECT total_changes(), changes(), last_insert_rowid()").Scan(&c.total, &c.last, &c.rowid)
	return c, err
}

// compile makes the engine compile a statement, so that the guard checks it,
// without running it.
func compile(conn *sql.Conn, query string) (columns []driver.ColumnInfo, err error) {
	err = conn.Raw(func(dc any) error {
		c, ok := dc.(interface {
			ColumnInfo(query string) ([]driver.ColumnInfo, error)
		})
		if !ok {
			return errors.New("the SQLite driver does not describe columns")
		}
		columns, err = c.ColumnInfo(query)
		return err
	})
	return columns, err
}

// rawTimes rewrites a query so that text of columns declared DATE, DATETIME or
// TIMESTAMP arrives as it is stored. The driver converts such text to times, by the
// declared type, which an expression such as +column does not have. Only a SELECT
// has such columns here, so the query fits into a WITH clause.
func rawTimes(query string, columns []driver.ColumnInfo) string {
	found := false
	for _, c := range columns {
		switch strings.ToUpper(c.DeclType) {
		case "DATE", "DATETIME", "TIMESTAMP":
			found = true
		}
	}
	if !found {
		return query
	}
	names, values := make([]string, len(columns)), make([]string, len(columns))
	for i := range columns {
		names[i] = fmt.Sprintf("c%d", i)
		values[i] = "+" + names[i]
	}
	return fmt.Sprintf("WITH _patchbay_raw(%s) AS (%s\n) SELECT %s FROM _patchbay_raw", strings.Join(names, ","), query, strings.Join(values, ","))
}

// fetch reads rows up to a limit and up to maxResult.
func (db *database) fetch(rows *sql.Rows, columns []driver.ColumnInfo, limit int) (*rowSet, error) {
	out := &rowSet{Columns: make([]string, len(columns)), Rows: [][]json.RawMessage{}}
	for i, c := range columns {
		out.Columns[i] = c.Name
	}
	keys := 0 // bytes of the names in each row
	if db.objects {
		out.Columns = memberNames(out.Columns)
		for _, name := range out.Columns {
			keys += len(textCell(name)) + 1
		}
	}
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	size := 0
	for rows.Next() {
		if len(out.Rows) == limit {
			out.stop(fmt.Sprintf("stopped after %d rows; there are more", limit))
			break
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		size += keys
		row := make([]json.RawMessage, len(values))
		for i, v := range values {
			row[i] = cell(v)
			size += len(row[i]) + 1
		}
		if size > maxResult {
			if len(out.Rows) == 0 {
				out.stop("the first row alone is over 1 MiB; select fewer columns, or parts of them with substr()")
			} else {
				out.stop(fmt.Sprintf("stopped after %d rows, as more would pass 1 MiB", len(out.Rows)))
			}
			break
		}
		out.Rows = append(out.Rows, row)
	}
	out.RowCount = len(out.Rows)
	return out, rows.Err()
}

// stop marks a result as cut off.
func (r *rowSet) stop(why string) { r.Truncated, r.Note = true, why }
