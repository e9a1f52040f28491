package mcp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// The error of an address that is not a server is one line: its status once, the beginning of a text, and nothing of a web page.
func TestHTTPErrorIsALine(t *testing.T) {
	answers := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	const page = "<!doctype html>\n<html><head><title>502 Bad Gateway</title></head>\n<body><h1>502 Bad Gateway</h1></body></html>"
	nowhere := ": the server answers neither server/discover nor initialize, and has no event stream of 2024-11-05"
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string // after the address
	}{
		{"not found", http.NotFound, "HTTP 404 Not Found" + nowhere + "; is this the MCP endpoint?"},
		{"another answer to GET", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				http.Error(w, "use POST", http.StatusMethodNotAllowed)
				return
			}
			http.NotFound(w, r)
		}, "HTTP 404 Not Found" + nowhere + ` (HTTP 405 Method Not Allowed: "use POST"); is this the MCP endpoint?`},
		{"page", answers(502, "text/html; charset=utf-8", page), "HTTP 502 Bad Gateway (a web page)"},
		{"page of an unknown type", answers(502, "", page), "HTTP 502 Bad Gateway (a web page)"},
		{"words of the status", answers(401, "text/plain", "Unauthorized\n"), "HTTP 401 Unauthorized"},
		{"text", answers(401, "text/plain", "who are you?\n\nsay so\n"), `HTTP 401 Unauthorized: "who are you? say so"`},
		{"long text", answers(401, "text/plain", strings.Repeat("x", 500)), `HTTP 401 Unauthorized: "` + strings.Repeat("x", 200) + `…"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(tt.handler)
			defer srv.Close()
			_, err := (&mcp.Client{}).Dial(t.Context(), srv.URL)
			var status *mcp.HTTPError
			if want := "dial " + srv.URL + ": " + tt.want; err == nil || err.Error() != want || !errors.As(err, &status) {
				t.Errorf("Dial = %v\nwant   %s", err, want)
			}
		})
	}
}
