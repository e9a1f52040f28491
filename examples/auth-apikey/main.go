// Command auth-apikey serves callers with a key from keys.jsonl. To make a key:
//
//	patchbay token key alice --file keys.jsonl
package main

import (
	"context"
	"log"
	"net/http"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

func handler() http.Handler {
	srv := &mcp.Server{Name: "guarded", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "whoami"}, func(ctx context.Context, _ struct{}) (string, error) {
		return "you are " + auth.From(ctx).ID, nil
	})
	guard := &auth.Guard{
		Verifiers: []auth.Verifier{&auth.APIKeys{File: "keys.jsonl"}},
	}
	return guard.Protect(srv)
}

func main() { log.Fatal(http.ListenAndServe("127.0.0.1:7420", handler())) }
