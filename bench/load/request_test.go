package load

import (
	"encoding/json"
	"testing"
)

// Requests are valid JSON-RPC, with the id at its recorded position.
func TestBodies(t *testing.T) {
	for _, r := range []Revision{Legacy, Modern} {
		for name, b := range map[string]*body{"open": r.open(), "call": r.call("echo", "a\n\"b\""), "list": r.list(""), "page": r.list(`c"`)} {
			putID(b.bytes[b.idAt:], 123456789)
			var m struct {
				JSONRPC string
				ID      int
				Method  string
				Params  struct {
					Cursor, Name string
					Arguments    struct{ Message string }
					Meta         map[string]any `json:"_meta"`
				}
			}
			if err := json.Unmarshal(b.bytes, &m); err != nil {
				t.Fatalf("%s, %s: %v in %s", r, name, err, b.bytes)
			}
			if m.JSONRPC != "2.0" || m.ID != 123456789 || m.Method != b.method || m.Params.Name != b.name {
				t.Errorf("%s, %s: %s", r, name, b.bytes)
			}
			if got := m.Params.Meta["io.modelcontextprotocol/protocolVersion"]; (got == "2026-07-28") != (r == Modern) {
				t.Errorf("%s, %s: version %v in _meta", r, name, got)
			}
			if got := m.Params.Arguments.Message; name == "call" && got != "a\n\"b\"" || name == "page" && m.Params.Cursor != `c"` {
				t.Errorf("%s, %s: %s", r, name, b.bytes)
			}
		}
	}
}

func TestText(t *testing.T) {
	for _, n := range []int{0, 1, 44, 100, 1 << 20} {
		if got := Text(n); len(got) != n {
			t.Errorf("Text(%d) has %d bytes", n, len(got))
		}
	}
}
