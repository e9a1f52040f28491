package jsonrpc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// BASE-26-002, BASE-26-012, BASE-26-013, BASE-26-024, STDIO-26-001.
func TestAppend(t *testing.T) {
	one := jsonrpc.IntID(1)
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, tt := range []struct {
		name, want string
		m          jsonrpc.Message
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}`, jsonrpc.Message{ID: one, Method: "m", Params: raw(`{"a":1}`)}},
		{"no params", `{"jsonrpc":"2.0","id":"\"","method":"m"}`, jsonrpc.Message{ID: jsonrpc.StringID(`"`), Method: "m"}},
		{"notification", `{"jsonrpc":"2.0","method":"m\n","params":[]}`, jsonrpc.Message{Method: "m\n", Params: raw(`[]`)}},
		{"result", `{"jsonrpc":"2.0","id":1,"result":{"a":  "\n"}}`, jsonrpc.Message{ID: one, Result: raw("{\"a\":\r\n  \"\\n\"\n}")}},
		{"no result", `{"jsonrpc":"2.0","id":1,"result":{}}`, jsonrpc.Message{ID: one}},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"a\"` + "\uFFFD" + `","data":[1,2]}}`,
			jsonrpc.Message{ID: one, Error: &jsonrpc.Error{Code: -32601, Message: "a\"\xff", Data: raw("[1,\n2]")}}},
		{"error without id", `{"jsonrpc":"2.0","id":null,"error":{"code":0,"message":""}}`, jsonrpc.Message{Error: &jsonrpc.Error{}}},
	} {
		if got := string(jsonrpc.Append([]byte("x"), &tt.m)); got != "x"+tt.want {
			t.Errorf("%s: Append = %s, want %s", tt.name, got, "x"+tt.want)
		}
	}
	got := string(jsonrpc.AppendErrorWithoutID(nil, &jsonrpc.Error{Code: jsonrpc.CodeParse, Message: "x"}))
	if want := `{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`; got != want {
		t.Errorf("AppendErrorWithoutID = %s, want %s", got, want)
	}
}

func BenchmarkAppendResult(b *testing.B) {
	for _, size := range []int{200, 64 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			result := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}`)
			b.SetBytes(int64(len(result)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = jsonrpc.AppendResult(dst[:0], jsonrpc.IntID(42), result)
			}
		})
	}
}
