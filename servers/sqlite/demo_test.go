package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/sqlite"
)

// A database for a demonstration can be read, written and kept; one that has tables
// already is left as it is.
func TestDemo(t *testing.T) {
	ask := func(s *mcp.Session, query string) string {
		t.Helper()
		tool := "read_query"
		if !strings.HasPrefix(query, "SELECT") {
			tool = "write_query"
		}
		res, err := s.CallTool(t.Context(), tool, args{"query": query})
		if err != nil || res.IsError {
			t.Fatalf("%s: %v, %v", query, res, err)
		}
		return res.Text()
	}
	const late = "SELECT title FROM loans JOIN books ON books.id = book WHERE returned > due ORDER BY title"
	for name, file := range map[string]string{"memory": "", "file": filepath.Join(t.TempDir(), "demo.db")} {
		t.Run(name, func(t *testing.T) {
			s := connect(t, sqlite.Options{DB: file, Demo: true})
			if got, want := ask(s, late), `"rows":[["Dracula"],["The Adventures of Sherlock Holmes"]]`; !strings.Contains(got, want) {
				t.Errorf("late loans: %s, want %s", got, want)
			}
			ask(s, "DELETE FROM loans WHERE returned > due")
			if file == "" {
				return
			}
			again := mcptest.Connect(t, newServer(t, sqlite.Options{DB: file, Demo: true}), &mcp.Client{}, newest)
			if got, want := ask(again, late), `"rows":[]`; !strings.Contains(got, want) {
				t.Errorf("late loans of a file that has tables: %s, want %s", got, want)
			}
		})
	}
}
