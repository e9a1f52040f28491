package bare

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAnswer(t *testing.T) {
	s := NewServer(3)
	tests := []struct{ name, request, want string }{
		{"a call", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"message":"a \"b\" \\"}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a \"b\" \\"}]}}`},
		{"a modern call", `{"id":"x","method":"tools/call","params":{"arguments":{"message":""},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
			`{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":""}],"resultType":"complete"}}`},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		{"an unknown method", `{"id": 1,"method":"no"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`},
	}
	for _, tt := range tests {
		if got := s.Answer(nil, []byte(tt.request)); string(got) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
	for _, method := range []string{"initialize", "server/discover", "tools/list", "ping"} {
		var m struct{ Result struct{ Tools []any } }
		got := s.Answer(nil, []byte(`{"id":1,"method":"`+method+`"}`))
		if err := json.Unmarshal(got, &m); err != nil || len(m.Result.Tools) != 3 && method == "tools/list" {
			t.Errorf("%s: %v in %s", method, err, got)
		}
	}
}

func TestCall(t *testing.T) {
	for _, text := range []string{"", "plain", "a \"b\"\n\\", strings.Repeat("x", 1000)} {
		call := AppendCall(nil, 1, text)
		if !json.Valid(call) {
			t.Errorf("the call %s is no JSON", call)
		}
		if got, err := Text(NewServer(1).Answer(nil, call)); got != text || err != nil {
			t.Errorf("echo of %q is %q, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", `{"text":`, `{"text":"`, `{"text":"\"`} {
		if got, err := Text([]byte(bad)); err == nil {
			t.Errorf("text of %s is %q", bad, got)
		}
	}
}
