package bench_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A typed call of a minimal server, so that it measures the client. Over HTTP it
// includes net/http on both sides.
func BenchmarkClient(b *testing.B) {
	text := prose(100)
	for _, wire := range []struct {
		name string
		open func(*testing.B) *mcp.Session
	}{
		{"memory", func(b *testing.B) *mcp.Session { return minimalPipe(b) }},
		{"stdio", func(b *testing.B) *mcp.Session { return minimalStdio(b) }},
		{"http", minimalHTTP},
	} {
		b.Run("wire="+wire.name+"/calls=1", func(b *testing.B) {
			s := wire.open(b)
			b.ReportAllocs()
			for b.Loop() {
				echo(b, s, text)
			}
		})
		b.Run("wire="+wire.name+"/calls=64", func(b *testing.B) { benchmarkAtOnce(b, wire.open(b), 64) })
	}
}

// A minimal server answers each call with the same text.
type minimal struct {
	result []byte
	buf    []byte
}

// answer returns the answer to a frame, nil for a notification.
func (m *minimal) answer(frame []byte) ([]byte, error) {
	msg, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
	if err != nil || msg.Kind() != jsonrpc.KindRequest {
		return nil, err
	}
	result := json.RawMessage(m.result)
	if msg.Method == "initialize" {
		result = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"minimal","version":"1"}}`)
	}
	m.buf = jsonrpc.AppendResult(m.buf[:0], msg.ID, result)
	return m.buf, nil
}

func minimalPipe(b testing.TB) *mcp.Session {
	near, far := jsonrpc.Pipe()
	return minimalOver(b, near, far)
}

func minimalStdio(b testing.TB) *mcp.Session {
	near, far := mcptest.Pipes(b)
	return minimalOver(b, near, far)
}

func minimalOver(b testing.TB, near, far jsonrpc.Conn) *mcp.Session {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer far.Close()
		m := minimal{result: echoResult(prose(100))}
		var frame []byte
		for {
			var err error
			if frame, err = far.Read(frame[:0]); err != nil {
				return
			}
			out, err := m.answer(frame)
			if err == nil && out != nil {
				err = far.Write(out)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	}()
	b.Cleanup(func() { <-done }) // after the session was closed
	s, err := speaking(mcp.V2025_11_25).Connect(b.Context(), mcptest.Wire(near))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func minimalHTTP(b *testing.B) *mcp.Session {
	result := echoResult(prose(100))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m := minimal{result: result}
		out, err := m.answer(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if out == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(out)
	})
	return dial(b, h, speaking(mcp.V2025_11_25))
}
