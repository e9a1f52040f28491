package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A client of the SDK counts with and without progress, and finds no fault in the frames.
func TestCount(t *testing.T) {
	web := httptest.NewServer(newHandler())
	defer web.Close()
	client := &mcp.Client{Name: "test", Version: "1", OnFrame: mcptest.Check(t, mcp.V2026_07_28, true, nil)}
	s, err := client.Dial(t.Context(), web.URL+"/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for tool, err := range s.Tools(t.Context()) {
		if err != nil || tool.Name != "count" {
			t.Errorf("%+v, %v", tool, err)
		}
	}
	for _, progress := range []bool{false, true} {
		var options []mcp.CallOption
		var seen []float64
		if progress {
			options = append(options, mcp.OnProgress(func(done, _ float64, _ string) { seen = append(seen, done) }))
		}
		got, err := mcp.CallAs[string](t.Context(), s, "count", map[string]int{"to": 2}, options...)
		if err != nil || got != "counted to 2" || progress != slices.Equal(seen, []float64{1, 2}) {
			t.Errorf("%q, %v, progress %v", got, err, seen)
		}
	}
}

// Requests that break a rule of the transport get its status and code.
func TestRefusals(t *testing.T) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	for _, tt := range []struct {
		method, headers, body string
		status                int
		want                  string
	}{
		{"GET", "", "", 405, ""},
		{"POST", "Origin: https://evil.example", "{}", 403, ""},
		{"POST", "", "{", 400, "-32700"},
		{"POST", "", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, 202, ""},
		{"POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, 400, "-32022"},
		{"POST", "Mcp-Method: tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`, 400, "-32020"},
		{"POST", "Mcp-Method: foo/bar", `{"jsonrpc":"2.0","id":1,"method":"foo/bar","params":{` + meta + `}}`, 404, "-32601"},
	} {
		r := httptest.NewRequest(tt.method, "/mcp", strings.NewReader(tt.body))
		r.Header.Set("MCP-Protocol-Version", revision)
		if name, value, ok := strings.Cut(tt.headers, ": "); ok {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		newHandler().ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) || tt.status == 202 && w.Body.Len() > 0 {
			t.Errorf("%s %s %s: %d %s, want %d %s", tt.method, tt.headers, tt.body, w.Code, w.Body, tt.status, tt.want)
		}
	}
}

// The exchange in docs/cookbook/http-by-hand.md is what the server says.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/cookbook/http-by-hand.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```text\n(.*?)```").FindAllStringSubmatch(strings.ReplaceAll(string(page), "\r\n", "\n"), -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks of text", len(blocks))
	}
	head, body, _ := strings.Cut(blocks[0][1], "\n\n")
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
	for _, line := range strings.Split(head, "\n")[1:] {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	newHandler().ServeHTTP(w, r)
	_, want, _ := strings.Cut(blocks[1][1], "\n\n")
	if got := w.Body.String(); got != want+"\n" || w.Code != http.StatusOK || !w.Flushed {
		t.Errorf("%d\n%s\nwant\n%s", w.Code, got, want)
	}
}
