package bench_test

import (
	"bytes"
	"strings"
	"testing"
)

const both = "application/json, text/event-stream"

// The server's work for a request over HTTP, in each mode, without that of net/http.
func BenchmarkHTTP(b *testing.B) {
	text := prose(100)
	legacy := legacyFrame("tools/call", echoParams(text))
	modes := []struct {
		name  string
		setUp func(b *testing.B) (*caller, []byte)
	}{
		{"modern-json", func(b *testing.B) (*caller, []byte) {
			return modernCaller(b, newServer(b, 1), "tools/call", "echo"), modernFrame("tools/call", echoMembers(text))
		}},
		// An answer is a stream if a message comes before its end.
		{"modern-sse", func(b *testing.B) (*caller, []byte) {
			frame := modernFrame("tools/call", `"name":"steps","arguments":{"steps":1},`)
			return modernCaller(b, progressServer(), "tools/call", "steps"),
				bytes.Replace(frame, []byte(`"_meta":{`), []byte(`"_meta":{"progressToken":1,`), 1)
		}},
		{"session-json", func(b *testing.B) (*caller, []byte) { return sessionCaller(b, newServer(b, 1), both), legacy }},
		{"session-sse", func(b *testing.B) (*caller, []byte) {
			return sessionCaller(b, newServer(b, 1), "text/event-stream"), legacy
		}},
		{"no-session", func(b *testing.B) (*caller, []byte) {
			s := newServer(b, 1)
			s.HTTP.Stateless = true
			return sessionCaller(b, s, both), legacy
		}},
	}
	for _, mode := range modes {
		b.Run("mode="+mode.name, func(b *testing.B) {
			c, frame := mode.setUp(b)
			sse := strings.HasSuffix(mode.name, "sse")
			b.ReportAllocs()
			for b.Loop() {
				out := c.post(frame)
				if c.status != 200 || bytes.Contains(out, []byte("data: ")) != sse || !bytes.Contains(out, []byte(`"result"`)) {
					b.Fatalf("status %d, %.300q", c.status, out)
				}
			}
		})
	}
}
