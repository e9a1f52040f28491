// Command oauth is both sides of a login without a user: a server that admits access tokens of an
// issuer, and a program that gets one for itself (the grant client_credentials of OAuth 2.1).
//
//	oauth serve https://login.example.com
//	OAUTH_SECRET=… oauth call https://login.example.com http://127.0.0.1:7420/mcp
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/mcp"
)

// protect serves the server at url to callers with a token of the issuer for that url.
func protect(srv *mcp.Server, url, issuer string) (http.Handler, error) {
	guard := &auth.Guard{
		Verifiers: []auth.Verifier{&auth.JWT{Issuer: issuer}}, // with the keys that the issuer publishes
		Resource:  &auth.ResourceMetadata{Resource: url, AuthorizationServers: []string{issuer}},
	}
	return guard.Protect(srv), guard.Check()
}

func whoami(ctx context.Context, _ struct{}) (string, error) { return auth.From(ctx).Subject, nil }

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "guarded", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "whoami"}, whoami)
	return srv
}

// newClient returns a client that logs in at the issuer, and nowhere else, when the server wants it.
func newClient(url, issuer, id, secret string) *mcp.Client {
	return &mcp.Client{Name: "robot", Version: "1.0.0", HTTPClient: &http.Client{Transport: &login.Transport{
		Server: url,
		Grant:  &login.ClientCredentials{},
		Registered: func(_ context.Context, _, named string) (*login.Credentials, error) {
			if named != issuer {
				return nil, fmt.Errorf("the server names the issuer %q: it does not get the secret", named)
			}
			return &login.Credentials{ID: id, Secret: secret}, nil
		},
	}}}
}

func call(ctx context.Context, client *mcp.Client, url string) (string, error) {
	s, err := client.Dial(ctx, url)
	if err != nil {
		return "", err
	}
	defer s.Close()
	return mcp.CallAs[string](ctx, s, "whoami", nil)
}

func main() {
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "serve":
		handler, err := protect(newServer(), "http://127.0.0.1:7420/mcp", args[1])
		if err != nil {
			log.Fatal(err)
		}
		log.Fatal(http.ListenAndServe("127.0.0.1:7420", handler))
	case len(args) == 3 && args[0] == "call":
		client := newClient(args[2], args[1], "robot", os.Getenv("OAUTH_SECRET"))
		who, err := call(context.Background(), client, args[2])
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("logged in as", who)
	default:
		log.Fatal("usage: oauth serve ISSUER | oauth call ISSUER URL")
	}
}
