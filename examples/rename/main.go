// Command rename serves the tools of a shop twice: all of them at /mcp, and at /guests a few under
// other names, of which one has fixed arguments.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"syscall"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/endpoint"
	"github.com/patchbay-dev/patchbay/middleware"
)

type Search struct {
	Shelf string `json:"shelf" enum:"public,staff"`
	Words string `json:"words"`
}

func search(_ context.Context, in Search) (string, error) {
	return fmt.Sprintf("%s on the %s shelf", in.Words, in.Shelf), nil
}

func erase(context.Context, struct{}) (string, error) { return "all is erased", nil }

func newShop() *mcp.Server {
	srv := &mcp.Server{Name: "shop", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "search"}, search)
	mcp.AddTool(srv, mcp.Tool{Name: "erase"}, erase)
	return srv
}

// newGuests returns the shop as guests see it. A guest cannot call a hidden tool, or change a fixed argument.
func newGuests(shop mcp.Handler) *mcp.Server {
	srv := &mcp.Server{Name: "shop", Version: "1.0.0", Handler: shop}
	srv.Use(middleware.Tools(map[string]middleware.ToolChange{
		"search": {Name: "find", Description: "Find something to buy", Arguments: map[string]any{"shelf": "public"}},
		"erase":  {Hidden: true},
	}))
	return srv
}

func newEndpoint() *endpoint.HTTP {
	shop := newShop()
	others := http.NewServeMux()
	others.Handle("/guests", newGuests(shop))
	return &endpoint.HTTP{Server: shop, Handler: others}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := newEndpoint().ListenAndServe(ctx, "127.0.0.1:7420"); err != nil {
		log.Fatal(err)
	}
}
