package sqlite

import (
	"context"
	"log/slog"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Options configure a server. The zero value is an empty database in memory.
type Options struct {
	// DB is the path of the database file, which is created if it does not exist.
	// Empty: a database in memory that lives as long as the server.
	DB string

	// Demo fills a database that has no tables with a few of a small library, to try things
	// with.
	Demo bool

	// Timeout bounds the run of one query. Zero: 30 seconds; negative: no bound.
	Timeout time.Duration

	// Logger gets what the server cannot return to anybody. Nil: it is discarded.
	Logger *slog.Logger
}

// server is what the handlers of one server share.
type server struct {
	options  Options
	mcp      *mcp.Server
	db       *database // set by OnStart, before any handler runs
	insights insights
}

// New makes a server. The database is opened with the first request; [Options.Check]
// tells earlier what would keep it from that.
func New(o Options) *mcp.Server {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	s := &server{options: o}
	s.mcp = &mcp.Server{
		Name:         "sqlite",
		Title:        "SQLite",
		Version:      "0.1.0",
		Instructions: "One SQLite database. Look with list_tables and describe_table before you query. Pass values as params, not inside the SQL.",
		Logger:       o.Logger,
		OnStart: func(ctx context.Context) error {
			db, err := open(ctx, o)
			if err == nil && o.Demo {
				if err = db.fill(ctx); err != nil {
					db.close()
				}
			}
			s.db = db
			return err
		},
		OnShutdown: func(context.Context) error { return s.db.close() },
	}
	s.addQueries()
	s.addTables()
	s.addInsights()
	addDemo(s.mcp)
	return s.mcp
}

// reads marks tools that change nothing. Nothing here reaches beyond the database.
var reads = &mcp.ToolAnnotations{ReadOnly: new(true), OpenWorld: new(false)}

// adds marks tools that add but do not destroy.
var adds = &mcp.ToolAnnotations{Destructive: new(false), OpenWorld: new(false)}

// writes marks tools that may destroy.
var writes = &mcp.ToolAnnotations{Destructive: new(true), OpenWorld: new(false)}
