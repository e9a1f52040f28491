package load

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

func TestResponse(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	tests := []struct {
		name, wire, want string
		err              bool
	}{
		{"length", ok + "Content-Type: application/json\r\ncontent-length: 2\r\n\r\n{}", "{}", false},
		{"chunks", ok + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", "{}", false},
		{"an event", ok + "Content-Type: text/event-stream\r\nContent-Length: 28\r\n\r\nevent: message\ndata: {\"a\"}\n\n", `{"a"}`, false},
		{"the last event", ok + "Content-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"d\r\nid: 1\ndata: \n\r\na\r\n\ndata: {}\n\r\n1\r\n\n\r\n0\r\n\r\n", "{}", false},
		{"data first", ok + "Content-Type: text/event-stream\r\nContent-Length: 10\r\n\r\ndata: {}\n\n", "{}", false},
		{"another status", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "", true},
		{"an empty stream", ok + "Content-Type: text/event-stream\r\nContent-Length: 4\r\n\r\n: x\n", "", true},
		{"half an event", ok + "Content-Type: text/event-stream\r\nContent-Length: 7\r\n\r\ndata: {", "", true},
		{"closed", ok + "Connection: close\r\nContent-Length: 2\r\n\r\n{}", "", true},
		{"cut off", ok + "Content-Length: 5\r\n\r\n{}", "", true},
		{"a long body", ok + "Content-Length: 999999999\r\n\r\n", "", true},
		{"a negative length", ok + "Content-Length: -1\r\n\r\n", "", true},
		{"a long chunk", ok + "Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n", "", true},
		{"a chunk without its end", ok + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", "", true},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\n", "", true},
		{"no HTTP", "hello\r\n", "", true},
		{"nothing", "", "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r response
			in := bufio.NewReader(strings.NewReader(tt.wire))
			err := r.readHead(in)
			if err == nil {
				err = r.readBody(in)
			}
			var got []byte
			if err == nil {
				got, err = r.message()
			}
			if (err != nil) != tt.err || string(got) != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
			if rest, _ := io.ReadAll(in); !tt.err && len(rest) > 0 {
				t.Errorf("left %q", rest)
			}
		})
	}
}

func TestResponseSession(t *testing.T) {
	var r response
	for _, want := range []string{"abc", ""} {
		head := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
		if want != "" {
			head += "Mcp-Session-Id: " + want + "\r\n"
		}
		if err := r.readHead(bufio.NewReader(strings.NewReader(head + "\r\n"))); err != nil || r.session != want {
			t.Errorf("session %q, %v, want %q", r.session, err, want)
		}
	}
}

// A stream may end with its connection: servers that end say so in its head.
func TestStreamThatCloses(t *testing.T) {
	var r response
	in := bufio.NewReader(strings.NewReader("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"))
	if err := r.readHead(in); err != nil || r.status != 200 || !r.sse {
		t.Errorf("status %d, a stream: %v, %v", r.status, r.sse, err)
	}
}

// Reading any broken answer ends within the limits.
func FuzzResponse(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
	f.Add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n")
	f.Add("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 10\r\n\r\ndata: {}\n\n")
	f.Fuzz(func(t *testing.T, wire string) {
		var r response
		in := bufio.NewReader(strings.NewReader(wire))
		if r.readHead(in) != nil || r.readBody(in) != nil {
			return
		}
		if len(r.body) > len(wire) {
			t.Errorf("%d bytes of body in %d", len(r.body), len(wire))
		}
		if m, err := r.message(); err == nil && !strings.Contains(string(r.body), string(m)) {
			t.Errorf("message %q is not in %q", m, r.body)
		}
	})
}
