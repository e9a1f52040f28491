package login_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A program that logs in with a browser. This one prints the page and goes no further.
func ExampleTransport() {
	back, err := login.NewLoopback(func(_ context.Context, page string) error {
		fmt.Println("open this page:", page)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	defer back.Close()
	tr := &login.Transport{
		Server:      "https://mcp.example.com/mcp",
		RedirectURL: back.RedirectURL(),
		Visit:       back.Visit,
		Registered: func(_ context.Context, _, issuer string) (*login.Credentials, error) {
			if issuer == "https://login.example.com" { // the secret is for nobody else
				return &login.Credentials{ID: "my-program", Secret: "…"}, nil
			}
			return nil, nil
		},
	}
	client := &mcp.Client{Name: "my-program", HTTPClient: &http.Client{Transport: tr}}
	fmt.Println(client.Name, "is ready to dial", tr.Server)
	// Output: my-program is ready to dial https://mcp.example.com/mcp
}
