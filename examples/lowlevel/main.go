// Command lowlevel is a server without a registry: one function answers every request, as raw JSON
// or as a result of package mcp. Transports, revisions and sessions are still those of mcp.Server.
//
//	patchbay call echo a=1 -- go run ./examples/lowlevel
package main

import (
	"context"
	"encoding/json"
	"log"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// handle gets each request in the form of 2026-07-28, whatever revision the caller speaks. The server
// itself answers initialize and server/discover: it has tools, because handle answers tools/list.
func handle(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case "tools/list":
		return mcp.RawResult(`{"tools": [{"name": "echo", "description": "Returns its arguments", "inputSchema": {"type": "object"}}]}`), nil
	case "tools/call":
		var name string
		if err := json.Unmarshal(req.Param("name"), &name); err != nil || name != "echo" {
			return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "no tool %q; the only tool is echo", name)
		}
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(string(req.Param("arguments")))}}, nil
	}
	return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "no method %q", req.Method)
}

func newServer() *mcp.Server {
	return &mcp.Server{Name: "lowlevel", Version: "1.0.0", Handler: mcp.HandlerFunc(handle)}
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
