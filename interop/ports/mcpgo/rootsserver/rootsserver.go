// Package rootsserver is the port of mcp-go's examples/roots_server: a tool that lists the roots of the
// client.
package rootsserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/structured"
)

type Found struct {
	Roots []mcp.Root `json:"roots"`
}

// roots accepts any argument.
func roots(ctx context.Context, _ struct {
	More map[string]json.RawMessage `json:",embed"`
}) (structured.Result[Found], error) {
	list, err := mcp.Roots(ctx)
	text := fmt.Sprintf("Root list: %v", list)
	return structured.Result[Found]{Value: Found{list}, Content: []mcp.Content{mcp.Text(text)}}, err
}

// noticed logs that the roots have changed. A server whose Handler is set gets to know that.
func noticed(next mcp.Handler) mcp.HandlerFunc {
	return func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == "notifications/roots/list_changed" {
			log.Println("notification received:", req.Method)
		}
		return next.Handle(ctx, req)
	}
}

func Main() {
	tools := &mcp.Server{Name: "roots-stdio-server", Version: "1.0.0"}
	mcp.AddTool(tools, mcp.Tool{Name: "roots", Description: "Requests and returns the current list of roots from the connected client"}, roots)
	srv := &mcp.Server{Name: tools.Name, Version: tools.Version, Handler: noticed(tools)}
	if err := srv.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
