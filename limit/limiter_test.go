package limit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

type color struct {
	Color string `json:"color"`
}

// newServer makes a server behind a limiter.
func newServer(l *limit.Limiter) *mcp.Server {
	s := &mcp.Server{Name: "s", Version: "1"}
	s.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("User") }
	for _, name := range []string{"one", "db_read", "db_write"} {
		mcp.AddTool(s, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return name, nil })
	}
	mcp.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		c, err := mcp.Elicit[color](ctx, "which?")
		return "painted " + c.Color, err
	})
	s.Use(l.Limit)
	return s
}

// wire sends requests of 2026-07-28, or of a session, to a handler, without a socket.
type wire struct {
	t       *testing.T
	h       http.Handler
	user    string
	from    string // address
	session string
	header  http.Header // further
}

func (w *wire) send(method, params string) *httptest.ResponseRecorder {
	w.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)
	if w.session == "" && method != "initialize" {
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`
		if params != "" {
			meta = "," + meta
		}
		body = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, meta)
	}
	return w.post(body, method, params)
}

func (w *wire) post(body, method, params string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequest("POST", "http://127.0.0.1/mcp", strings.NewReader(body))
	if w.from != "" {
		r.RemoteAddr = w.from
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if w.user != "" {
		r.Header.Set("User", w.user)
	}
	for name, v := range w.header {
		r.Header[name] = v
	}
	if w.session != "" {
		r.Header.Set("Mcp-Session-Id", w.session)
	} else if method != "initialize" {
		r.Header.Set("MCP-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", method)
		var named struct{ Name string }
		if json.Unmarshal([]byte("{"+params+"}"), &named); named.Name != "" {
			r.Header.Set("Mcp-Name", named.Name)
		}
	}
	res := httptest.NewRecorder()
	w.h.ServeHTTP(res, r)
	return res
}

// open opens a session.
func (w *wire) open() *wire {
	w.t.Helper()
	res := w.send("initialize", `"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}`)
	w.session = res.Header().Get("Mcp-Session-Id")
	if w.session == "" {
		w.t.Fatalf("initialize = %d %s", res.Code, res.Body)
	}
	return w
}

func (w *wire) call(tool string) *httptest.ResponseRecorder {
	w.t.Helper()
	return w.send("tools/call", `"name":"`+tool+`","arguments":{}`)
}

// wantLate checks for a refusal with a time to wait.
func wantLate(t *testing.T, res *httptest.ResponseRecorder, seconds string, what string) {
	t.Helper()
	if res.Code != 429 || res.Header().Get("Retry-After") != seconds ||
		!strings.Contains(res.Body.String(), `"data":{"retryAfter":`+seconds+`}`) || !strings.Contains(res.Body.String(), what) {
		t.Errorf("answer %d, Retry-After %q, %s; want 429, %s and %q", res.Code, res.Header().Get("Retry-After"), res.Body, seconds, what)
	}
}

func wantOK(t *testing.T, res *httptest.ResponseRecorder) {
	t.Helper()
	if res.Code != 200 || !strings.Contains(res.Body.String(), `"result"`) {
		t.Errorf("answer %d %s", res.Code, res.Body)
	}
}

// Each caller has one bucket for all revisions and sessions; it fills with time. TOOL-26-030,
// COMP-26-009.
func TestRateOfCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(&limit.Limiter{Caller: limit.Rate{Count: 5, Per: 10 * time.Second}})
		defer srv.Shutdown(t.Context())
		ada, eve := &wire{t: t, h: srv, user: "ada"}, &wire{t: t, h: srv, user: "eve"}
		session := (&wire{t: t, h: srv, user: "ada"}).open() // is one
		wantOK(t, session.call("one"))
		wantOK(t, ada.call("one"))
		wantOK(t, ada.send("tools/list", ""))
		session.call("nothing there") // that is known behind the limit
		for _, w := range []*wire{ada, session} {
			wantLate(t, w.call("one"), "2", "more requests than 5/10s from one caller; try again in 2 s")
			wantLate(t, w.send("tools/list", ""), "2", "")
		}
		wantOK(t, session.send("ping", ""))
		if res := session.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, "", ""); res.Code != 202 {
			t.Errorf("a cancellation = %d %s", res.Code, res.Body)
		}
		if res := session.post(`{"jsonrpc":"2.0","id":7,"result":{}}`, "", ""); res.Code != 202 {
			t.Errorf("an answer = %d %s", res.Code, res.Body)
		}
		batch := session.post(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]`, "", "")
		if batch.Code != 200 || !strings.Contains(batch.Body.String(), `"retryAfter":2`) || !strings.Contains(batch.Body.String(), `"id":1,"result":{}`) {
			t.Errorf("a batch = %d %s", batch.Code, batch.Body)
		}
		if res := (&wire{t: t, h: srv, user: "ada"}).send("initialize", `"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}`); res.Code != 429 {
			t.Errorf("a new session = %d %s", res.Code, res.Body)
		}
		for range 5 {
			wantOK(t, eve.call("one"))
		}
		wantLate(t, eve.call("one"), "2", "")
		time.Sleep(2 * time.Second)
		wantOK(t, ada.call("one"))
		wantLate(t, ada.call("one"), "2", "")
		time.Sleep(time.Hour) // at most the burst accumulates
		for range 5 {
			wantOK(t, ada.call("one"))
		}
		wantLate(t, ada.call("one"), "2", "")
	})
}

// seen is a number of nodes.
type seen struct{ atomic.Int64 }

func (s *seen) Seen() int { return int(s.Load()) }

// Nodes that share limits keep them together, and those that are left have them when one ends.
func TestNodesShareLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := 3
		var group seen
		group.Store(3)
		var callers []*wire
		for range nodes {
			srv := newServer(&limit.Limiter{Caller: limit.Rate{Count: 30, Per: 10 * time.Second}, Concurrent: 6, Group: &limit.Group{Nodes: &group}})
			defer srv.Shutdown(t.Context())
			callers = append(callers, &wire{t: t, h: srv, user: "ada"})
		}
		made := func() (n int) {
			for _, w := range callers[:nodes] {
				for w.call("one").Code == 200 {
					n++
				}
			}
			return n
		}
		if n := made(); n != 30 {
			t.Errorf("%d calls at once", n)
		}
		time.Sleep(5 * time.Second)
		if n := made(); n != 15 {
			t.Errorf("%d calls after 5 s", n)
		}
		wantLate(t, callers[0].call("one"), "1", "more requests than 30/10s from one caller")
		nodes = 2
		group.Store(2)
		time.Sleep(10 * time.Second)
		if n := made(); n != 20 { // of what three nodes had: a bucket fills by the rate that it was last asked with
			t.Errorf("%d calls after 10 s with a node less", n)
		}
		time.Sleep(10 * time.Second)
		if n := made(); n != 30 {
			t.Errorf("%d calls after 10 s of two nodes", n)
		}
	})
}

// A tool has a bucket for each caller; tools of one pattern share it, and all patterns hold.
func TestRateOfTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(&limit.Limiter{Tools: map[string]limit.Rate{
			"one": {Count: 1, Per: time.Minute}, "db_*": {Count: 60, Per: time.Minute, Burst: 3}, "db_write": {Count: 1, Per: time.Hour},
		}})
		ada, eve := &wire{t: t, h: srv, user: "ada"}, &wire{t: t, h: srv, user: "eve"}
		wantOK(t, ada.call("one"))
		wantLate(t, ada.call("one"), "60", `more calls of \"one\" than 1/m from one caller`)
		wantOK(t, eve.call("one"))
		wantOK(t, ada.call("db_write"))
		for range 5 {
			wantLate(t, ada.call("db_write"), "3600", "db_write") // takes no token of the others
		}
		wantOK(t, ada.call("db_read"))
		wantOK(t, ada.call("db_read"))
		wantLate(t, ada.call("db_read"), "1", "db_*")
		wantOK(t, ada.send("tools/list", ""))
	})
}

// The running requests of a caller are bounded over all its sessions; subscriptions do not count.
func TestConcurrentOfCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(&limit.Limiter{Concurrent: 2})
		release := make(chan struct{})
		mcp.AddTool(srv, mcp.Tool{Name: "hold"}, func(ctx context.Context, _ struct{}) (string, error) {
			<-release
			return "held", nil
		})
		ada, eve := &wire{t: t, h: srv, user: "ada"}, &wire{t: t, h: srv, user: "eve"}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { wantOK(t, ada.call("hold")) })
		}
		wg.Go(func() { wantOK(t, eve.call("hold")) })
		synctest.Wait()
		wantLate(t, ada.call("one"), "1", "more than 2 requests at once from one caller")
		wantOK(t, eve.call("one"))
		close(release)
		wg.Wait()
		wantOK(t, ada.call("one"))
	})
}

// The start of a task is a request in progress, and the task is not.
func TestTasksAreNoRequestsAtOnce(t *testing.T) {
	release := make(chan struct{})
	srv := newServer(&limit.Limiter{Concurrent: 1})
	mcp.AddTool(srv, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(context.Context, struct{}) (string, error) {
		<-release
		return "done", nil
	})
	s := mcptest.Connect(t, srv, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
	var tasks []*mcp.Task
	for range 3 {
		task, err := s.StartTask(t.Context(), "work", nil)
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	close(release)
	for _, task := range tasks {
		if res, err := task.Wait(t.Context()); err != nil || res.Text() != "done" {
			t.Errorf("%v, %v", res, err)
		}
	}
}

// The answers to questions have a limit of their own, since a requestState can be sent again and
// again.
func TestAnswersHaveRoomOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(&limit.Limiter{Caller: limit.Rate{Count: 1, Per: time.Minute}, Tools: map[string]limit.Rate{"ask": {Count: 1, Per: time.Hour}}})
		ada := &wire{t: t, h: srv, user: "ada"}
		var round struct {
			Result struct {
				RequestState  string
				InputRequests map[string]json.RawMessage
			}
		}
		if err := json.Unmarshal(ada.call("ask").Body.Bytes(), &round); err != nil {
			t.Fatal(err)
		}
		wantLate(t, ada.call("ask"), "3600", "")
		var key string
		for key = range round.Result.InputRequests {
		}
		answers := `"inputResponses":{"` + key + `":{"action":"accept","content":{"color":"red"}}}`
		again := func() *httptest.ResponseRecorder {
			return ada.send("tools/call", `"name":"ask","arguments":{},`+answers+`,"requestState":"`+round.Result.RequestState+`"`)
		}
		if res := again(); res.Code != 200 || !strings.Contains(res.Body.String(), "painted red") {
			t.Errorf("the answer = %d %s", res.Code, res.Body)
		}
		// Without a state it is a call like others.
		wantLate(t, ada.send("tools/call", `"name":"ask","arguments":{},`+answers), "3600", "")
		n := 0
		for ; n < 1000; n++ {
			if again().Code == 429 {
				break
			}
		}
		if n < 90 || n > 110 {
			t.Errorf("%d answers at once were taken, want about 100", n)
		}
	})
}

// Every transport and revision gets an error with the time to wait; a session's own requests do
// not count.
func TestEveryWire(t *testing.T) {
	mcptest.Every(t, func() *mcp.Server {
		s := newServer(&limit.Limiter{Tools: map[string]limit.Rate{"one": {Count: 2, Per: time.Hour}}})
		s.HTTP.Principal = nil
		return s
	}, func() *mcp.Client { return &mcp.Client{Name: "c"} }, func(t *testing.T, s *mcp.Session) {
		for range 2 {
			if res, err := s.CallTool(t.Context(), "one", nil); err != nil || res.Text() != "one" {
				t.Fatalf("one = %v, %v", res, err)
			}
		}
		_, err := s.CallTool(t.Context(), "one", nil)
		var rpc *mcp.Error
		if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal || string(rpc.Data) != `{"retryAfter":1800}` || !strings.Contains(err.Error(), "try again in 1800 s") {
			t.Errorf("the third call = %v (%+v), want an error with the time to wait", err, rpc)
		}
		if res, err := s.CallTool(t.Context(), "db_read", nil); err != nil || res.Text() != "db_read" {
			t.Errorf("another tool = %v, %v", res, err)
		}
	})
}

func ExampleLimiter() {
	srv := &mcp.Server{Name: "search", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "find"}, func(context.Context, struct{}) (string, error) { return "found", nil })
	l := &limit.Limiter{Tools: map[string]limit.Rate{"find": {Count: 1, Per: time.Hour}}}
	srv.Use(l.Limit)
	call := &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"find","arguments":{}}`)}
	for range 2 {
		_, err := srv.Handle(context.Background(), call)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// more calls of "find" than 1/h from one caller; try again in 3600 s
}
