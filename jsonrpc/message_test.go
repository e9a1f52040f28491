package jsonrpc_test

import (
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

const toolsCall = `{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"get_weather","arguments":{"city":"Reykjavík","units":"metric","days":3,"hourly":false},"_meta":{"progressToken":"abc123","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`

func TestParam(t *testing.T) {
	m, err := jsonrpc.Decode([]byte(toolsCall), jsonrpc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := m.Param("name"); !ok || string(got) != `"get_weather"` {
		t.Errorf("Param(name) = %s, %v", got, ok)
	}
	if got, ok := m.ParamIn("_meta", "progressToken"); !ok || string(got) != `"abc123"` {
		t.Errorf("ParamIn(_meta, progressToken) = %s, %v", got, ok)
	}
}

func BenchmarkDecode(b *testing.B) {
	in := []byte(toolsCall)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsonrpc.Decode(in, jsonrpc.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
