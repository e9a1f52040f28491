package mcp_test

import (
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// BASE-2503: batches are served in 2025-03-26 alone, with one answer for all requests
// in them and none for a batch without requests (T-87).
func TestBatch(t *testing.T) {
	mcptest.LeakCheck(t)
	w := newWorkshop()
	p := rawClient(t, w.Server)
	p.initialize(mcp.V2025_03_26, `{}`)
	p.send(`[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":77,"result":{}}]`) // no answer
	p.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"no/such"},{"jsonrpc":"1.0","id":3,"method":"ping"},` +
		`{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"panic"}},` +
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"text":"ok"}}}]`)
	frame, err := p.conn.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	elements, err := jsonrpc.DecodeBatch(frame, jsonrpc.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", frame, err)
	}
	var got []string
	for _, e := range elements {
		outcome := "result"
		if e.Message.Error != nil {
			outcome = "error"
		}
		got = append(got, e.Message.ID.String()+" "+outcome)
	}
	if want := "1 result, 2 error, 3 error, 1 error, 4 error, 5 result"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
	for _, empty := range []string{`[]`, `[1]`} {
		p.send(empty)
		if frame, err := p.conn.Read(nil); err != nil || !strings.Contains(string(frame), `"code":-32600`) {
			t.Errorf("%s = %s, %v", empty, frame, err)
		}
	}
	p.send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	p.answer(9)
}
