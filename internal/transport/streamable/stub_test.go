package streamable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// idOf returns the id of the message in a request, as JSON.
func idOf(t testing.TB, r *http.Request) (id, body string) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	msg, err := jsonrpc.Decode(raw, jsonrpc.Limits{})
	if err != nil {
		t.Errorf("the client sent %q: %v", raw, err)
	}
	return string(msg.ID.AppendJSON(nil)), string(raw)
}

func sse(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, format, args...)
	w.(http.Flusher).Flush()
}

// TestAnswers drives the client against servers with all kinds of answers (HTTP-26-015,
// SHTTP-25-012).
func TestAnswers(t *testing.T) {
	respond := func(format string) func(w http.ResponseWriter, id string) {
		return func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			io.WriteString(w, strings.ReplaceAll(format, "ID", id))
		}
	}
	stream := func(format string) func(w http.ResponseWriter, id string) {
		return func(w http.ResponseWriter, id string) { sse(w, "%s", strings.ReplaceAll(format, "ID", id)) }
	}
	status := func(code int, body string) func(w http.ResponseWriter, id string) {
		return func(w http.ResponseWriter, id string) { w.WriteHeader(code); io.WriteString(w, body) }
	}
	const ok = `{"jsonrpc":"2.0","id":ID,"result":{"x":1}}`
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, id string)
		want   string // result, or part of the error
		status int    // of an HTTPError
		code   int    // of a JSON-RPC error
	}{
		{"JSON", respond(ok), `{"x":1}`, 0, 0},
		{"JSON error", respond(`{"jsonrpc":"2.0","id":ID,"error":{"code":-5,"message":"no"}}`), "no", 0, -5},
		{"JSON error without id", respond(`{"jsonrpc":"2.0","error":{"code":-5,"message":"no"}}`), "no", 0, -5},
		{"JSON, wrong id", respond(`{"jsonrpc":"2.0","id":"ID","result":{}}`), "the answer has the id", 0, 0},
		{"JSON notification", respond(`{"jsonrpc":"2.0","method":"x"}`), "no response", 0, 0},
		{"garbage", respond(`{`), "answer:", 0, 0},
		{"huge", respond(`{"jsonrpc":"2.0","id":ID,"result":{"x":"` + strings.Repeat("x", 2<<20) + `"}}`), "limit of 1048576", 0, 0},
		{"stream", stream(": hi\r\n\r\ndata: " + ok + "\n\n"), `{"x":1}`, 0, 0}, // HTTP-26-021
		{"stream with error", stream(`data: {"jsonrpc":"2.0","id":ID,"error":{"code":-5,"message":"no"}}` + "\n\n"), "no", 0, -5},
		{"stream, wrong id", stream(`data: {"jsonrpc":"2.0","id":12345,"result":{}}` + "\n\n"), "the answer has the id", 0, 0},
		{"stream, garbage", stream("data: garbage\n\n"), "answer:", 0, 0},
		{"stream, huge", stream("data: " + strings.Repeat("x", 2<<20) + "\n\n"), "limit of 1048576", 0, 0},
		{"stream without answer", stream("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n"), "connection lost before the answer to tools/list; the outcome is unknown", 0, 0}, // HTTP-26-072
		{"stream, modern, with ids", stream("id: 1\ndata:\n\n"), "connection lost", 0, 0},
		{"stream with a request", stream(`data: {"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n\ndata: " + ok + "\n\n"), `{"x":1}`, 0, 0}, // HTTP-26-017
		{"page", func(w http.ResponseWriter, _ string) { io.WriteString(w, "<html>hello") }, "not an MCP server: a web page", 0, 0},
		{"202", status(202, ""), "has no response", 0, 0},
		{"204", status(204, ""), "has no response", 0, 0},
		{"400 of the modern era", status(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"no","data":{"supported":["x"]}}}`), "400", 400, -32022},
		{"400 with other members", status(400, `{"error":{"code":-32000,"message":"no"},"id":false}`), "400", 400, -32000},
		{"401", status(401, `{"error":"invalid_token"}`), "401", 401, 0},
		{"403", status(403, ``), "403", 403, 0},
		{"404", status(404, `not here`), `"not here"`, 404, 0},
		{"405", status(405, ``), "405", 405, 0},
		{"500", status(500, strings.Repeat("x", 1<<20)), "500", 500, 0},
		{"302", func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(302)
		}, "302", 302, 0},
		{"308 to another origin", func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "http://evil.example.com/")
			w.WriteHeader(308)
		}, "308", 308, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				id, _ := idOf(t, r)
				tt.answer(w, id)
			}))
			defer hs.Close()
			c := dial(t, hs.URL, streamable.ClientOptions{MaxMessage: 1 << 20})
			raw, err := c.Call(t.Context(), &engine.Outgoing{Method: "tools/list", Params: modernParams("")})
			got := string(raw)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("Call = %s, %v, want %q", raw, err, tt.want)
			}
			var he *engine.HTTPError
			var rpc *jsonrpc.Error
			if errors.As(err, &he); he != nil != (tt.status != 0) || he != nil && (he.Status != tt.status || len(he.Body) > 1<<10) {
				t.Errorf("error = %#v, want HTTP %d", err, tt.status)
			}
			if errors.As(err, &rpc); rpc != nil != (tt.code != 0) || rpc != nil && rpc.Code != tt.code {
				t.Errorf("error = %#v, want code %d", err, tt.code)
			}
			if strings.Contains(tt.want, "connection lost") {
				var lost *streamable.LostError
				if !errors.As(err, &lost) || lost.Method != "tools/list" {
					t.Errorf("error = %#v, want a LostError", err)
				}
			}
		})
	}
}

// TestModernHeaders: HTTP-26-006 to -009, -025, -026, -031, -032, -050.
func TestModernHeaders(t *testing.T) {
	var got http.Header
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, _ := idOf(t, r)
		if r.URL.Path == "/mcp" {
			http.Redirect(w, r, "/moved", http.StatusPermanentRedirect)
			return
		}
		got = r.Header
		if id == "null" {
			w.WriteHeader(202)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "not-for-us")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	}))
	defer hs.Close()
	c := dial(t, hs.URL+"/mcp", streamable.ClientOptions{Header: http.Header{"x-extra": {"1"}}})
	c.Negotiated(revision.V20260728)
	for _, tt := range []struct{ method, params, name string }{
		{"tools/call", `"name":"grüße",`, "=?base64?Z3LDvMOfZQ==?="},
		{"prompts/get", `"name":"p",`, "p"},
		{"resources/read", `"uri":"file:///a b",`, "file:///a b"},
		{"tools/list", `"name":"p",`, ""},
	} {
		if _, err := c.Call(t.Context(), &engine.Outgoing{Method: tt.method, Params: modernParams(tt.params), Header: http.Header{"Mcp-Param-A": {"v"}}}); err != nil {
			t.Fatalf("%s = %v", tt.method, err)
		}
		for name, want := range map[string]string{
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": tt.method, "Mcp-Name": tt.name, "X-Extra": "1", "Mcp-Param-A": "v",
			"Accept": "application/json, text/event-stream", "Content-Type": "application/json", "Mcp-Session-Id": "",
		} {
			if got.Get(name) != want {
				t.Errorf("%s: %s = %q, want %q", tt.method, name, got.Get(name), want)
			}
		}
	}
	if err := c.Notify(t.Context(), "notifications/x", nil); err != nil {
		t.Fatal(err)
	}
	if got.Get("MCP-Protocol-Version") != "2026-07-28" || got.Get("Mcp-Method") != "notifications/x" {
		t.Errorf("notification has the headers %v", got)
	}
}

// legacyStub is a hand-written server of 2025-11-25: initialize, and the handlers of the test.
type legacyStub struct {
	t    *testing.T
	post func(w http.ResponseWriter, r *http.Request, id, body string) // of requests other than initialize
	get  func(w http.ResponseWriter, r *http.Request)                  // nil: 405

	mu   sync.Mutex
	seen []string      // HTTP methods, and messages of POSTs that are not calls
	note chan struct{} // sent a value for each
}

func (s *legacyStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	saw := func(what string) {
		s.mu.Lock()
		s.seen = append(s.seen, what)
		s.mu.Unlock()
		s.note <- struct{}{}
	}
	if r.Method != "POST" {
		s.session(r)
		if r.Method == "GET" && s.get != nil {
			s.get(w, r)
			return
		}
		saw(r.Method)
		w.WriteHeader(405)
		return
	}
	id, body := idOf(s.t, r)
	if strings.Contains(body, `"method":"initialize"`) {
		if r.Header.Get("Mcp-Session-Id") != "" {
			s.t.Error("initialize has a session id")
		}
		w.Header().Set("Mcp-Session-Id", "s1")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		return
	}
	s.session(r)
	if strings.Contains(body, `"method"`) && id != "null" {
		s.post(w, r, id, body)
		return
	}
	w.WriteHeader(202)
	if !strings.Contains(body, "initialized") {
		saw(body)
	}
}

// session checks what every request after initialize has (SHTTP-25-036, -041).
func (s *legacyStub) session(r *http.Request) {
	if r.Header.Get("Mcp-Session-Id") != "s1" || r.Header.Get("MCP-Protocol-Version") != "2025-11-25" || r.Header.Get("Mcp-Method") != "" {
		s.t.Errorf("%s has the headers %v", r.Method, r.Header)
	}
}

// wait waits for the n-th thing seen, and returns all.
func (s *legacyStub) wait(n int) []string {
	s.t.Helper()
	for range n {
		select {
		case <-s.note:
		case <-time.After(time.Minute):
			s.t.Fatalf("saw %q, want %d things", s.seen, n)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func startLegacy(t *testing.T, s *legacyStub, opts streamable.ClientOptions) *streamable.Client {
	s.t, s.note = t, make(chan struct{}, 100)
	hs := httptest.NewServer(s)
	t.Cleanup(hs.Close)
	c := dial(t, hs.URL, opts)
	handshake(t, c, revision.V20251125)
	return c
}

// TestResume: SHTTP-25-014, -016, -031. The server ends its stream early, twice; the client
// resumes with the last id, after the retry time.
func TestResume(t *testing.T) {
	var mu sync.Mutex
	var ids []string
	var at []time.Time
	var call string
	s := &legacyStub{}
	s.post = func(w http.ResponseWriter, _ *http.Request, id, _ string) {
		mu.Lock()
		defer mu.Unlock()
		call, at = id, append(at, time.Now())
		sse(w, "id: a1\nretry: 120\ndata:\n\n")
	}
	s.get = func(w http.ResponseWriter, r *http.Request) {
		last := r.Header.Get("Last-Event-ID")
		if last == "" {
			w.WriteHeader(405) // the session's own stream
			return
		}
		if r.Header.Get("Accept") != "text/event-stream" { // SHTTP-25-022
			t.Errorf("GET has Accept %q", r.Header.Get("Accept"))
		}
		mu.Lock()
		defer mu.Unlock()
		ids, at = append(ids, last), append(at, time.Now())
		if len(ids) == 1 {
			sse(w, "id: a2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n")
			return
		}
		sse(w, "id: a3\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"done\":true}}\n\n", call)
	}
	c := startLegacy(t, s, streamable.ClientOptions{})
	var notes []string
	raw, err := c.Call(t.Context(), &engine.Outgoing{Method: "tools/call", Params: json.RawMessage(`{"name":"x"}`),
		Inbox: callInbox{note: func(method string, _ json.RawMessage) { notes = append(notes, method) }}})
	if err != nil || string(raw) != `{"done":true}` {
		t.Fatalf("Call = %s, %v", raw, err)
	}
	if !slices.Equal(ids, []string{"a1", "a2"}) || !slices.Equal(notes, []string{"notifications/progress"}) {
		t.Errorf("Last-Event-ID = %q, notes %q", ids, notes)
	}
	for i := 1; i < len(at); i++ {
		if d := at[i].Sub(at[i-1]); d < 120*time.Millisecond {
			t.Errorf("came back after %v, want 120ms at least", d)
		}
	}
}

// TestLegacyCancel: SHTTP-25-021. Call returns at once, and the server is notified.
func TestLegacyCancel(t *testing.T) {
	cause := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	var call string
	s := &legacyStub{}
	s.post = func(w http.ResponseWriter, r *http.Request, id, _ string) {
		call = id
		cancel(cause)
		<-r.Context().Done()
	}
	c := startLegacy(t, s, streamable.ClientOptions{})
	if got := s.wait(1); got[0] != "GET" {
		t.Errorf("saw %q, want the GET for the session's stream", got)
	}
	if _, err := c.Call(ctx, &engine.Outgoing{Method: "tools/list"}); err != cause {
		t.Errorf("Call = %v, want the cause", err)
	}
	want := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + call + `,"reason":"changed my mind"}}`
	if got := s.wait(1); got[1] != want {
		t.Errorf("the server was told %q, want %q", got[1:], want)
	}
	c.Close()
	if got := s.wait(1); got[2] != "DELETE" { // SHTTP-25-040
		t.Errorf("saw %q, want DELETE at the end", got)
	}
	if !errors.Is(c.Err(), jsonrpc.ErrClosed) {
		t.Errorf("Err = %v, want ErrClosed", c.Err())
	}
	if _, err := c.Call(t.Context(), &engine.Outgoing{Method: "tools/list"}); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("Call after Close = %v", err)
	}
}

// TestDeleteAgain: SHTTP-25-040. The end of the session reaches the server although its connection was that of a request
// that Close has ended.
func TestDeleteAgain(t *testing.T) {
	s := &legacyStub{}
	lost := 0
	c := startLegacy(t, s, streamable.ClientOptions{HTTP: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodDelete && lost < 1 {
			lost++
			return nil, jsonrpc.ErrClosed // as net/http does, which gives the cause for which the other request was ended
		}
		return http.DefaultTransport.RoundTrip(r)
	})}})
	s.wait(1) // GET
	c.Close()
	if got := s.wait(1); got[1] != "DELETE" || lost != 1 {
		t.Errorf("saw %q, want DELETE at the end", got)
	}
}

// TestModernCancel: the end of ctx only closes the response.
func TestModernCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left := make(chan struct{})
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		sse(w, ":\n\n")
		cancel()
		<-r.Context().Done()
		close(left)
	}))
	defer hs.Close()
	c := dial(t, hs.URL, streamable.ClientOptions{})
	if _, err := c.Call(ctx, &engine.Outgoing{Method: "tools/list", Params: modernParams("")}); !errors.Is(err, context.Canceled) {
		t.Errorf("Call = %v", err)
	}
	<-left
}

// TestCloseEndsCalls of a server that never answers.
func TestCloseEndsCalls(t *testing.T) {
	begun := make(chan struct{})
	s := &legacyStub{post: func(w http.ResponseWriter, r *http.Request, _, _ string) {
		close(begun)
		<-r.Context().Done()
	}}
	c := startLegacy(t, s, streamable.ClientOptions{})
	ended := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), &engine.Outgoing{Method: "tools/list"})
		ended <- err
	}()
	<-begun
	c.Close()
	if err := <-ended; !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("Call = %v, want ErrClosed", err)
	}
}

// TestSessionLost: SHTTP-25-039.
func TestSessionLost(t *testing.T) {
	s := &legacyStub{post: func(w http.ResponseWriter, _ *http.Request, id, body string) {
		w.WriteHeader(404)
		if strings.Contains(body, "foo/bar") {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no method"}}`, id)
		}
	}}
	c := startLegacy(t, s, streamable.ClientOptions{})
	var gone *streamable.SessionLostError
	if _, err := c.Call(t.Context(), &engine.Outgoing{Method: "foo/bar"}); err == nil || errors.As(err, &gone) || c.Err() != nil {
		t.Errorf("404 about a method = %v, Err %v", err, c.Err())
	}
	if _, err := c.Call(t.Context(), &engine.Outgoing{Method: "tools/list"}); !errors.As(err, &gone) {
		t.Errorf("404 = %v, want a SessionLostError", err)
	}
	<-c.Done()
	if !errors.As(c.Err(), &gone) {
		t.Errorf("Err = %v", c.Err())
	}
}

// inbox collects notifications and questions.
type inbox struct {
	notes chan string
}

func (b inbox) Note(method string, _ json.RawMessage) { b.notes <- method }

func (b inbox) Question(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	return nil, &jsonrpc.Error{Code: -1, Message: method}
}

// TestListening: the GET stream feeds the inbox, is opened again when it breaks, and
// its questions are answered by POST. All that comes after initialize has the headers
// of the session (INIT-25-013, SHTTP-25-036, -041).
func TestListening(t *testing.T) {
	var mu sync.Mutex
	var ids []string
	s := &legacyStub{}
	s.get = func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		ids = append(ids, r.Header.Get("Last-Event-ID"))
		n := len(ids)
		mu.Unlock()
		if n == 1 {
			sse(w, "retry: 1\nid: e1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			return
		}
		sse(w, "data: nonsense\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n\n")
		<-r.Context().Done()
	}
	b := inbox{make(chan string, 10)}
	startLegacy(t, s, streamable.ClientOptions{Inbox: b})
	if a, b := <-b.notes, <-b.notes; a != "notifications/tools/list_changed" || b != "notifications/resources/list_changed" {
		t.Errorf("notes = %q, %q", a, b)
	}
	if got := s.wait(1); got[0] != `{"jsonrpc":"2.0","id":"q","error":{"code":-1,"message":"roots/list"}}` {
		t.Errorf("answer = %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(ids, []string{"", "e1"}) {
		t.Errorf("Last-Event-ID = %q", ids)
	}
}

// TestAnswerAgain: an answer that the server refuses for now, or that does not reach it, is posted again; one that it refuses for good is not.
func TestAnswerAgain(t *testing.T) {
	for _, tt := range []struct {
		status []int // of the attempts before the one that arrives; 0: the connection breaks
		want   int   // attempts
	}{{[]int{503, 0, 502, 429}, 5}, {[]int{400}, 1}} {
		attempts := make(chan int, 10)
		n := 0
		s := &legacyStub{get: func(w http.ResponseWriter, r *http.Request) {
			sse(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n\n")
			<-r.Context().Done()
		}}
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Body == nil {
				return http.DefaultTransport.RoundTrip(r)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if !bytes.Contains(body, []byte(`"id":"q"`)) {
				return http.DefaultTransport.RoundTrip(r)
			}
			n++
			attempts <- n
			if n > len(tt.status) {
				return http.DefaultTransport.RoundTrip(r)
			}
			if tt.status[n-1] == 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return &http.Response{StatusCode: tt.status[n-1], Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})}
		startLegacy(t, s, streamable.ClientOptions{Inbox: inbox{make(chan string, 10)}, HTTP: client})
		for range tt.want {
			<-attempts
		}
		if tt.want > len(tt.status) {
			s.wait(1)
		}
		select {
		case n := <-attempts:
			t.Errorf("after %v, attempt %d", tt.status, n)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// TestQuestionBesideACall: a question on the GET stream goes to the inbox of the wire, whose
// owner knows the calls in flight.
func TestQuestionBesideACall(t *testing.T) {
	calls, asked := make(chan int), make(chan struct{})
	s := &legacyStub{}
	s.get = func(w http.ResponseWriter, r *http.Request) {
		for n := range calls {
			sse(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q%d\",\"method\":\"roots/list\"}\n\n", n)
		}
	}
	begun := make(chan struct{}, 2)
	s.post = func(w http.ResponseWriter, r *http.Request, id, _ string) {
		begun <- struct{}{}
		select {
		case <-asked:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	}
	c := startLegacy(t, s, streamable.ClientOptions{Inbox: inbox{make(chan string, 10)}})
	var wg sync.WaitGroup
	for n := 1; n <= 2; n++ {
		wg.Go(func() {
			box := callInbox{nil, func() json.RawMessage { return json.RawMessage(`{"of":"the call"}`) }}
			if _, err := c.Call(t.Context(), &engine.Outgoing{Method: "tools/call", Inbox: box}); err != nil {
				t.Error(err)
			}
		})
		<-begun
		calls <- n
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","error":{"code":-1,"message":"roots/list"}}`, n)
		if got := s.wait(1); got[len(got)-1] != want {
			t.Errorf("answer = %q, want %s", got, want)
		}
	}
	close(calls)
	close(asked)
	wg.Wait()
}

// callInbox gets what belongs to a call.
type callInbox struct {
	note     func(method string, params json.RawMessage)
	question func() json.RawMessage
}

func (i callInbox) Note(method string, params json.RawMessage) { i.note(method, params) }

func (i callInbox) Question(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return i.question(), nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
