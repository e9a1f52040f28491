package conjugate_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers/conjugate"
)

func Example() {
	web := httptest.NewServer(conjugate.New(conjugate.Options{}))
	defer web.Close()

	client := mcp.Client{HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	s, err := client.Dial(context.Background(), web.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(context.Background(), "conjugate", map[string]any{"verb": "write", "tense": "present_perfect", "person": "third"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text())
	// Output: {"verb":"write","tense":"present_perfect","person":"third","singular":"he/she/it has written","plural":"they have written"}
}
