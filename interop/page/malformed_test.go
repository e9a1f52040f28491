package page

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// malformed are the results of a server, by methods, that does not keep to the schema. A description looks like a table
// for very long.
var malformed = map[string]string{
	"initialize": `{"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}, "resources": {}}, "serverInfo": {"name": "malformed", "version": "1"}}`,
	"tools/list": `{"tools": [{"name": 5, "inputSchema": {"type": "object"}}, null, "x", {"name": "twice", "inputSchema": {"type": "object"}}, {"name": "twice"}, {"name": ""},
		{"name": "odd", "title": {}, "description": "|\n` + strings.Repeat(" ", 190_000) + `-x", "annotations": "x", "_meta": {"ui": 5}, "inputSchema": {"type": "object", "properties": null}}]}`,
	"tools/call":               `{"content": [null, "x", {"type": "text"}, {"type": "image"}, {"type": "resource"}, {"type": "resource_link"}], "structuredContent": [1]}`,
	"prompts/list":             `{"prompts": [{"name": "odd", "title": 5, "arguments": [null, {"name": 5}, {"name": "a", "title": {}, "description": [1]}]}, {"name": {}}]}`,
	"prompts/get":              `{"messages": [null, {"role": 5, "content": null}]}`,
	"resources/list":           `{"resources": [{"uri": 5}, {"uri": "x:odd", "name": 7, "size": "x", "mimeType": {}}]}`,
	"resources/read":           `{"contents": [null, {"uri": 5, "text": 5}, {"uri": "x:odd", "text": "all the same"}]}`,
	"resources/templates/list": `{"resourceTemplates": [{"uriTemplate": 5}, {"uriTemplate": "x:{a}"}]}`,
}

// A server that does not keep to the schema can be looked at: the page shows what it can, and says what it left out.
func TestMalformedServer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m) // other than JSON: no method
		w.Header().Set("Content-Type", "application/json")
		switch result, is := malformed[m.Method]; {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case is:
			_, _ = w.Write([]byte(`{"jsonrpc": "2.0", "id": ` + string(m.ID) + `, "result": ` + result + `}`))
		default:
			_, _ = w.Write([]byte(`{"jsonrpc": "2.0", "id": ` + string(m.ID) + `, "error": {"code": -32601, "message": "no"}}`))
		}
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	p, origin := opened(t, "inspect", "--no-open", srv.URL)
	home := browser.Eval[string](p, `location.pathname`)
	for _, tt := range []struct{ path, lists, leftOut, first, press, reads string }{
		{"/tools", "2 tools", "Not shown: 5 items with a missing or repeated name.", "odd", "Call anyway", "on the wire"},
		{"/prompts", "1 prompt", "Not shown: 1 item with", "odd", "Get", "on the wire"},
		{"/resources", "1 resource", "Not shown: 1 item with", "x:odd", "Read", "all the same"},
		{"/templates", "1 template", "Not shown: 1 item with", "x:{a}", "Read", "all the same"},
	} {
		p.GoTo(origin + home + tt.path)
		p.Reads(tt.lists)
		p.Reads(tt.leftOut)
		focused(p, "Find "+tt.path[1:])
		p.Keys(tt.first)
		p.Keys(kb.Enter)
		p.Until(`!!document.querySelector("section.call button.main:enabled")`)
		p.Press("button", tt.press)
		p.Reads(tt.reads)
	}
}
