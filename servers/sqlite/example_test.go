package sqlite_test

import (
	"context"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/sqlite"
)

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	srv := sqlite.New(sqlite.Options{}) // a database in memory; Options.DB names a file
	near, far := jsonrpc.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		srv.Serve(ctx, far)
	}()
	defer func() {
		cancel()
		<-served
		srv.Shutdown(context.Background())
	}()

	var client mcp.Client
	s, err := client.Connect(ctx, mcptest.Wire(near))
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(ctx, "read_query", map[string]any{
		"query": "SELECT ?, upper(?), x'0001', NULL", "params": []any{9007199254740993, "hi"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text())

	res, err = s.CallTool(ctx, "read_query", map[string]any{"query": "CREATE TABLE t(x)"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.IsError, res.Text())
	// Output:
	// {"columns":["?","upper(?)","x'0001'","NULL"],"rows":[[{"integer":"9007199254740993"},"HI",{"blob":"AAE="},null]],"row_count":1,"truncated":false}
	// true read_query cannot change the database; use write_query
}
