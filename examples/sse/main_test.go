package main

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Clients of each revision count at both addresses, and see the progress.
func TestBothAddresses(t *testing.T) {
	web := httptest.NewServer(newHandler())
	defer web.Close()
	for path, revisions := range map[string][]mcp.Revision{
		"/sse": {mcp.V2024_11_05, mcp.V2025_03_26, mcp.V2025_06_18, mcp.V2025_11_25}, // those with initialize
		"/mcp": mcp.Revisions(),
	} {
		for _, rev := range revisions {
			s, err := (&mcp.Client{Revisions: []mcp.Revision{rev}}).Dial(t.Context(), web.URL+path)
			if err != nil {
				t.Fatalf("%s, %s: %v", path, rev, err)
			}
			var seen []float64
			got, err := mcp.CallAs[string](t.Context(), s, "count", Count{To: 3}, mcp.OnProgress(func(done, _ float64, _ string) { seen = append(seen, done) }))
			if err != nil || got != "counted to 3" || !slices.Equal(seen, []float64{1, 2, 3}) {
				t.Errorf("%s, %s: %q, %v, progress %v", path, rev, got, err, seen)
			}
			s.Close()
		}
	}
}

// The first event of a stream names the address for messages, as docs/cookbook/sse.md shows it.
func TestFirstEvent(t *testing.T) {
	web := httptest.NewServer(newHandler())
	defer web.Close()
	res, err := http.Get(web.URL + "/sse")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	var first []string
	for lines.Scan() && lines.Text() != "" {
		first = append(first, lines.Text())
	}
	if len(first) != 2 || first[0] != "event: endpoint" || !strings.HasPrefix(first[1], "data: messages?sessionId=") || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%s: %q, %v", res.Header.Get("Content-Type"), first, lines.Err())
	}
}
