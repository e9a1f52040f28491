package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Raw JSON of a handler may have line breaks between its tokens. None of them may reach an event
// stream, where they would end the event.
func TestRawJSONStaysInOneLine(t *testing.T) {
	raw := json.RawMessage("{\n\"type\":\r\n\"object\",\n\"properties\":{}\n}")
	s := &mcp.Server{Name: "s", Version: "1", HTTP: mcp.HTTPConfig{Stateless: true}}
	results := map[string]*mcp.ToolResult{
		"structured": {Structured: raw},
		"meta":       {Meta: mcp.Meta{"x": raw}},
		"block":      {Content: []mcp.Content{mcp.TextContent{Text: "a\nb", Meta: mcp.Meta{"x": raw}}}},
		"foreign":    {Content: []mcp.Content{mcp.RawContent("{\"type\":\n\"odd\"}")}},
		"text":       {Content: []mcp.Content{mcp.Text(strings.Repeat("line\n", 1000))}},
	}
	for name, res := range results {
		err := s.HandleTool(mcp.Tool{Name: name, InputSchema: raw}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return res, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	h := httptest.NewServer(s)
	defer h.Close()
	ask := func(body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Mcp-Protocol-Version": {"2025-11-25"}}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data := 0
		lines := bufio.NewReader(res.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				break
			}
			line = strings.TrimSuffix(line, "\n")
			switch value, ok := strings.CutPrefix(line, "data: "); {
			case ok:
				data++
				if !json.Valid([]byte(value)) || !strings.Contains(value, `"result"`) {
					t.Errorf("%s: data %.200q", body, value)
				}
			case line != "" && line != "event: message":
				t.Errorf("%s: line %.200q", body, line)
			}
		}
		if data != 1 {
			t.Errorf("%s: %d lines of data", body, data)
		}
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	for name := range results {
		ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `"}}`)
	}
}
