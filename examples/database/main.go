// Command database serves tools that are rows of a table: a name, a description, the schema of the
// arguments, and a query with them as parameters. It follows the table while it runs, and subscribed
// clients are notified of changes:
//
//	sqlite3 tools.db "CREATE TABLE tools (name TEXT, description TEXT, schema TEXT, query TEXT)"
//	go run ./examples/database tools.db
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"log"
	"os"
	"time"

	_ "modernc.org/sqlite"

	"github.com/patchbay-dev/patchbay/mcp"
)

type row struct{ name, description, schema, query string }

// load makes the tools of srv those of the table. Old are the rows of the last load. A row that
// cannot be a tool is logged and left out.
func load(ctx context.Context, db *sql.DB, srv *mcp.Server, old map[string]row) (map[string]row, error) {
	rows, err := db.QueryContext(ctx, "SELECT name, description, schema, query FROM tools")
	if err != nil {
		return old, err
	}
	defer rows.Close()
	now := map[string]row{}
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.name, &r.description, &r.schema, &r.query); err != nil {
			return old, err
		}
		now[r.name] = r
	}
	if err := rows.Err(); err != nil {
		return old, err
	}
	for name, r := range now {
		if r == old[name] {
			continue
		}
		tool := mcp.Tool{Name: name, Description: r.description, InputSchema: json.RawMessage(r.schema)}
		if err := srv.HandleTool(tool, func(ctx context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
			return run(ctx, db, r.query, args)
		}); err != nil {
			log.Printf("the tool %q is left out: %v", name, err)
		}
	}
	for name := range old {
		if _, ok := now[name]; !ok {
			srv.Remove(mcp.Feature{Kind: mcp.KindTool, Name: name})
		}
	}
	return now, nil
}

// run returns the first column of a query, one row a line. The arguments fit the schema of the tool.
func run(ctx context.Context, db *sql.DB, query string, args json.RawMessage) (*mcp.ToolResult, error) {
	var values map[string]any
	if err := json.Unmarshal(args, &values); err != nil {
		return nil, err
	}
	var params []any
	for name, v := range values {
		params = append(params, sql.Named(name, v))
	}
	rows, err := db.QueryContext(ctx, query, params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	res := &mcp.ToolResult{}
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		res.Content = append(res.Content, mcp.Text(line))
	}
	return res, rows.Err()
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: database FILE.db")
	}
	ctx := context.Background()
	db, err := sql.Open("sqlite", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	srv := &mcp.Server{Name: "database", Version: "1.0.0"}
	tools, err := load(ctx, db, srv, nil)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for range time.Tick(time.Second) {
			if tools, err = load(ctx, db, srv, tools); err != nil {
				log.Print(err)
			}
		}
	}()
	if err := srv.ServeStdio(ctx); err != nil {
		log.Fatal(err)
	}
}
