package auth_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A server whose callers have API keys. The keys are in memory here; a server reads them from a
// file that "patchbay token key" writes.
func ExampleGuard() {
	srv := &mcp.Server{Name: "guarded", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "whoami"}, func(ctx context.Context, _ struct{}) (string, error) {
		return "you are " + auth.From(ctx).ID, nil
	})
	key, entry := auth.NewAPIKey("alice")
	guard := &auth.Guard{Verifiers: []auth.Verifier{&auth.APIKeys{Keys: []auth.APIKey{entry}}}}
	if err := guard.Check(); err != nil {
		log.Fatal(err)
	}
	web := httptest.NewServer(guard.Protect(srv))
	defer web.Close()

	for _, token := range []string{key, strings.ToLower(key)} {
		client := &mcp.Client{Name: "example", Header: http.Header{"Authorization": {"Bearer " + token}}}
		session, err := client.Dial(context.Background(), web.URL)
		if err != nil {
			fmt.Println("refused")
			continue
		}
		res, err := session.CallTool(context.Background(), "whoami", nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Text())
		session.Close()
	}
	// Output:
	// you are apikey#alice
	// refused
}
