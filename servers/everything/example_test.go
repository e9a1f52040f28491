package everything_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers/everything"
)

func Example() {
	web := httptest.NewServer(everything.New())
	defer web.Close()

	client := mcp.Client{HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	s, err := client.Dial(context.Background(), web.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(context.Background(), "echo", map[string]any{"message": "hi"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text())
	// Output: hi
}
