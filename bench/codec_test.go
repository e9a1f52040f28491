package bench_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// sizes are the sizes of the text in a message. In the last one nearly every byte is
// escaped.
var sizes = []struct{ name, text string }{
	{"100B", prose(100)},
	{"10KiB", prose(10 << 10)},
	{"1MiB", prose(1 << 20)},
	{"10KiB-escapes", strings.Repeat("\"\\\n\t", 10<<8)},
}

func BenchmarkDecode(b *testing.B) {
	for _, size := range sizes {
		for _, m := range []struct {
			kind  string
			frame []byte
		}{
			{"request", modernFrame("tools/call", echoMembers(size.text))},
			{"response", jsonrpc.AppendResult(nil, jsonrpc.IntID(1), echoResult(size.text))},
		} {
			b.Run(fmt.Sprintf("message=%s/size=%s", m.kind, size.name), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(m.frame)))
				for b.Loop() {
					if _, err := jsonrpc.Decode(m.frame, jsonrpc.Limits{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range sizes {
		b.Run("message=response/size="+size.name, func(b *testing.B) {
			result := echoResult(size.text)
			buf := jsonrpc.AppendResult(nil, jsonrpc.IntID(1), result)
			b.ReportAllocs()
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				buf = jsonrpc.AppendResult(buf[:0], jsonrpc.IntID(1), result)
			}
		})
	}
	b.Run("message=request/size=100B", func(b *testing.B) {
		params := json.RawMessage(echoParams(prose(100)))
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			buf = jsonrpc.AppendRequest(buf[:0], jsonrpc.IntID(1), "tools/call", params)
		}
	})
}

// A batch of 2025-03-26.
func BenchmarkDecodeBatch(b *testing.B) {
	one := string(legacyFrame("tools/call", echoParams(prose(100))))
	batch := []byte("[" + strings.TrimSuffix(strings.Repeat(one+",", 10), ",") + "]")
	b.ReportAllocs()
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		if all, err := jsonrpc.DecodeBatch(batch, jsonrpc.Limits{}); err != nil || len(all) != 10 {
			b.Fatal(len(all), err)
		}
	}
}
