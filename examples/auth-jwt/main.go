// Command auth-jwt is a resource server of OAuth 2.1: it serves callers with an access token from
// the issuer, and names the issuer to others.
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
		Verifiers: []auth.Verifier{&auth.JWT{Issuer: "https://login.example.com"}},
		Resource:  &auth.ResourceMetadata{Resource: "https://mcp.example.com/mcp"},
		Scopes:    []string{"tools"},
	}
	return guard.Protect(srv)
}

func main() { log.Fatal(http.ListenAndServe("127.0.0.1:7420", handler())) }
