// Command auth-hmac serves only callers that present a JWT signed with the secret in $SECRET. To
// make one:
//
//	patchbay token jwt alice --secret env:SECRET
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
		Verifiers: []auth.Verifier{&auth.JWT{Secret: auth.Secret(os.Getenv("SECRET"))}},
	}
	return guard.Protect(srv)
}

func main() { log.Fatal(http.ListenAndServe("127.0.0.1:7420", handler())) }
