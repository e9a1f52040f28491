package shop

import (
	"context"
	"errors"
	"log/slog"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Options configures a server. The zero value is a new shop in memory.
type Options struct {
	// DB is the path of the database file, which is created and filled if it does not
	// exist. Empty or ":memory:": a database in memory that lives as long as the server.
	DB string

	// Logger gets the errors that cannot be returned to a client. Nil discards them.
	Logger *slog.Logger
}

// server is the shared state of the handlers of one server.
type server struct {
	mcp *mcp.Server
	db  *database // set by OnStart, before any handler runs
}

// New returns a server. The database is opened with the first request;
// [Options.Check] reports earlier if that would fail.
func New(o Options) *mcp.Server {
	s := &server{}
	s.mcp = &mcp.Server{
		Name:         "shop",
		Title:        "Shop",
		Version:      "0.1.0",
		Instructions: "A small outdoor shop. Get the ids for other tools from products, categories and get-customers. Fill a cart with add-to-cart, then place-order.",
		Logger:       o.Logger,
		OnStart: func(ctx context.Context) error {
			db, err := open(ctx, o)
			if err != nil {
				return err
			}
			if err := s.listCategories(ctx, db); err != nil {
				return errors.Join(err, db.close())
			}
			s.db = db
			return nil
		},
		OnShutdown: func(context.Context) error { return s.db.close() },
	}
	s.addProducts()
	s.addCreation()
	s.addCustomers()
	s.addCarts()
	s.addOrders()
	s.addTrips()
	s.addFiles()
	s.addCatalog()
	return s.mcp
}

// reads marks read-only tools. No tool reaches beyond the database.
var reads = &mcp.ToolAnnotations{ReadOnly: new(true), OpenWorld: new(false)}

// adds marks tools that only add.
var adds = &mcp.ToolAnnotations{Destructive: new(false), OpenWorld: new(false)}

// none is the type of empty arguments.
type none struct{}
