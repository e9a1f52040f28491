// Command lifespan keeps notes in a database that opens with the first request and closes after the
// last, and logs the sessions that come and go.
//
//	patchbay call note text=milk -- go run ./examples/lifespan notes.db
package main

import (
	"context"
	"database/sql"
	"log"
	"os"

	_ "modernc.org/sqlite"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Note struct {
	Text string `json:"text"`
}

func newServer(file string) *mcp.Server {
	var db *sql.DB // set before the first handler runs
	srv := &mcp.Server{Name: "notes", Version: "1.0.0"}

	// If OnStart fails, requests get its error, and the next request tries again.
	srv.OnStart = func(ctx context.Context) (err error) {
		if db, err = sql.Open("sqlite", file); err != nil {
			return err
		}
		if _, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS notes (text TEXT NOT NULL)"); err != nil {
			db.Close()
		}
		return err
	}
	srv.OnShutdown = func(context.Context) error { return db.Close() }

	// Clients of 2026-07-28 have no sessions.
	srv.OnSession = func(session context.Context) {
		name := mcp.CallFrom(session).Client.Name
		log.Println("session of", name)
		context.AfterFunc(session, func() { log.Println("end of the session of", name) })
	}

	mcp.AddTool(srv, mcp.Tool{Name: "note", Description: "Keep a note, and count them"},
		func(ctx context.Context, in Note) (count int, err error) {
			if _, err := db.ExecContext(ctx, "INSERT INTO notes VALUES (?)", in.Text); err != nil {
				return 0, err
			}
			err = db.QueryRowContext(ctx, "SELECT count(*) FROM notes").Scan(&count)
			return count, err
		})
	return srv
}

// ServeStdio shuts the server down when its client has gone.
func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: lifespan FILE.db")
	}
	if err := newServer(os.Args[1]).ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
