package auth_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/transport/websocket"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// house is a server behind a Guard, with each wire mounted as most programs do it: with Protect and
// nothing else.
type house struct {
	*testing.T
	srv     *mcp.Server
	url     string
	begun   chan struct{} // "wait" has begun
	release chan struct{} // "wait" may end
	ended   chan error    // why "wait" ended early; nil: it was released
}

func newHouse(t *testing.T) *house {
	h := &house{T: t, begun: make(chan struct{}, 10), release: make(chan struct{}), ended: make(chan error, 10)}
	srv := &mcp.Server{Name: "house", Version: "1"}
	h.srv = srv
	mcp.AddResource(srv, mcp.Resource{URI: "house:door", Name: "door"}, func(context.Context) (string, error) { return "closed", nil })
	wait := func(ctx context.Context, _ nothing) (string, error) {
		mcp.Progress(ctx, 1, 2, "for "+mcp.CallFrom(ctx).Principal)
		h.begun <- struct{}{}
		select {
		case <-h.release:
			h.ended <- nil
			return "the secret of " + mcp.CallFrom(ctx).Principal, nil
		case <-ctx.Done():
			h.ended <- context.Cause(ctx)
			return "", ctx.Err()
		}
	}
	mcp.AddTool(srv, mcp.Tool{Name: "wait"}, wait)
	mcp.AddTool(srv, mcp.Tool{Name: "job", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, wait)
	mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ nothing) (string, error) {
		a, err := mcp.Elicit[struct {
			Word string `json:"word"`
		}](ctx, "your word?")
		return a.Word + " of " + mcp.CallFrom(ctx).Principal, err
	})
	mux := http.NewServeMux()
	g := &auth.Guard{Verifiers: []auth.Verifier{known(map[string]*auth.Principal{"alice": {ID: "as#alice"}, "bob": {ID: "as#bob"}})}}
	mux.Handle("/mcp", g.Protect(srv))
	mux.Handle("/ws", g.Protect(srv.WebSocket()))
	sse := g.Protect(srv.SSE("/messages"))
	mux.Handle("/sse", sse)
	mux.Handle("/messages", sse)
	web := httptest.NewServer(mux)
	h.url = web.URL
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		srv.Shutdown(ctx)
		web.CloseClientConnections()
		web.Close()
	})
	return h
}

// send sends a request to the MCP endpoint as somebody; header are pairs.
func (h *house) send(method, who, body string, header ...string) *http.Response {
	h.Helper()
	r, err := http.NewRequestWithContext(h.Context(), method, h.url+"/mcp", strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+who)
	r.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { res.Body.Close() })
	return res
}

// open opens a session of 2025-11-25.
func (h *house) open(who string) (id string) {
	h.Helper()
	const session = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
		"capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
	if id = h.send("POST", who, session).Header.Get("Mcp-Session-Id"); id == "" {
		h.Fatal("no session was opened")
	}
	if res := h.send("POST", who, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id); res.StatusCode != 202 {
		h.Fatalf("notifications/initialized: %d", res.StatusCode)
	}
	return id
}

// event reads the next event of a stream that has data: its id, and the data.
func event(t *testing.T, stream *bufio.Reader) (id, data string) {
	t.Helper()
	for {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ends: %v", err)
		}
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(v) != "" {
			return id, strings.TrimSpace(v)
		}
	}
}

// Trap 4: with nothing but Protect, a session belongs to its principal: its requests, its
// streams and their resumption, its questions, its calls and its end.
func TestSessionIsolationByProtectAlone(t *testing.T) {
	h := newHouse(t)
	id := h.open("alice")
	call := bufio.NewReader(h.send("POST", "alice", `{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"wait","arguments":{},"_meta":{"progressToken":1}}}`,
		"Mcp-Session-Id", id).Body)
	<-h.begun
	last, _ := event(t, call)
	if last == "" {
		t.Fatal("the stream of the call has no event ids")
	}
	question := bufio.NewReader(h.send("POST", "alice", `{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"ask","arguments":{}}}`, "Mcp-Session-Id", id).Body)
	_, asked := event(t, question)
	var q struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.Unmarshal([]byte(asked), &q); err != nil || q.Method != "elicitation/create" {
		t.Fatalf("the question is %s, %v", asked, err)
	}
	answer := func(word string) string {
		return `{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"action":"accept","content":{"word":"` + word + `"}}}`
	}
	own := h.open("bob")
	for name, res := range map[string]*http.Response{
		"a request":             h.send("POST", "bob", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", id),
		"a call":                h.send("POST", "bob", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}`, "Mcp-Session-Id", id),
		"a subscription":        h.send("POST", "bob", `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}`, "Mcp-Session-Id", id),
		"an answer":             h.send("POST", "bob", answer("bob's"), "Mcp-Session-Id", id),
		"a cancellation":        h.send("POST", "bob", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}`, "Mcp-Session-Id", id),
		"the stream":            h.send("GET", "bob", "", "Mcp-Session-Id", id),
		"the resumption":        h.send("GET", "bob", "", "Mcp-Session-Id", id, "Last-Event-ID", last),
		"the end":               h.send("DELETE", "bob", "", "Mcp-Session-Id", id),
		"a session that is not": h.send("POST", "bob", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", strings.Repeat("x", len(id))),
	} {
		if res.StatusCode != 404 {
			t.Errorf("%s, by bob in the session of alice: %d, want 404", name, res.StatusCode)
		}
	}
	// Bob's own session does not give access either.
	if res := h.send("GET", "bob", "", "Mcp-Session-Id", own, "Last-Event-ID", last); res.StatusCode == 200 {
		if text, _ := io.ReadAll(io.LimitReader(res.Body, 100)); strings.Contains(string(text), "alice") {
			t.Errorf("bob resumes alice's stream in his session: %q", text)
		}
	}
	h.send("POST", "bob", answer("bob's"), "Mcp-Session-Id", own)
	h.send("POST", "bob", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}`, "Mcp-Session-Id", own)

	if res := h.send("POST", "alice", answer("alice's"), "Mcp-Session-Id", id); res.StatusCode != 202 {
		t.Errorf("alice's answer: %d", res.StatusCode)
	}
	if _, res := event(t, question); !strings.Contains(res, "alice's of as#alice") {
		t.Errorf("the answered call: %s", res)
	}
	close(h.release)
	if err := <-h.ended; err != nil {
		t.Errorf("alice's call was ended: %v", err)
	}
	if _, res := event(t, call); !strings.Contains(res, "the secret of as#alice") {
		t.Errorf("alice's call: %s", res)
	}
	if res := h.send("GET", "alice", "", "Mcp-Session-Id", id, "Last-Event-ID", last); res.StatusCode != 200 {
		t.Errorf("alice resumes her stream: %d, want 200", res.StatusCode)
	}
}

// wires are the URLs of a house, with a revision that each speaks.
func (h *house) wires() map[string]mcp.Revision {
	ws := "ws" + strings.TrimPrefix(h.url, "http") + "/ws"
	return map[string]mcp.Revision{
		h.url + "/mcp": mcp.V2026_07_28, h.url + "/mcp?": mcp.V2025_11_25, ws: mcp.V2026_07_28, ws + "?": mcp.V2025_11_25, h.url + "/sse": mcp.V2025_11_25,
	}
}

func (h *house) dial(who, url string, rev mcp.Revision) *mcp.Session {
	h.Helper()
	c := &mcp.Client{Name: "t", Revisions: []mcp.Revision{rev}, Header: http.Header{"Authorization": {"Bearer " + who}}}
	s, err := c.Dial(h.Context(), url)
	if err != nil {
		h.Fatalf("%s dials %s: %v", who, url, err)
	}
	h.Cleanup(func() { s.Close() })
	return s
}

// socket opens a WebSocket connection.
func (h *house) socket(who string) jsonrpc.Conn {
	h.Helper()
	conn, err := websocket.Dial(h.Context(), websocket.ClientOptions{
		URL: "ws" + strings.TrimPrefix(h.url, "http") + "/ws", Header: http.Header{"Authorization": {"Bearer " + who}}})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { conn.Close() })
	return conn
}

// Trap 4: with only Protect, a task belongs to its principal, on every wire and when asked for from
// any other.
func TestTaskIsolationByProtectAlone(t *testing.T) {
	h := newHouse(t)
	close(h.release)
	for begun, rev := range h.wires() {
		alice := h.dial("alice", begun, rev)
		task, err := alice.StartTask(t.Context(), "job", nothing{})
		if err != nil || task.ID == "" {
			t.Fatalf("%s, %s: %v, %v; want a task", begun, rev, task, err)
		}
		if res, err := task.Wait(t.Context()); err != nil || res.Text() != "the secret of as#alice" {
			t.Errorf("%s: alice's task = %v, %v", begun, res, err)
		}
		for url, rev := range h.wires() {
			if info, err := h.dial("alice", url, rev).Task(task.ID).Info(t.Context()); err != nil || info.ID != task.ID {
				t.Errorf("begun at %s, alice at %s: %v, %v", begun, url, info, err)
			}
			bob := h.dial("bob", url, rev)
			if info, err := bob.Task(task.ID).Info(t.Context()); err == nil {
				t.Errorf("begun at %s, bob sees it at %s: %v", begun, url, info)
			}
			if res, err := bob.Task(task.ID).Wait(t.Context()); err == nil {
				t.Errorf("begun at %s, bob has the result at %s: %v", begun, url, res)
			}
			if err := bob.Task(task.ID).Cancel(t.Context()); err == nil {
				t.Errorf("begun at %s, bob cancels it at %s", begun, url)
			}
			if rev == mcp.V2025_11_25 {
				for info, err := range bob.Tasks(t.Context()) {
					t.Errorf("begun at %s, bob lists %v at %s, %v", begun, info, url, err)
				}
			}
		}
	}
}

// Trap 4: with only Protect, a requestState belongs to its principal, on every wire.
func TestStateIsolationByProtectAlone(t *testing.T) {
	h := newHouse(t)
	type asked struct {
		Result struct {
			RequestState  string
			InputRequests map[string]json.RawMessage
			Content       []struct{ Text string }
		}
		Error *mcp.Error
	}
	overHTTP := func(who, body string) []byte {
		res := h.send("POST", who, body, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "ask")
		raw, _ := io.ReadAll(res.Body)
		return raw
	}
	overWebSocket := func(who, body string) []byte {
		conn := h.socket(who)
		defer conn.Close()
		if err := conn.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
		raw, err := conn.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	wires := map[string]func(who, body string) []byte{"http": overHTTP, "websocket": overWebSocket}
	call := func(by func(who, body string) []byte, who, more string) (out asked) {
		raw := by(who, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{},"_meta":{
			"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`+more+`}}`)
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatalf("the answer %s: %v", raw, err)
		}
		return out
	}
	for begun, first := range wires {
		for at, by := range wires {
			q := call(first, "alice", "")
			if q.Result.RequestState == "" || len(q.Result.InputRequests) != 1 {
				t.Fatalf("%s: %+v; want a question", begun, q)
			}
			more := `,"requestState":"` + q.Result.RequestState + `","inputResponses":{`
			for key := range q.Result.InputRequests {
				more += `"` + key + `":{"action":"accept","content":{"word":"x"}}}`
			}
			if res := call(by, "bob", more); res.Error == nil {
				t.Errorf("begun over %s, bob goes on over %s: %+v", begun, at, res)
			}
			if res := call(by, "alice", more); res.Error != nil || len(res.Result.Content) != 1 || res.Result.Content[0].Text != "x of as#alice" {
				t.Errorf("begun over %s, alice goes on over %s: %+v", begun, at, res)
			}
		}
	}
}

// Trap 4: with nothing but Protect, connections are kept apart: the messages of an SSE stream, and
// a cancellation beside a call of somebody else.
func TestConnectionIsolationByProtectAlone(t *testing.T) {
	h := newHouse(t)
	stream := func(who string) (endpoint string, events *bufio.Reader) {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", h.url+"/sse", nil)
		r.Header.Set("Authorization", "Bearer "+who)
		r.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultClient.Do(r)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("the stream of %s: %v, %v", who, res, err)
		}
		t.Cleanup(func() { res.Body.Close() })
		events = bufio.NewReader(res.Body)
		_, endpoint = event(t, events)
		at, err := res.Request.URL.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		return at.String(), events
	}
	endpoint, _ := stream("alice")
	post := func(who string) int {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", endpoint, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		r.Header.Set("Authorization", "Bearer "+who)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if a, b := post("alice"), post("bob"); a != 202 || b != 404 {
		t.Errorf("messages to alice's stream: alice %d, bob %d; want 202 and 404", a, b)
	}
	for url, rev := range h.wires() {
		alice, bob := h.dial("alice", url, rev), h.dial("bob", url, rev)
		done := make(chan error, 1)
		go func() {
			res, err := alice.CallTool(t.Context(), "wait", nothing{})
			if err == nil && res.Text() != "the secret of as#alice" {
				err = errors.New(res.Text())
			}
			done <- err
		}()
		<-h.begun
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-h.begun; cancel() }()
		if _, err := bob.CallTool(ctx, "wait", nothing{}); err == nil {
			t.Errorf("%s: bob's call was not cancelled", url)
		}
		if err := <-h.ended; err == nil {
			t.Errorf("%s: bob's call was not cancelled at the server", url)
		}
		h.release <- struct{}{}
		if err := <-done; err != nil {
			t.Errorf("%s: alice's call: %v", url, err)
		}
		<-h.ended
	}
}

// Trap 4: with only Protect, one principal's use of a limit does not count for another.
func TestLimitByProtectAlone(t *testing.T) {
	srv := seen()
	srv.Use((&limit.Limiter{Caller: limit.Rate{Count: 3, Per: time.Hour}}).Limit)
	g := &auth.Guard{Verifiers: []auth.Verifier{known(map[string]*auth.Principal{"alice": {ID: "as#alice"}, "bob": {ID: "as#bob"}})}}
	web := httptest.NewServer(g.Protect(srv))
	defer web.Close()
	dial := func(who string) (*mcp.Session, error) {
		c := &mcp.Client{Name: "t", Revisions: []mcp.Revision{mcp.V2026_07_28}, Header: http.Header{"Authorization": {"Bearer " + who}}}
		return c.Dial(t.Context(), web.URL)
	}
	alice, err := dial("alice")
	if err != nil {
		t.Fatal(err)
	}
	defer alice.Close()
	for range 5 {
		_, err = alice.CallTool(t.Context(), "whoami", nothing{})
	}
	if err == nil {
		t.Error("alice is not bounded")
	}
	bob, err := dial("bob")
	if err != nil {
		t.Fatalf("alice has taken what is bob's: %v", err)
	}
	defer bob.Close()
	if _, err := bob.CallTool(t.Context(), "whoami", nothing{}); err != nil {
		t.Errorf("alice has taken what is bob's: %v", err)
	}
}
