package shop

import (
	"context"
	"errors"
	"log/slog"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Options configure a server. The zero value is a new shop in memory.
type Options struct {
	// DB is the path of the database file, which is made and filled if it does not
	// exist. Empty: a database in memory that lives as long as the server.
	DB string

	// Logger gets what the server cannot return to anybody. Nil: it is discarded.
	Logger *slog.Logger
}

// server is what the handlers of one server share.
type server struct {
	mcp *mcp.Server
	db  *database // set by OnStart, before any handler runs
}

// New makes a server. The database is opened with the first request; [Options.Check]
// tells earlier what would keep it from that.
func New(o Options) *mcp.Server {
	s := &server{}
	s.mcp = &mcp.Server{
		Name:         "shop",
		Title:        "Shop",
		Version:      "0.1.0",
		Instructions: "A small outdoor shop. Look with products, categories and get-customers for the ids that other tools take. Fill a cart with add-to-cart, then place-order.",
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

// reads marks tools that change nothing. Nothing here reaches beyond the database.
var reads = &mcp.ToolAnnotations{ReadOnly: new(true), OpenWorld: new(false)}

// adds marks tools that add something and take nothing away.
var adds = &mcp.ToolAnnotations{Destructive: new(false), OpenWorld: new(false)}

// none is the arguments of what takes none.
type none struct{}
