package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// All benchmarks and budgets measure a call of an echo tool, on a server and a client with
// default settings.

type echoIn struct {
	Message string `json:"message" doc:"the text to echo"`
}

// newServer returns a server with the echo tool and tools-1 others, whose schemas have
// about 1 KiB each.
func newServer(tb testing.TB, tools int) *mcp.Server {
	tb.Helper()
	s := &mcp.Server{Name: "bench", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "echo"}, func(_ context.Context, in echoIn) (string, error) { return in.Message, nil })
	form := fmt.Sprintf(`{"type":"object","properties":{"message":{"type":"string","description":%q}},"required":["message"]}`,
		strings.Repeat("x", 880))
	for i := 1; i < tools; i++ {
		t := mcp.Tool{Name: fmt.Sprintf("tool%04d", i), Description: "Echoes.", InputSchema: json.RawMessage(form)}
		if err := s.HandleTool(t, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return &mcp.ToolResult{}, nil }); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// serve serves s on conn until the test ends.
func serve(tb testing.TB, s *mcp.Server, conn jsonrpc.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(ctx, conn) }()
	tb.Cleanup(func() { cancel(); <-done })
}

// connect opens a session with s in memory. A nil c is a plain client.
func connect(tb testing.TB, s *mcp.Server, c *mcp.Client) *mcp.Session {
	tb.Helper()
	near, far := jsonrpc.Pipe()
	return connectOver(tb, s, c, near, far)
}

// connectOver is connect on a wire with these two ends.
func connectOver(tb testing.TB, s *mcp.Server, c *mcp.Client, near, far jsonrpc.Conn) *mcp.Session {
	tb.Helper()
	serve(tb, s, far)
	if c == nil {
		c = &mcp.Client{Name: "bench", Version: "1"}
	}
	session, err := c.Connect(tb.Context(), mcptest.Wire(near))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { session.Close() })
	return session
}

// echo calls the echo tool and checks the answer.
func echo(tb testing.TB, s *mcp.Session, text string) {
	r, err := s.CallTool(context.Background(), "echo", echoIn{text})
	if err != nil {
		tb.Fatal(err)
	}
	if r.Text() != text {
		tb.Fatalf("echoed %.80q", r.Text())
	}
}

// prose returns n bytes of text in which one byte of 44 has to be escaped.
func prose(n int) string {
	return strings.Repeat("the quick brown fox jumps over the lazy dog\n", n/44+1)[:n]
}

// modernFrame is a request of 2026-07-28. members are the members of its params beside
// _meta, each followed by a comma.
func modernFrame(method, members string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, method, members)
}

// legacyFrame is a request of the revisions before 2026-07-28, params included.
func legacyFrame(method, params string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
}

// echoMembers are members for modernFrame: a call of the echo tool.
func echoMembers(text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`"name":"echo","arguments":{"message":%s},`, quoted)
}

// echoResult is the result of such a call.
func echoResult(text string) json.RawMessage {
	quoted, _ := json.Marshal(text)
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, quoted)
}

// echoParams are params for legacyFrame: a call of the echo tool.
func echoParams(text string) string { return "{" + strings.TrimSuffix(echoMembers(text), ",") + "}" }

// initialize are params for legacyFrame that open a session.
const initialize = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`

// A pipe is the client's end of a connection in memory, without a client. It is for one
// goroutine.
type pipe struct {
	tb   testing.TB
	conn jsonrpc.Conn
	buf  []byte
}

// newPipe serves s on a pipe.
func newPipe(tb testing.TB, s *mcp.Server) *pipe {
	near, far := jsonrpc.Pipe()
	serve(tb, s, far)
	tb.Cleanup(func() { near.Close() })
	return &pipe{tb: tb, conn: near}
}

func (p *pipe) send(frame []byte) {
	if err := p.conn.Write(frame); err != nil {
		p.tb.Fatal(err)
	}
}

// exchange sends a request and returns the next frame.
func (p *pipe) exchange(frame []byte) []byte {
	p.send(frame)
	return p.read()
}

// read returns the next frame, valid until it is called again.
func (p *pipe) read() []byte {
	var err error
	if p.buf, err = p.conn.Read(p.buf[:0]); err != nil {
		p.tb.Fatal(err)
	}
	return p.buf
}

// initialize opens a session of 2025-11-25.
func (p *pipe) initialize() {
	p.exchange(legacyFrame("initialize", initialize))
	p.send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

// A caller makes requests of an http.Handler without a network, and so measures the
// handler and not net/http. It is for one goroutine.
type caller struct {
	h      http.Handler
	req    *http.Request
	body   bytes.Reader
	header http.Header
	out    bytes.Buffer
	status int
}

func (c *caller) Header() http.Header         { return c.header }
func (c *caller) Write(p []byte) (int, error) { return c.out.Write(p) }
func (c *caller) WriteHeader(status int)      { c.status = status }
func (c *caller) Flush()                      {}

// Hijack exists as with HTTP/1.1: it lets the handler serve a call without a separate
// goroutine.
func (c *caller) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, http.ErrHijacked }

// served is the context of requests that an http.Server serves.
var served = context.WithValue(context.Background(), http.ServerContextKey, &http.Server{})

// newCaller returns a caller that sends header with each request, in pairs of name and
// value.
func newCaller(tb testing.TB, h http.Handler, header ...string) *caller {
	tb.Helper()
	c := &caller{h: h, header: http.Header{}}
	req, err := http.NewRequestWithContext(served, http.MethodPost, "http://127.0.0.1/mcp", io.NopCloser(&c.body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	c.req = req
	return c
}

// post sends body and returns the body of the answer, which is valid until the next post.
func (c *caller) post(body []byte) []byte {
	clear(c.header)
	c.out.Reset()
	c.status = http.StatusOK
	c.body.Reset(body)
	c.req.ContentLength = int64(len(body))
	c.h.ServeHTTP(c, c.req)
	return c.out.Bytes()
}

// modernCaller returns a caller for requests of 2026-07-28.
func modernCaller(tb testing.TB, h http.Handler, method, name string) *caller {
	header := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		header = append(header, "Mcp-Name", name)
	}
	return newCaller(tb, h, header...)
}

// sessionCaller returns a caller within a session of 2025-11-25, which it opens. accept
// is the Accept header.
func sessionCaller(tb testing.TB, h http.Handler, accept string) *caller {
	tb.Helper()
	c := newCaller(tb, h)
	c.post(legacyFrame("initialize", initialize))
	id := c.header.Get("Mcp-Session-Id")
	if c.status != http.StatusOK {
		tb.Fatalf("initialize: status %d, %s", c.status, c.out.Bytes())
	}
	c = newCaller(tb, h, "MCP-Protocol-Version", "2025-11-25", "Accept", accept)
	if id != "" { // else it is served without sessions
		c.req.Header.Set("Mcp-Session-Id", id)
	}
	c.post([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if c.status != http.StatusAccepted {
		tb.Fatalf("initialized: status %d, %s", c.status, c.out.Bytes())
	}
	return c
}
