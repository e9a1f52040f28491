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

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: launch SERVER TOOL")
	}
	ctx := context.Background()
	session, err := new(launch.Env).OpenNamed(ctx, "mcp.json", os.Args[1], &mcp.Client{Name: "example", Version: "1"}, os.Stderr)
	if err != nil {
		log.Fatal(err)
	}
	result, err := session.CallTool(ctx, os.Args[2], nil)
	session.Close()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text())
}
