package streamable_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/engine"
)

// TestBatch: BASE-2503-001, SHTTP-2503-001, SHTTP-25-008.
func TestBatch(t *testing.T) {
	s := newServer(t, func(_ context.Context, c *engine.Call) (engine.Result, error) {
		c.Progress(1, 2, "")
		return engine.Result{JSON: json.RawMessage(`{"content":[]}`)}, nil
	})
	old, later := open(t, s, "2025-03-26"), open(t, s, "2025-06-18")
	const (
		ping1    = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		ping2    = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
		note     = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		response = `{"jsonrpc":"2.0","id":1,"result":{}}`
		pong1    = `{"jsonrpc":"2.0","id":1,"result":{}}`
		pong2    = `{"jsonrpc":"2.0","id":2,"result":{}}`
		loud     = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":9}}}`
	)
	for _, tt := range []struct {
		name    string
		headers []string
		body    string
		status  int
		code    int
		want    string // body, or messages of the stream
	}{
		{"requests", old, `[` + ping1 + `,` + note + `,` + ping2 + `]`, 200, 0, `[` + pong1 + `,` + pong2 + `]`},
		{"one request", old, ` [` + ping1 + `]`, 200, 0, `[` + pong1 + `]`},
		{"notifications", old, `[` + note + `,` + note + `]`, 202, 0, ``},
		{"responses", old, `[` + response + `]`, 202, 0, ``},
		{"mixed", old, `[` + ping1 + `,` + response + `]`, 400, -32600, ``},
		{"initialize", old, `[` + initialize + `]`, 400, -32600, ``},
		{"empty", old, `[]`, 400, -32600, ``},
		{"bad JSON", old, `[` + ping1, 400, -32700, ``},
		{"bad element", old, `[1,` + ping1 + `,{"jsonrpc":"2.0","id":8}]`, 200, 0,
			`[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"message is not an object"}},` + pong1 + `,{"jsonrpc":"2.0","id":8,"error":{"code":-32600,"message":"message has no method, result or error"}}]`},
		{"stream", old, `[` + ping1 + `,` + loud + `]`, 200, 0,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":1,"total":2}}` + "\n" + pong1 + "\n" + `{"jsonrpc":"2.0","id":3,"result":{"content":[]}}`},
		{"later revision", later, `[` + ping1 + `]`, 400, -32600, ``},
		{"no session", nil, `[` + initialize + `]`, 400, -32600, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(s, request(tt.body, tt.headers...))
			got := w.Body.String()
			if w.Header().Get("Content-Type") == "text/event-stream" {
				got = strings.Join(events(got), "\n")
			}
			if w.Code != tt.status || code(w.Body.Bytes()) != tt.code || tt.status == 200 && got != tt.want {
				t.Errorf("batch = %d %s, want %d with code %d: %s", w.Code, got, tt.status, tt.code, tt.want)
			}
		})
	}
}
