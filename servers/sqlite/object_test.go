package sqlite_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/sqlite"
)

// With Objects the text of a result is the list of rows alone, on every revision, and the
// structured content has the same rows.
func TestObjects(t *testing.T) {
	newSQLite := func() *mcp.Server { return newServer(t, sqlite.Options{Objects: true, Demo: true}) }
	mcptest.Every(t, newSQLite, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		const want = `[{"name":"Amelia","name:1":null}]`
		res, err := s.CallTool(t.Context(), "read_query", args{"query": "SELECT 'Amelia' AS name, NULL AS name"})
		if err != nil || res.IsError || res.Text() != want {
			t.Fatalf("read_query = %v, %v; want %s", res, err, want)
		}
		if s.Revision() < mcp.V2025_06_18 { // no structured content
			return
		}
		if got, want := string(res.Structured), `{"columns":["name","name:1"],"rows":`+want+`,"row_count":1,"truncated":false}`; got != want {
			t.Errorf("structured content = %s, want %s", got, want)
		}
	})
}

func TestObjectValues(t *testing.T) {
	s := connect(t, sqlite.Options{Objects: true})
	for _, tt := range []struct{ query, want string }{
		{"SELECT 1 WHERE 0", `[]`},
		{"SELECT 9007199254740993 AS i, 2.0 AS r, x'0001' AS b, NULL AS n", `[{"i":{"integer":"9007199254740993"},"r":2.0,"b":{"blob":"AAE="},"n":null}]`},
		{`SELECT 1 AS z, 2 AS a UNION ALL SELECT 3, 4 ORDER BY 1`, `[{"z":1,"a":2},{"z":3,"a":4}]`},
		{`SELECT 1 AS a, 2 AS a, 3 AS "a:1", 4 AS A, 5 AS a`, `[{"a":1,"a:1":2,"a:1:1":3,"A":4,"a:2":5}]`},
		{`SELECT 1 AS "", 2 AS """", 3 AS "<é>"`, `[{"":1,"\"":2,"\u003cé\u003e":3}]`},
		{"SELECT d FROM (SELECT date('2026-07-28') AS d)", `[{"d":"2026-07-28"}]`},
	} {
		res, err := s.CallTool(t.Context(), "read_query", args{"query": tt.query})
		if err != nil || res.IsError || res.Text() != tt.want || !json.Valid([]byte(tt.want)) {
			t.Errorf("%s = %v, %v; want %s", tt.query, res, err, tt.want)
		}
	}
	write(t, s, "CREATE TABLE t(id INTEGER PRIMARY KEY, x)")
	res, err := s.CallTool(t.Context(), "write_query", args{"query": "INSERT INTO t(x) VALUES ('a'), (NULL) RETURNING id, x"})
	if err != nil || res.IsError || !strings.Contains(res.Text(), `"rows":[{"id":1,"x":"a"},{"id":2,"x":null}]`) {
		t.Errorf("write_query = %v, %v", res, err)
	}
	refused(t, s, "read_query", "DELETE FROM t", "use write_query")
}

// The bounds of rows and bytes hold, and a note says how to go on. Names of columns count.
func TestObjectLimits(t *testing.T) {
	s := connect(t, sqlite.Options{Objects: true})
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
	for _, tt := range []struct {
		query string
		rows  int
		note  string
	}{
		{endless + "SELECT i FROM n", 200, "OFFSET 200"},
		{endless + `SELECT i AS "` + strings.Repeat("x", 100_000) + `" FROM n`, 10, "1 MiB"},
	} {
		res, err := s.CallTool(t.Context(), "read_query", args{"query": tt.query})
		if err != nil || len(res.Content) != 2 {
			t.Fatalf("%.100s = %.300v, %v; want rows and a note", tt.query, res, err)
		}
		var rows []map[string]any
		if err := json.Unmarshal([]byte(res.Content[0].(mcp.TextContent).Text), &rows); err != nil || len(rows) != tt.rows {
			t.Errorf("%.100s has %d rows, %v; want %d", tt.query, len(rows), err, tt.rows)
		}
		if note := res.Content[1].(mcp.TextContent).Text; !strings.Contains(note, tt.note) {
			t.Errorf("%.100s: note %q, want %q in it", tt.query, note, tt.note)
		}
	}
}
