package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store"
)

// keptSessions is a store of several servers of a test, one of which continues the sessions of the others.
type keptSessions struct {
	mu   sync.Mutex
	kept map[string]store.Session // guarded by mu
	fail error                    // guarded by mu
	end  func(id string)          // guarded by mu
}

func (k *keptSessions) PutSession(_ context.Context, s store.Session) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept = map[string]store.Session{}
	}
	if k.fail == nil {
		k.kept[s.ID] = s
	}
	return k.fail
}

func (k *keptSessions) GetSession(_ context.Context, id string) (store.Session, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.kept[id]
	return s, ok, k.fail
}

func (k *keptSessions) DropSession(_ context.Context, id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kept, id)
	return k.fail
}

func (k *keptSessions) OnTaken(end func(id string)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end = end
}

// set changes the store.
func (k *keptSessions) set(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// keeping makes a server whose callers name themselves, and counts its sessions.
func keeping(k *keptSessions, name string) (s *mcp.Server, sessions *atomic.Int64) {
	sessions = new(atomic.Int64)
	s = &mcp.Server{Name: name, OnSession: func(context.Context) { sessions.Add(1) }}
	s.HTTP.Sessions = k
	s.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("X-Caller") }
	mcp.AddTool(s, mcp.Tool{Name: "who"}, func(ctx context.Context, _ struct{}) (string, error) {
		c := mcp.CallFrom(ctx)
		return fmt.Sprintf("%s, %s %s for %s", name, c.Client.Name, c.Revision, c.Principal), nil
	})
	return s, sessions
}

// asCaller sends a message of a session to a server.
func asCaller(s http.Handler, caller, session, method, body string) (status int, answer, id string) {
	r := httptest.NewRequest(method, "http://127.0.0.1/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("X-Caller", caller)
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	data, _ := io.ReadAll(w.Body)
	return w.Code, string(data), w.Header().Get("Mcp-Session-Id")
}

const (
	keepInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"ide","version":"1"}}}`
	keepWho        = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"who","arguments":{}}}`
)

// A session that one server has opened goes on at another with the same store, for its own principal alone, and is over
// when its client ends it, wherever.
func TestSessionsAreContinued(t *testing.T) {
	k := new(keptSessions)
	one, _ := keeping(k, "one")
	two, opened := keeping(k, "two")
	status, answer, id := asCaller(one, "ada", "", "POST", keepInitialize)
	if status != 200 || id == "" {
		t.Fatalf("initialize: %d %s", status, answer)
	}
	if err := one.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, stranger := range []string{"bob", ""} {
		if status, answer, _ := asCaller(two, stranger, id, "POST", keepWho); status != 404 {
			t.Errorf("as %q: %d %s", stranger, status, answer)
		}
	}
	var all sync.WaitGroup
	for i := range 20 { // together
		all.Go(func() {
			who := strings.Replace(keepWho, `"id":2`, fmt.Sprintf(`"id":%d`, i), 1)
			if status, answer, _ := asCaller(two, "ada", id, "POST", who); status != 200 || !strings.Contains(answer, "two, ide 2025-06-18 for ada") {
				t.Errorf("%d %s", status, answer)
			}
		})
	}
	all.Wait()
	if n := opened.Load(); n != 1 {
		t.Errorf("OnSession was called %d times for one session", n)
	}
	if status, answer, _ := asCaller(two, "bob", id, "POST", keepWho); status != 404 {
		t.Errorf("afterwards as bob: %d %s", status, answer)
	}
	if status, answer, _ := asCaller(two, "ada", id, "DELETE", ""); status/100 != 2 {
		t.Errorf("DELETE: %d %s", status, answer)
	}
	three, _ := keeping(k, "three")
	if status, answer, _ := asCaller(three, "ada", id, "POST", keepWho); status != 404 {
		t.Errorf("after DELETE: %d %s", status, answer)
	}
}

// A session that was idle for too long is over at other servers too.
func TestIdleSessionsAreNotContinued(t *testing.T) {
	k := new(keptSessions)
	one, _ := keeping(k, "one")
	one.HTTP.SessionIdle = 10 * time.Millisecond
	_, _, id := asCaller(one, "ada", "", "POST", keepInitialize)
	for { // the end is an event of the server alone
		gone := false
		k.set(func() { gone = len(k.kept) == 0 })
		if gone {
			break
		}
		time.Sleep(time.Millisecond)
	}
	two, _ := keeping(k, "two")
	if status, answer, _ := asCaller(two, "ada", id, "POST", keepWho); status != 404 {
		t.Errorf("%d %s", status, answer)
	}
}

// While the store does not answer, no session is opened and none is looked up; those that are open go on.
func TestSessionsWithoutTheirStore(t *testing.T) {
	k := new(keptSessions)
	one, opened := keeping(k, "one")
	two, _ := keeping(k, "two")
	_, _, id := asCaller(one, "ada", "", "POST", keepInitialize)
	k.set(func() { k.fail = errors.New("the disk of the store is full") })
	status, answer, none := asCaller(one, "ada", "", "POST", keepInitialize)
	if status != 503 || none != "" || !strings.Contains(answer, "the store of sessions does not answer") || strings.Contains(answer, "disk") {
		t.Errorf("initialize: %d %s, session %q", status, answer, none)
	}
	if status, answer, _ := asCaller(two, "ada", id, "POST", keepWho); status != 503 || !strings.Contains(answer, "the store of sessions does not answer") {
		t.Errorf("at another server: %d %s", status, answer)
	}
	if status, answer, _ := asCaller(one, "ada", id, "POST", keepWho); status != 200 {
		t.Errorf("at its own server: %d %s", status, answer)
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d sessions were opened", n)
	}
	k.set(func() { k.fail = nil })
	if status, answer, _ := asCaller(two, "ada", id, "POST", keepWho); status != 200 {
		t.Errorf("at another server, later: %d %s", status, answer)
	}
}

// A session that cannot be read is refused in words, and not taken for an unknown one.
func TestSessionsOfOtherVersions(t *testing.T) {
	for data, words := range map[string]string{
		`{"v":2,"revision":"2025-06-18"}`: "a newer version of this program",
		`{"v":1,"revision":"2031-01-01"}`: `revision \"2031-01-01\", which this server does not serve`,
		`[]`:                              "damaged",
	} {
		k := &keptSessions{kept: map[string]store.Session{"x": {ID: "x", Principal: "ada", Data: json.RawMessage(data)}}}
		s, _ := keeping(k, "one")
		if status, answer, _ := asCaller(s, "ada", "x", "POST", keepWho); status != 503 || !strings.Contains(answer, words) {
			t.Errorf("%s: %d %s, want %q", data, status, answer, words)
		}
	}
}

// A session that another process has taken ends here, and stays in the store.
func TestTakenSessionEnds(t *testing.T) {
	k := new(keptSessions)
	ended := make(chan error, 1)
	s, _ := keeping(k, "one")
	s.OnSession = func(session context.Context) {
		context.AfterFunc(session, func() { ended <- context.Cause(session) })
	}
	_, _, id := asCaller(s, "ada", "", "POST", keepInitialize)
	k.set(func() { go k.end(id) })
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "another process continues it") {
		t.Errorf("it ends with %v", err)
	}
	k.set(func() {
		if _, ok := k.kept[id]; !ok {
			t.Error("it is gone from the store")
		}
	})
}

// A client that comes back for the answer of a call, and for changes, after the process of its session has ended, gets words for
// the call, and everything that it watches as changed.
func TestStreamsOfContinuedSessions(t *testing.T) {
	k := new(keptSessions)
	started := make(chan struct{})
	serve := func() *httptest.Server {
		s, _ := keeping(k, "one")
		mcp.AddResource(s, mcp.Resource{URI: "test://clock", Name: "clock"}, func(context.Context) (string, error) { return "now", nil })
		mcp.AddTool(s, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
			mcp.Progress(ctx, 1, 2, "")
			close(started)
			<-ctx.Done()
			return "", ctx.Err()
		})
		return httptest.NewServer(s)
	}
	one, two := serve(), serve()
	defer one.Close()
	defer two.Close()
	defer one.CloseClientConnections()
	defer two.CloseClientConnections()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	id := ""
	send := func(url, method, body, last string) *bufio.Reader {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Session-Id", id)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Body.Close() })
		if w.StatusCode/100 != 2 {
			t.Fatalf("%s %s: %s", method, body, w.Status)
		}
		if id == "" {
			id = w.Header.Get("Mcp-Session-Id")
		}
		return bufio.NewReader(w.Body)
	}
	// event reads until a message has a text, and returns the last id of an event.
	event := func(from *bufio.Reader, text string) (last string) {
		t.Helper()
		for {
			line, err := from.ReadString('\n')
			if err != nil {
				t.Fatalf("no event with %s: %v", text, err)
			}
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				last = strings.TrimSpace(id)
			}
			if strings.Contains(line, text) {
				return last
			}
		}
	}
	send(one.URL, "POST", strings.Replace(keepInitialize, "2025-06-18", "2025-11-25", 1), "")
	send(one.URL, "POST", `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"test://clock"}}`, "")
	call := send(one.URL, "POST", `{"jsonrpc":"2.0","id":"my \"id\"","method":"tools/call","params":{"name":"wait","arguments":{},"_meta":{"progressToken":7}}}`, "")
	<-started
	lastOfCall := event(call, "notifications/progress")
	event(send(two.URL, "GET", "", lastOfCall), `"id":"my \"id\"","error":{"code":-32603,"message":"the process that ran this request has ended; whether it has done what was asked is not known"`)
	again := send(two.URL, "GET", "", "ANYTHING.s-3")
	for seen := map[string]bool{}; len(seen) < 3; {
		line, err := again.ReadString('\n')
		if err != nil {
			t.Fatalf("only %v: %v", seen, err)
		}
		for _, want := range []string{`notifications/resources/updated","params":{"uri":"test://clock"}`, "notifications/tools/list_changed", "notifications/resources/list_changed"} {
			if strings.Contains(line, want) {
				seen[want] = true
			}
		}
	}
}
