// Package inprocess is the port of mcp-go's examples/in_process: a client with a server of its own
// process.
package inprocess

import (
	"context"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

func NewServer() *mcp.Server {
	srv := &mcp.Server{Name: "example-server", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "dummy_tool", Description: "A dummy tool that returns foo bar"},
		func(context.Context, struct{}) (string, error) { return "foo bar", nil })
	return srv
}

func Main() {
	ctx := context.Background()
	s, err := (&mcp.Client{Name: "Example MCP Client", Version: "1.0.0"}).Open(ctx, NewServer())
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for tool, err := range s.Tools(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(*tool)
	}
	res, err := s.CallTool(ctx, "dummy_tool", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Content)
}
