// Command auth-several accepts keys of programs, passwords of people and access tokens, in
// this order, and requires a scope for writing.
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
	mcp.AddTool(srv, mcp.Tool{Name: "write"}, func(ctx context.Context, _ struct{}) (string, error) {
		if err := auth.RequireScopes(ctx, "write"); err != nil {
			return "", err // over HTTP 403, and the client can log in for the scope
		}
		return "written by " + auth.From(ctx).ID, nil
	})
	guard := &auth.Guard{
		Verifiers: []auth.Verifier{
			&auth.APIKeys{File: "keys.jsonl"}, &auth.Basic{File: "users"}, &auth.JWT{Issuer: "https://login.example.com"},
		},
		Resource: &auth.ResourceMetadata{Resource: "https://mcp.example.com/mcp"},
		Implied:  map[string][]string{"admin": {"write"}},
	}
	return guard.Protect(srv)
}

func main() { log.Fatal(http.ListenAndServe("127.0.0.1:7420", handler())) }
