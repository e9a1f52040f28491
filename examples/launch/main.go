// Command launch calls a tool of a server in mcp.json: go run ./examples/launch db list_tables
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

func call(ctx context.Context, path, server, tool string) (*mcp.ToolResult, error) {
	session, err := new(launch.Env).OpenNamed(ctx, path, server, &mcp.Client{Name: "example", Version: "1"}, os.Stderr)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return session.CallTool(ctx, tool, nil)
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: launch SERVER TOOL")
	}
	result, err := call(context.Background(), "mcp.json", os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text())
}
