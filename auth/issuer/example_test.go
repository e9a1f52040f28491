package issuer_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/mcp"
)

// An MCP server whose callers log in at an identity provider that registers no clients. Hosts register
// with the issuer, which has the one client that is registered there.
func ExampleServer() {
	srv := &mcp.Server{Name: "tools", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "whoami"}, func(ctx context.Context, _ struct{}) (string, error) {
		return auth.From(ctx).Name, nil
	})
	people := &issuer.Server{
		URL:      "https://mcp.example.com",
		Resource: "https://mcp.example.com/mcp",
		Provider: issuer.Provider{Issuer: "https://accounts.google.com", ClientID: "id of the client"},
		Require:  map[string][]string{"hd": {"example.com"}}, // else everybody with an account there
	}
	if err := people.Check(); err != nil {
		log.Fatal(err)
	}
	guard := &auth.Guard{
		Verifiers: []auth.Verifier{people.Verifier()},
		Resource:  &auth.ResourceMetadata{Resource: people.Resource},
	}
	mux := http.NewServeMux()
	people.Handle(mux)
	mux.Handle("/mcp", guard.Protect(srv))

	for _, path := range []string{"/.well-known/oauth-authorization-server", "/oauth/keys", "/mcp"} {
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, httptest.NewRequest("GET", "https://mcp.example.com"+path, nil))
		fmt.Println(path, rec.Code)
	}
	fmt.Println("register there:", people.CallbackURL())
	// Output:
	// /.well-known/oauth-authorization-server 200
	// /oauth/keys 200
	// /mcp 401
	// register there: https://mcp.example.com/oauth/callback
}
