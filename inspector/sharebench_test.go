package inspector

import (
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/trace"
)

// BenchmarkShare measures what the frames of a call cost while most of the calls are left out.
func BenchmarkShare(b *testing.B) {
	var tee trace.Tee
	defer tee.Close()
	f := new(Frames)
	defer f.Follow(&tee)()
	headers := map[string][]string{}
	for _, name := range []string{"Accept", "Content-Length", "Content-Type", "Host", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "User-Agent"} {
		headers[name] = []string{"application/json, text/event-stream"}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		conn, id := fmt.Sprintf("http-%d", i), fmt.Sprint(i)
		cause := trace.Cause{Conn: conn, ID: id}
		tee.Record(trace.Frame{Dir: trace.In, Conn: conn, HTTP: &trace.HTTP{Exchange: i + 1, Method: "POST", Path: "/mcp", Headers: headers}, Msg: []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo_echo","arguments":{"text":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)})
		tee.Record(trace.Frame{Dir: trace.Out, Conn: "echo/stdio-1", For: cause, Msg: []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`)})
		tee.Record(trace.Frame{Dir: trace.In, Conn: "echo/stdio-1", For: cause, Msg: []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"hello"}]}}`)})
		tee.Record(trace.Frame{Dir: trace.Out, Conn: conn, HTTP: &trace.HTTP{Exchange: i + 1, Status: 200, Headers: headers}, Msg: []byte(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"hello"}],"resultType":"complete"}}`)})
	}
}
