package fetch_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers/fetch"
)

func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<h1>Cords</h1><p>They come in <b>three</b> lengths.</p>")
	}))
	defer site.Close()

	// The site is on this machine, where nothing is fetched unless it is permitted.
	web := httptest.NewServer(fetch.New(fetch.Options{AllowPrivate: true}))
	defer web.Close()

	client := mcp.Client{HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	s, err := client.Dial(context.Background(), web.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(context.Background(), "fetch", map[string]any{"url": site.URL})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Content[1].(mcp.TextContent).Text) // the first block says where it is from
	// Output:
	// # Cords
	//
	// They come in **three** lengths.
}
