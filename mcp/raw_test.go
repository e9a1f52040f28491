package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// peer is the other end of a wire, written by hand: it sends and reads frames.
type peer struct {
	t     testing.TB
	conn  jsonrpc.Conn
	notes []string // methods of notifications read while waiting for a response
}

// rawClient serves s on a pipe and returns the client's end.
func rawClient(t testing.TB, s *mcp.Server) *peer {
	t.Helper()
	near, far := jsonrpc.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(t.Context(), far) }()
	t.Cleanup(func() { near.Close(); <-done })
	return &peer{t: t, conn: near}
}

func (p *peer) sendf(format string, args ...any) {
	p.t.Helper()
	p.send(fmt.Sprintf(format, args...))
}

func (p *peer) send(frame string) {
	p.t.Helper()
	if err := p.conn.Write([]byte(frame)); err != nil {
		p.t.Fatalf("write %s: %v", frame, err)
	}
}

// read returns the next message.
func (p *peer) read() jsonrpc.Message {
	p.t.Helper()
	// A missing message fails this test instead of the whole run.
	bound := time.AfterFunc(time.Minute, func() { p.conn.Close() })
	frame, err := p.conn.Read(nil)
	bound.Stop()
	if err != nil {
		p.t.Fatalf("read: %v", err)
	}
	m, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
	if err != nil {
		p.t.Fatalf("read %s: %v", frame, err)
	}
	return m
}

// end reads until the wire ends and returns what still came.
func (p *peer) end() []string {
	p.t.Helper()
	var frames []string
	for {
		frame, err := p.conn.Read(nil)
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil {
			p.t.Fatalf("read: %v", err)
		}
		frames = append(frames, string(frame))
	}
}

// answer reads until the response with an id, an integer.
func (p *peer) answer(id int64) jsonrpc.Message {
	p.t.Helper()
	for {
		m := p.read()
		if m.Kind() == jsonrpc.KindNotification {
			p.notes = append(p.notes, m.Method)
			continue
		}
		if m.Kind() == jsonrpc.KindResponse && m.ID == jsonrpc.IntID(id) {
			return m
		}
		p.t.Fatalf("got %s, want the response to %d", show(&m), id)
	}
}

// initialize opens a legacy session with capabilities, a JSON object.
func (p *peer) initialize(rev mcp.Revision, capabilities string) jsonrpc.Message {
	p.t.Helper()
	p.sendf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"raw","version":"1"}}}`, rev, capabilities)
	m := p.answer(0)
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return m
}

// modern makes a request of 2026-07-28. More are further members of params, without
// braces: `"name":"x"`.
func modern(id int64, method, capabilities, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}%s}}`,
		id, method, capabilities, more)
}

// post sends one frame of 2026-07-28 over HTTP as somebody, and returns the answer.
func post(t testing.TB, srv *httptest.Server, who, name, frame string) jsonrpc.Message {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, strings.NewReader(frame))
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Method string }
	if err := json.Unmarshal([]byte(frame), &m); err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": m.Method, "Mcp-Name": name, "Who": who,
	} {
		req.Header.Set(k, v)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonrpc.Decode(body, jsonrpc.Limits{})
	if err != nil {
		t.Fatalf("HTTP %d %s: %v", res.StatusCode, body, err)
	}
	return out
}

func show(m *jsonrpc.Message) string { return string(jsonrpc.Append(nil, m)) }

// wantError checks the code of an error response.
func wantError(t testing.TB, m jsonrpc.Message, code int) {
	t.Helper()
	if m.Error == nil || m.Error.Code != code {
		t.Errorf("got %s, want error %d", show(&m), code)
	}
}

// unchecked opens a session in memory whose frames need not be valid.
func unchecked(t testing.TB, s *mcp.Server, c *mcp.Client) *mcp.Session {
	t.Helper()
	near, far := jsonrpc.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(t.Context(), far) }()
	session, err := c.Connect(t.Context(), mcptest.Wire(near))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close(); <-done })
	return session
}

// lineConn is a wire over standard output and what reads standard input.
func lineConn(in io.Reader) jsonrpc.Conn { return jsonrpc.NewLineConn(in, os.Stdout, nil, 0) }

// A RawResult of a function that is not a JSON object is an internal error, and never reaches a wire.
func TestRawResultIsChecked(t *testing.T) {
	for _, raw := range []string{`{`, `{"content":[{"type":"text","text":"x"}]`, `{"content":[]}x`, `[]`, `null`} {
		var faults atomic.Int32
		onPanic := func(context.Context, any, []byte) { faults.Add(1) }
		answer := func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == "tools/call" || req.Method == "example/raw" {
				return mcp.RawResult(raw), nil
			}
			return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "no %s", req.Method)
		}
		check := func(t *testing.T, s *mcp.Session, method string) {
			t.Helper()
			faults.Store(0)
			_, err := s.Raw(t.Context(), method, map[string]any{"name": "x"})
			var rpc *mcp.Error
			if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal || rpc.Message != "internal error" {
				t.Errorf("%s with result %s = %v, want an internal error", method, raw, err)
			}
		}
		newServer := func() *mcp.Server {
			return &mcp.Server{Name: "s", Handler: mcp.HandlerFunc(answer), OnPanic: onPanic}
		}
		mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{Name: "c"} }, func(t *testing.T, s *mcp.Session) {
			check(t, s, "tools/call")
			if faults.Load() != 1 {
				t.Errorf("OnPanic was called %d times, want 1", faults.Load())
			}
		})
		own := &mcp.Server{Name: "s", OnPanic: onPanic}
		own.HandleMethod("example/raw", answer)
		for _, h := range []mcp.Handler{own, mcp.HandlerFunc(answer)} {
			s, err := (&mcp.Client{Logger: slog.New(slog.DiscardHandler)}).Open(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			check(t, s, "example/raw")
			s.Close()
		}
	}
}
