package sqlite

import (
	"context"
	"log/slog"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Options configures a server. The zero value is an empty database in memory.
type Options struct {
	// DB is the path of the database file, which is created if it does not exist.
	// Empty or ":memory:": a database in memory that lives as long as the server.
	// Insights are in memory in either case.
	DB string

	// Demo fills a database without tables with a small library, for experiments.
	Demo bool

	// Objects has rows be objects, {"name": "Riga"}, instead of lists. The text of a
	// result of read_query is then the list of rows alone.
	Objects bool

	// Timeout bounds one query. Zero: 30 seconds; negative: no limit.
	Timeout time.Duration

	// Logger gets the errors that cannot be returned to a client. Nil discards them.
	Logger *slog.Logger
}

// server is the shared state of the handlers of one server.
type server struct {
	options  Options
	mcp      *mcp.Server
	db       *database // set by OnStart, before any handler runs
	insights insights
}

// New returns a server. The database is opened with the first request;
// [Options.Check] reports earlier if that would fail.
func New(o Options) *mcp.Server {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	s := &server{options: o}
	s.mcp = &mcp.Server{
		Name:         "sqlite",
		Title:        "SQLite",
		Version:      "0.1.0",
		Instructions: "One SQLite database. Use list_tables and describe_table before you query. Pass values as params, not inside the SQL.",
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

// reads marks read-only tools. No tool reaches beyond the database.
var reads = &mcp.ToolAnnotations{ReadOnly: new(true), OpenWorld: new(false)}

// adds marks tools that add but do not destroy.
var adds = &mcp.ToolAnnotations{Destructive: new(false), OpenWorld: new(false)}

// writes marks destructive tools.
var writes = &mcp.ToolAnnotations{Destructive: new(true), OpenWorld: new(false)}
