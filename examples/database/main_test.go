package main

import (
	"bytes"
	"database/sql"
	"log"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Rows are tools on every revision; a bad row does not hide the others, and tools follow the table.
func TestDatabase(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "tools.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	srv := &mcp.Server{Name: "database", Version: "1.0.0"}
	var tools map[string]row
	change := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		if tools, err = load(t.Context(), db, srv, tools); err != nil {
			t.Fatal(err)
		}
	}
	for _, rev := range mcp.Revisions() {
		change("DROP TABLE IF EXISTS tools", "CREATE TABLE tools (name TEXT, description TEXT, schema TEXT, query TEXT)")
		s := mcptest.Connect(t, srv, &mcp.Client{}, rev)
		names := func() (names []string) {
			for tool, err := range s.Tools(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, tool.Name)
			}
			slices.Sort(names)
			return names
		}
		change(`INSERT INTO tools VALUES ('bad', '', '{"type":"string"}', 'SELECT 1'), ('twice', 'Twice a number',
			'{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}', 'SELECT 2 * CAST(:n AS INTEGER)')`)
		if got := names(); !slices.Equal(got, []string{"twice"}) || !strings.Contains(logged.String(), `the tool "bad" is left out`) {
			t.Errorf("%s: the tools are %q, and the log %s", rev, got, &logged)
		}
		res, err := s.CallTool(t.Context(), "twice", map[string]any{"n": 21})
		if err != nil || res.Text() != "42" {
			t.Errorf("%s: twice = %v, %v", rev, res, err)
		}
		if res, err := s.CallTool(t.Context(), "twice", map[string]any{"n": "x"}); err != nil || !res.IsError {
			t.Errorf("%s: twice of x = %v, %v", rev, res, err)
		}
		change("DELETE FROM tools", `INSERT INTO tools VALUES ('tables', '', '{"type":"object"}', 'SELECT name FROM sqlite_schema')`)
		if got := names(); !slices.Equal(got, []string{"tables"}) {
			t.Errorf("%s: the tools are %q after a change", rev, got)
		}
		if res, err = s.CallTool(t.Context(), "tables", nil); err != nil || res.Text() != "tools" {
			t.Errorf("%s: tables = %v, %v", rev, res, err)
		}
	}
}
