package streamable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/eventmemory"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// newServer makes a server of all revisions with this handler behind it; server/discover and
// methods outside of "tools/" are answered without it.
func newServer(t testing.TB, tools engine.Handler) *streamable.Server {
	t.Helper()
	return newServerOf(t, revision.All, tools)
}

func newServerOf(t testing.TB, revisions []*revision.Table, tools engine.Handler) *streamable.Server {
	t.Helper()
	e := &engine.Engine{
		Revisions: revisions,
		Info:      json.RawMessage(`{"name":"test","version":"1"}`),
		Sealer:    engine.NewSealer("test", nil, 0, nil),
		Limits:    engine.Limits{Rounds: 5},
		Logger:    slog.New(slog.DiscardHandler),
		Handler: func(ctx context.Context, c *engine.Call) (engine.Result, error) {
			switch {
			case c.Method == revision.MethodDiscover:
				return engine.Result{JSON: json.RawMessage(`{"capabilities":{"tools":{"listChanged":true}}}`)}, nil
			case strings.HasPrefix(c.Method, "tools/"), strings.HasPrefix(c.Method, "prompts/"), strings.HasPrefix(c.Method, "resources/"), c.Method == revision.MethodListen:
				if tools != nil {
					return tools(ctx, c)
				}
				return engine.Result{JSON: json.RawMessage(`{"content":[]}`)}, nil
			}
			return engine.Result{}, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no such method"}
		},
	}
	e.Init()
	return &streamable.Server{
		Events: new(eventmemory.Store), Retry: time.Second,
		Engine: e, MaxBody: 1 << 20, MaxDepth: 128, KeepAlive: 15 * time.Second,
		SessionIdle: 30 * time.Minute, MaxSessions: 100, Logger: e.Logger,
	}
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

const modernCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{},` + meta + `}}`

// request is a POST as a conforming client makes it. Headers come in pairs; an
// empty value removes one.
func request(body string, headers ...string) *http.Request {
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	set(r.Header, headers)
	return r
}

func set(h http.Header, pairs []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			h.Del(pairs[i])
		} else {
			h.Set(pairs[i], pairs[i+1])
		}
	}
}

// modern are the headers that go with modernCall.
func modern(more ...string) []string {
	return append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo"}, more...)
}

func serve(s http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// code returns the code of a JSON-RPC error, 0 for anything else.
func code(body []byte) int {
	var m struct {
		Error *jsonrpc.Error `json:"error"`
	}
	if jsonx.Unmarshal(body, &m) != nil || m.Error == nil {
		return 0
	}
	return m.Error.Code
}

func TestModernAnswer(t *testing.T) {
	s := newServer(t, nil)
	w := serve(s, request(modernCall, modern()...))
	want := `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}}`
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || w.Body.String() != want {
		t.Errorf("answer = %d %s %s, want %s", w.Code, w.Header().Get("Content-Type"), w.Body, want)
	}
	if id := w.Header().Get("Mcp-Session-Id"); id != "" { // HTTP-26-075
		t.Errorf("a modern answer has the session id %q", id)
	}
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`

// open opens a session and returns its headers.
func open(t testing.TB, s http.Handler, version string, headers ...string) []string {
	t.Helper()
	w := serve(s, request(strings.Replace(initialize, "2025-11-25", version, 1), headers...))
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != 200 || id == "" {
		t.Fatalf("initialize = %d %s, session %q", w.Code, w.Body, id)
	}
	return append(headers, "Mcp-Session-Id", id)
}

// TestLegacySession: SHTTP-25-010, -011, -034.
func TestLegacySession(t *testing.T) {
	s := newServer(t, nil)
	h := open(t, s, "2025-11-25")
	if id := h[len(h)-1]; strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		t.Errorf("session id = %q", id)
	}
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":99,"result":{}}`, // nobody asked
	} {
		if w := serve(s, request(body, h...)); w.Code != 202 || w.Body.Len() != 0 { // SHTTP-25-009
			t.Errorf("POST %s = %d %q, want 202 without a body", body, w.Code, w.Body)
		}
	}
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":99,"result":{}}`,
	} {
		if w := serve(s, request(body, "Mcp-Session-Id", "unknown")); w.Code != 404 {
			t.Errorf("POST %s of no session = %d %q, want 404", body, w.Code, w.Body)
		}
	}
	w := serve(s, request(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, h...))
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("the answer is %q", got)
	}
	if want := `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`; w.Code != 200 || w.Body.String() != want {
		t.Errorf("call = %d %s, want %s", w.Code, w.Body, want)
	}
	del := httptest.NewRequest("DELETE", "/mcp", nil)
	set(del.Header, h)
	if w := serve(s, del); w.Code != 204 {
		t.Errorf("DELETE = %d, want 204", w.Code)
	}
	if w := serve(s, request(`{"jsonrpc":"2.0","id":2,"method":"ping"}`, h...)); w.Code != 404 { // SHTTP-25-038
		t.Errorf("POST after DELETE = %d, want 404", w.Code)
	}
}

// recorder is a ResponseWriter whose content can be read while it is written to.
type recorder struct {
	mu     sync.Mutex
	header http.Header
	code   int
	body   bytes.Buffer
	fail   error // of every write
}

func (w *recorder) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *recorder) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.code == 0 {
		w.code = code
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(200)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return 0, w.fail
	}
	return w.body.Write(p)
}

func (*recorder) Flush()                           {}
func (*recorder) SetWriteDeadline(time.Time) error { return nil }

func (w *recorder) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body.String()
}

// messages returns the data of the events so far.
func (w *recorder) messages() []string { return events(w.text()) }

// cut makes all writes fail, as on a closed connection.
func (w *recorder) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = errors.New("connection reset")
}

// events returns the data of the events of a stream, those without any left out.
func events(stream string) []string {
	var out []string
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && data != "\n" {
			out = append(out, strings.TrimSuffix(data, "\n"))
		}
	}
	return out
}
