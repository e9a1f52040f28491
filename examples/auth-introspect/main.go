// Command auth-introspect asks the issuer about each token, so that a revoked token stops
// working within 30 seconds.
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

func handler() http.Handler {
	srv := &mcp.Server{Name: "guarded", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "whoami"}, func(ctx context.Context, _ struct{}) (string, error) {
		return "you are " + auth.From(ctx).ID, nil
	})
	guard := &auth.Guard{
		Verifiers: []auth.Verifier{&auth.Introspection{
			Issuer:   "https://login.example.com",
			ClientID: "mcp-server", ClientSecret: auth.Secret(os.Getenv("CLIENT_SECRET")),
		}},
		Resource: &auth.ResourceMetadata{Resource: "https://mcp.example.com/mcp"},
	}
	return guard.Protect(srv)
}

func main() { log.Fatal(http.ListenAndServe("127.0.0.1:7420", handler())) }
