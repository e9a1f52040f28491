package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/sqlite"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

type rowSet struct {
	Columns   []string            `json:"columns"`
	Rows      [][]json.RawMessage `json:"rows"`
	RowCount  int                 `json:"row_count"`
	Truncated bool                `json:"truncated"`
	Note      string              `json:"note"`
}

type written struct {
	RowsAffected int64   `json:"rows_affected"`
	LastInsertID *int64  `json:"last_insert_id"`
	Returned     *rowSet `json:"returned"`
}

type args = map[string]any

const newest = mcp.V2026_07_28

// connect serves a database and opens a session of the newest revision with it.
func connect(t *testing.T, o sqlite.Options) *mcp.Session {
	t.Helper()
	return mcptest.Connect(t, newServer(t, o), &mcp.Client{}, newest)
}

func newServer(t *testing.T, o sqlite.Options) *mcp.Server {
	srv := sqlite.New(o)
	t.Cleanup(func() {
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return srv
}

// both runs a test on a database in memory and on a file.
func both(t *testing.T, body func(t *testing.T, s *mcp.Session)) {
	t.Run("memory", func(t *testing.T) { body(t, connect(t, sqlite.Options{})) })
	t.Run("file", func(t *testing.T) {
		// A name that a URI would read otherwise.
		body(t, connect(t, sqlite.Options{DB: filepath.Join(t.TempDir(), "no 100%#.db")}))
	})
}

func read(t *testing.T, s *mcp.Session, query string, params ...any) rowSet {
	t.Helper()
	out, err := mcp.CallAs[rowSet](t.Context(), s, "read_query", args{"query": query, "params": orEmpty(params)})
	if err != nil {
		t.Fatalf("read_query %q: %v", query, err)
	}
	return out
}

func write(t *testing.T, s *mcp.Session, query string, params ...any) written {
	t.Helper()
	out, err := mcp.CallAs[written](t.Context(), s, "write_query", args{"query": query, "params": orEmpty(params)})
	if err != nil {
		t.Fatalf("write_query %q: %v", query, err)
	}
	return out
}

func orEmpty(params []any) []any {
	if params == nil {
		return []any{}
	}
	return params
}

// refused calls a tool that must answer with a tool error that has want in it.
func refused(t *testing.T, s *mcp.Session, tool, query, want string) {
	t.Helper()
	res, err := s.CallTool(t.Context(), tool, args{"query": query})
	switch {
	case err != nil:
		t.Errorf("%s %q: %v", tool, query, err)
	case !res.IsError:
		t.Errorf("%s %q = %s, want an error with %q", tool, query, res.Text(), want)
	case !strings.Contains(res.Text(), want):
		t.Errorf("%s %q says %q, want %q in it", tool, query, res.Text(), want)
	}
}

func rowsOf(r rowSet) string {
	b, _ := json.Marshal(r.Rows)
	return string(b)
}

// TestEveryRevision goes through all features on every revision and wire.
func TestEveryRevision(t *testing.T) {
	mcptest.Every(t, func() *mcp.Server { return newServer(t, sqlite.Options{}) }, func() *mcp.Client { return &mcp.Client{} },
		func(t *testing.T, s *mcp.Session) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if res, err := s.CallTool(ctx, "create_table", args{"query": "CREATE TABLE cities(name TEXT PRIMARY KEY, people INTEGER)"}); err != nil || res.IsError {
				t.Fatalf("create_table = %v, %v", res, err)
			}
			if res, err := s.CallTool(ctx, "write_query", args{"query": "INSERT INTO cities VALUES (?, ?), (?, ?)", "params": []any{"Riga", 605802, "Graz", 303270}}); err != nil || res.IsError {
				t.Fatalf("write_query = %v, %v", res, err)
			}
			res, err := s.CallTool(ctx, "read_query", args{"query": "SELECT name FROM cities WHERE people > ?", "params": []any{500000}})
			if err != nil || !strings.Contains(res.Text(), `"rows":[["Riga"]]`) {
				t.Fatalf("read_query = %v, %v", res, err)
			}
			if res, err = s.CallTool(ctx, "describe_table", args{"table_name": "cities"}); err != nil || !strings.Contains(res.Text(), `"primary_key":1`) {
				t.Errorf("describe_table = %v, %v", res, err)
			}
			if p, err := s.GetPrompt(ctx, "mcp-demo", map[string]string{"topic": "a bakery"}); err != nil || !strings.Contains(p.Messages[0].Content.(mcp.TextContent).Text, "a bakery") {
				t.Errorf("prompt = %v, %v", p, err)
			}
			// Watch hears of an insight, and the memo has it.
			noted := false
			for e, err := range s.Watch(ctx, "memo://insights") {
				if err != nil {
					t.Fatalf("Watch: %v", err)
				}
				if e.URI == "memo://insights" {
					break
				}
				if noted {
					t.Fatalf("event %q, want the update", e.Method)
				}
				noted = true // the first event says that the subscription stands
				if _, err := s.CallTool(ctx, "append_insight", args{"insight": "Riga is larger."}); err != nil {
					t.Fatal(err)
				}
			}
			if r, err := s.ReadResource(ctx, "memo://insights"); err != nil || !strings.Contains(r.Contents[0].Text, "1. Riga is larger.") {
				t.Errorf("memo = %v, %v", r, err)
			}
		})
}

// TestReadCannotWrite tries every way to change something through read_query.
func TestReadCannotWrite(t *testing.T) {
	both(t, func(t *testing.T, s *mcp.Session) {
		elsewhere := filepath.Join(t.TempDir(), "other.db")
		write(t, s, "CREATE TABLE t(x)")
		write(t, s, "INSERT INTO t VALUES (1)")
		const cannot, one = "use write_query", "not available"
		for _, tt := range []struct{ query, want string }{
			{"INSERT INTO t VALUES (2)", cannot},
			{"INSERT INTO t VALUES (2) RETURNING x", cannot},
			{"WITH n AS (SELECT 2 AS x) INSERT INTO t SELECT x FROM n", cannot},
			{"WITH n AS (SELECT 1) UPDATE t SET x = 3 RETURNING x", cannot},
			{"REPLACE INTO t VALUES (2)", cannot},
			{"DELETE FROM t", cannot},
			{"DROP TABLE t", cannot},
			{"CREATE TABLE u(x)", cannot},
			{"CREATE INDEX i ON t(x)", cannot},
			{"ALTER TABLE t RENAME TO u", cannot},
			{"ANALYZE", cannot},
			{"CREATE TEMP TABLE u(x)", one},
			{"PRAGMA writable_schema = ON", one},
			{"PRAGMA query_only = OFF", one},
			{"PRAGMA query_only(0)", one},
			{"PRAGMA user_version = 7", one},
			{"PRAGMA journal_mode = WAL", one},
			{"PRAGMA main.journal_mode(DELETE)", one},
			{"PRAGMA wal_checkpoint", one},
			{"PRAGMA incremental_vacuum", one},
			{"PRAGMA temp_store_directory = '/'", one},
			{"ATTACH '" + elsewhere + "' AS other", one},
			{"ATTACH '' AS other", one},
			{"DETACH main", one},
			{"VACUUM", one},
			{"VACUUM INTO '" + elsewhere + "'", one},
			{"SELECT load_extension('x')", one},
			{"BEGIN", one},
			{"BEGIN IMMEDIATE", one},
			{"SAVEPOINT a", one},
			{"COMMIT", one},
			{"SELECT 1; DELETE FROM t", "more than one statement"},
		} {
			refused(t, s, "read_query", tt.query, tt.want)
		}
		if got := rowsOf(read(t, s, "SELECT x FROM t")); got != "[[1]]" {
			t.Errorf("t is %s after all this, want [[1]]", got)
		}
		if got := rowsOf(read(t, s, "SELECT count(*) FROM sqlite_schema")); got != "[[1]]" {
			t.Errorf("schema has %s objects, want 1", got)
		}
		if _, err := os.Stat(elsewhere); err == nil {
			t.Error("another file was made")
		}
	})
}

// TestWriteStaysInside tries to reach beyond the database, or beyond the
// statement, through write_query.
func TestWriteStaysInside(t *testing.T) {
	both(t, func(t *testing.T, s *mcp.Session) {
		elsewhere := filepath.Join(t.TempDir(), "other.db")
		write(t, s, "CREATE TABLE t(x)")
		const one = "not available"
		for _, tt := range []struct{ query, want string }{
			{"ATTACH '" + elsewhere + "' AS other", one},
			{"DETACH main", one},
			{"VACUUM", "VACUUM is not available"},
			{"VACUUM INTO '" + elsewhere + "'", "VACUUM is not available"},
			{"INSERT INTO t SELECT load_extension('x')", one},
			{"PRAGMA writable_schema = ON", one},
			{"PRAGMA journal_mode = OFF", one},
			{"PRAGMA foreign_keys = OFF", one},
			{"COMMIT", one},
			{"ROLLBACK", one},
			{"SAVEPOINT a", one},
			{"CREATE TEMP TABLE u(x)", one},
			{"CREATE VIRTUAL TABLE u USING sqlite_dbpage", one},
			{"UPDATE sqlite_schema SET sql = ''", "sqlite_master may not be modified"},
			{"DELETE FROM sqlite_dbpage", "read-only"},
			{"SELECT 1", "read_query"},
			{"INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)", "more than one statement"},
			{"INSERT INTO t VALUES ($a('); DROP TABLE t; --'))", "more than one statement"},
		} {
			refused(t, s, "write_query", tt.query, tt.want)
		}
		refused(t, s, "create_table", "INSERT INTO t VALUES (1)", "not a CREATE TABLE")
		refused(t, s, "create_table", "DROP TABLE t", "not a CREATE TABLE")
		if got := rowsOf(read(t, s, "SELECT count(*) FROM t")); got != "[[0]]" {
			t.Errorf("t has %s rows after all this, want 0", got)
		}
		if _, err := os.Stat(elsewhere); err == nil {
			t.Error("another file was made")
		}
	})
}

func TestWrite(t *testing.T) {
	both(t, func(t *testing.T, s *mcp.Session) {
		if got := write(t, s, "CREATE TABLE t(id INTEGER PRIMARY KEY, x CHECK (x < 100))"); got.RowsAffected != 0 || got.LastInsertID != nil {
			t.Errorf("CREATE TABLE affected %d rows, inserted %v", got.RowsAffected, got.LastInsertID)
		}
		got := write(t, s, "INSERT INTO t(x) VALUES (?), (?)", 1, 2)
		if got.RowsAffected != 2 || got.LastInsertID == nil || *got.LastInsertID != 2 {
			t.Errorf("INSERT = %+v, want 2 rows and id 2", got)
		}
		if got := write(t, s, "UPDATE t SET x = x + 1"); got.RowsAffected != 2 || got.LastInsertID != nil {
			t.Errorf("UPDATE = %+v, want 2 rows and no id", got)
		}
		if got := write(t, s, "DELETE FROM t WHERE x = 99"); got.RowsAffected != 0 {
			t.Errorf("DELETE of nothing = %+v", got)
		}
		if got := write(t, s, "DELETE FROM t WHERE id = 2 RETURNING id, x"); got.RowsAffected != 1 || rowsOf(*got.Returned) != "[[2,3]]" {
			t.Errorf("DELETE RETURNING = %+v", got)
		}
		// One row of several is wrong: none is kept, and the connection goes on.
		refused(t, s, "write_query", "INSERT INTO t(x) VALUES (5), (500)", "CHECK constraint failed")
		if got := rowsOf(read(t, s, "SELECT x FROM t")); got != "[[2]]" {
			t.Errorf("t is %s, want [[2]]", got)
		}
		refused(t, s, "write_query", "INSERT INTO t(x) VALUES (?)", "missing argument")
		// Rows that are not shown are written all the same.
		got = write(t, s, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO t(x) SELECT 0 FROM n RETURNING id")
		if got.RowsAffected != 500 || got.Returned.RowCount != 200 || !got.Returned.Truncated || !strings.Contains(got.Returned.Note, "in full") {
			t.Errorf("INSERT of 500 = %d rows, returned %d, %q", got.RowsAffected, got.Returned.RowCount, got.Returned.Note)
		}
		write(t, s, "CREATE TRIGGER tr AFTER DELETE ON t BEGIN INSERT INTO t(x) VALUES (old.x); END;")
		if got := write(t, s, "DELETE FROM t WHERE id = 1"); got.RowsAffected != 1 || got.LastInsertID != nil {
			t.Errorf("DELETE with a trigger = %+v, want 1 row and no id", got)
		}
	})
}

func TestValues(t *testing.T) {
	both(t, func(t *testing.T, s *mcp.Session) {
		write(t, s, "CREATE TABLE t(i INTEGER, r REAL, s TEXT, b BLOB, d DATE, dt DATETIME, ok BOOLEAN)")
		write(t, s, "INSERT INTO t VALUES (9007199254740993, 2, '', x'', '2026-07-28', '2026-07-28 10:00', 1), (NULL, 0.5, NULL, x'0001', NULL, 'soon', 0)")
		const want = `[[{"integer":"9007199254740993"},2.0,"",{"blob":""},"2026-07-28","2026-07-28 10:00",1],[null,0.5,null,{"blob":"AAE="},null,"soon",0]]`
		if got := rowsOf(read(t, s, "SELECT * FROM t -- all\n;")); got != want {
			t.Errorf("values are\n%s, want\n%s", got, want)
		}
		// The order is kept although text of dates takes another way.
		if got := rowsOf(read(t, s, "SELECT d AS x, dt AS x FROM t ORDER BY dt DESC")); got != `[[null,"soon"],["2026-07-28","2026-07-28 10:00"]]` {
			t.Errorf("ordered by date: %s", got)
		}
		if got := read(t, s, "WITH a AS (SELECT d FROM t) SELECT d, 1 AS d FROM a UNION ALL SELECT ?, 2 ORDER BY 2 DESC", "z"); rowsOf(got) != `[["z",2],["2026-07-28",1],[null,1]]` || fmt.Sprint(got.Columns) != "[d d]" {
			t.Errorf("compound of dates: %v %s", got.Columns, rowsOf(got))
		}
		got := read(t, s, "SELECT typeof(?1), typeof(?2), typeof(?3), typeof(?4), typeof(?5), ?1", 9007199254740991, 1.5, "1", nil, true)
		if rowsOf(got) != `[["integer","real","text","null","integer",9007199254740991]]` {
			t.Errorf("params are %s", rowsOf(got))
		}
	})
}

func TestLimits(t *testing.T) {
	s := connect(t, sqlite.Options{})
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
	if got := read(t, s, endless); got.RowCount != 200 || !got.Truncated || !strings.Contains(got.Note, "OFFSET 200") {
		t.Errorf("endless rows: %d rows, %q", got.RowCount, got.Note)
	}
	if got := read(t, s, endless+" LIMIT 200"); got.RowCount != 200 || got.Truncated {
		t.Errorf("200 rows: %d rows, truncated %t", got.RowCount, got.Truncated)
	}
	got, err := mcp.CallAs[rowSet](t.Context(), s, "read_query", args{"query": endless, "limit": 10000})
	if err != nil || got.RowCount != 10000 || !got.Truncated {
		t.Errorf("limit 10000: %d rows, %v", got.RowCount, err)
	}
	if res, err := s.CallTool(t.Context(), "read_query", args{"query": endless, "limit": 10001}); err != nil || !res.IsError {
		t.Errorf("limit 10001 = %v, %v; want a tool error", res, err)
	}
	wide := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT printf('%.*c', 100000, 'x') FROM n"
	if got := read(t, s, wide); got.RowCount != 10 || !strings.Contains(got.Note, "1 MiB") {
		t.Errorf("wide rows: %d rows, %q", got.RowCount, got.Note)
	}
	if got := read(t, s, "SELECT zeroblob(1000000)"); got.RowCount != 0 || !strings.Contains(got.Note, "first row alone") {
		t.Errorf("one large row: %d rows, %q", got.RowCount, got.Note)
	}
	refused(t, s, "read_query", "SELECT zeroblob(100000000)", "over 64 MiB")
}

// TestCancel ends queries that never would, before and after their first row. That
// they have ended is what TestMain sees: no goroutine is left.
func TestCancel(t *testing.T) {
	const forever = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n)"
	both(t, func(t *testing.T, s *mcp.Session) {
		write(t, s, "CREATE TABLE t(x)")
		write(t, s, "INSERT INTO t VALUES (1)")
		for tool, query := range map[string]string{
			"read_query":  "SELECT 1 UNION ALL SELECT * FROM " + forever,
			"write_query": "INSERT INTO t SELECT 1 UNION ALL SELECT * FROM " + forever,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			start := time.Now()
			_, err := s.CallTool(ctx, tool, args{"query": query})
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s = %v, want that the time is over", tool, err)
			}
			// The next write waits for the connection, so the query has ended then.
			write(t, s, "UPDATE t SET x = x + 1")
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%s went on for %v", tool, took)
			}
		}
		if got := rowsOf(read(t, s, "SELECT x FROM t")); got != "[[3]]" {
			t.Errorf("t is %s, want [[3]]", got)
		}
	})
	t.Run("timeout", func(t *testing.T) {
		s := connect(t, sqlite.Options{Timeout: 50 * time.Millisecond})
		refused(t, s, "read_query", "SELECT * FROM "+forever, "stopped after 50ms")
		read(t, s, "SELECT 1")
	})
}

func TestTables(t *testing.T) {
	both(t, func(t *testing.T, s *mcp.Session) {
		write(t, s, "CREATE TABLE a(id INTEGER PRIMARY KEY, n TEXT NOT NULL DEFAULT 'x', g AS (n || '!'))")
		write(t, s, "CREATE TABLE b(a_id REFERENCES a, x, y, UNIQUE (x, y))")
		write(t, s, "CREATE VIEW v AS SELECT n FROM a")
		write(t, s, "CREATE VIRTUAL TABLE f USING fts5(text)")
		write(t, s, "CREATE VIRTUAL TABLE r USING rtree(id, lo, hi)")
		write(t, s, "INSERT INTO f VALUES ('hello world')")
		write(t, s, "INSERT INTO r VALUES (1, 2, 3)")
		if got := rowsOf(read(t, s, "SELECT text, hi FROM f('hello'), r")); got != `[["hello world",3.0]]` {
			t.Errorf("virtual tables: %s", got)
		}
		list, err := s.CallTool(t.Context(), "list_tables", nil)
		const want = `{"tables":[{"name":"a","type":"table"},{"name":"b","type":"table"},{"name":"f","type":"virtual"},{"name":"r","type":"virtual"},{"name":"v","type":"view"}]}`
		if err != nil || string(list.Structured) != want {
			t.Errorf("list_tables = %s, %v; want %s", list.Structured, err, want)
		}
		a, err := s.CallTool(t.Context(), "describe_table", args{"table_name": "A"})
		for _, part := range []string{`"name":"a"`, `{"name":"n","type":"TEXT","not_null":true,"default":"'x'","primary_key":0}`, `"generated":true`} {
			if err != nil || !strings.Contains(string(a.Structured), part) {
				t.Errorf("describe_table a = %s, %v; want %s in it", a.Structured, err, part)
			}
		}
		b, err := s.CallTool(t.Context(), "describe_table", args{"table_name": "b"})
		for _, part := range []string{`"unique":true,"columns":["x","y"]`, `{"columns":["a_id"],"table":"a","references":[]}`} {
			if err != nil || !strings.Contains(string(b.Structured), part) {
				t.Errorf("describe_table b = %s, %v; want %s in it", b.Structured, err, part)
			}
		}
		if res, err := s.CallTool(t.Context(), "describe_table", args{"table_name": "nosuch"}); err != nil || !res.IsError || !strings.Contains(res.Text(), "list_tables") {
			t.Errorf("describe_table nosuch = %v, %v", res, err)
		}
		read(t, s, "PRAGMA table_info(a)")
		read(t, s, "PRAGMA foreign_key_list('b')")
		read(t, s, "EXPLAIN QUERY PLAN SELECT * FROM a")
	})
}

// TestFile keeps data over restarts, and says what is wrong with a file.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new.db")
	for i := range 2 {
		srv := sqlite.New(sqlite.Options{DB: path})
		s := mcptest.Connect(t, srv, &mcp.Client{}, newest)
		write(t, s, "CREATE TABLE IF NOT EXISTS t(x)")
		write(t, s, "INSERT INTO t VALUES (1)")
		if got, want := rowsOf(read(t, s, "SELECT count(*) FROM t")), fmt.Sprintf("[[%d]]", i+1); got != want {
			t.Errorf("round %d: %s rows, want %s", i, got, want)
		}
		s.Close()
		if err := srv.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	noDatabase := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(noDatabase, []byte("These are notes and no database."), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ db, want string }{
		{filepath.Join(dir, "missing", "x.db"), `missing" does not exist; create it`},
		{noDatabase, "is not an SQLite database"},
		{dir, "is a folder"},
		{filepath.Join(noDatabase, "x.db"), "notes.txt"},
		{"file:sea.db?mode=ro", "is a URI; name the path of a file, as in --db sea.db; for a file of this name write ./file:sea.db?mode=ro"},
		{"file:///home/sea.db", "--db /home/sea.db;"},
		{"file://localhost/sea.db", "--db /sea.db;"},
		{"file::memory:?cache=shared", "--db :memory:;"},
		{"file:", "--db notes.db;"},
	} {
		err := sqlite.Options{DB: tt.db}.Check()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Check of %q = %v, want %q in it", tt.db, err, tt.want)
		}
	}
	if err := (sqlite.Options{DB: path}).Check(); err != nil {
		t.Errorf("Check of a database = %v", err)
	}
	if err := (sqlite.Options{DB: filepath.Join(dir, "later.db")}).Check(); err != nil {
		t.Errorf("Check of a file to be made = %v", err)
	}
}

// :memory: is a database in memory, and not the name of a file.
func TestMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	s := connect(t, sqlite.Options{DB: ":memory:"})
	write(t, s, "CREATE TABLE t(x)")
	if got := rowsOf(read(t, s, "SELECT name FROM sqlite_schema")); got != `[["t"]]` {
		t.Errorf("tables: %s", got)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("files: %v, %v", files, err)
	}
}

// TestConcurrent reads while it writes.
func TestConcurrent(t *testing.T) {
	both(t, func(t *testing.T, s *mcp.Session) {
		write(t, s, "CREATE TABLE t(x)")
		const each = 25
		errs := make(chan error, 8)
		for range 4 {
			go func() {
				for range each {
					if _, err := mcp.CallAs[written](t.Context(), s, "write_query", args{"query": "INSERT INTO t VALUES (1)"}); err != nil {
						errs <- err
						return
					}
				}
				errs <- nil
			}()
			go func() {
				for range each {
					if _, err := mcp.CallAs[rowSet](t.Context(), s, "read_query", args{"query": "SELECT sum(x) FROM t"}); err != nil {
						errs <- err
						return
					}
				}
				errs <- nil
			}()
		}
		for range 8 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if got := rowsOf(read(t, s, "SELECT count(*) FROM t")); got != "[[100]]" {
			t.Errorf("t has %s rows, want 100", got)
		}
	})
}
