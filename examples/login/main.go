// Command login lists the tools of a server that requires a login. The first run opens the browser;
// later runs use the tokens in the vault, and refresh them.
//
//	go run ./examples/login https://mcp.example.com/mcp
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/mcp"
)

// tools returns the tools of the server at url. The function browse brings the user to a page.
func tools(ctx context.Context, url string, v *vault.Vault, browse func(context.Context, string) error) (names []string, err error) {
	back, err := login.NewLoopback(browse) // the browser comes back to it
	if err != nil {
		return nil, err
	}
	defer back.Close()
	client := &mcp.Client{
		Name: "lister", Version: "1.0.0",
		HTTPClient: &http.Client{Transport: &login.Transport{
			Server: url, RedirectURL: back.RedirectURL(), Visit: back.Visit, Store: v, ClientName: "lister",
		}},
		Limits: mcp.Limits{CallTimeout: 10 * time.Minute}, // the user needs time to log in
	}
	s, err := client.Dial(ctx, url)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for tool, err := range s.Tools(ctx) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: login URL")
	}
	v, err := vault.Open("", nil) // in the user's configuration folder, encrypted
	if err != nil {
		log.Fatal(err)
	}
	names, err := tools(context.Background(), os.Args[1], v, login.OpenBrowser)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(names)
}
