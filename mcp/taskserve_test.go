package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/store"
)

// The last request for the result of a task is the one that puts its questions, since the
// client may have lost the stream of those before; if it is given up, the one before does
// again. TASK-25-024, -032, -035.
func TestTaskResultTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2025_11_25)
		id := p.begin("later", "{}").TaskID
		// next returns the next message other than a notification, except one of a cancellation.
		next := func() jsonrpc.Message {
			t.Helper()
			for {
				if m := p.read(); m.Kind() != jsonrpc.KindNotification || m.Method == "notifications/cancelled" {
					return m
				}
			}
		}
		both := func(what string) (question jsonrpc.Message, cancelled jsonrpc.Message) {
			t.Helper()
			for range 2 {
				switch m := next(); m.Method {
				case "elicitation/create":
					question = m
				case "notifications/cancelled":
					cancelled = m
				default:
					t.Fatalf("%s: got %s", what, show(&m))
				}
			}
			return question, cancelled
		}
		names := func(note jsonrpc.Message, id jsonrpc.ID) bool {
			raw, _ := note.Param("requestId")
			return string(raw) == string(id.AppendJSON(nil))
		}
		synctest.Wait()
		one := p.ask("tasks/result", `"taskId":"`+id+`"`)
		first := next()
		two := p.ask("tasks/result", `"taskId":"`+id+`"`)
		second, over := both("a second request for the result")
		if first.Method != "elicitation/create" || !names(over, first.ID) {
			t.Fatalf("the first question %s was followed by %s", show(&first), show(&over))
		}
		p.sendf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, two)
		third, over := both("the second request is given up")
		if !names(over, second.ID) {
			t.Fatalf("the second question %s was followed by %s", show(&second), show(&over))
		}
		yes := json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)
		p.send(string(jsonrpc.AppendResult(nil, third.ID, yes)))
		last := next()
		p.send(string(jsonrpc.AppendResult(nil, last.ID, yes)))
		if m := p.answer(one); !strings.Contains(string(m.Result), "Ada Ada") {
			t.Errorf("result: %s", show(&m))
		}
	})
}

// XTASK-26-036, -037, SUB-26: a subscription to tasks tells what tasks/get would, from the
// state at its beginning, of known tasks alone, and no progress or log messages.
func TestTaskListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2026_07_28)
		ended := p.begin("fails", "{}").TaskID
		synctest.Wait()
		slow := p.begin("slow", `{"seconds":2}`).TaskID
		p.send(modern(90, "subscriptions/listen", canTask, `"notifications":{"taskIds":["unknown","`+ended+`","`+slow+`"]}`))
		m := p.read()
		if honoured, _ := m.ParamIn("notifications", "taskIds"); string(honoured) != `["`+ended+`","`+slow+`"]` {
			t.Fatalf("acknowledged: %s", show(&m))
		}
		told := map[string]string{}
		for told[slow] != "completed" {
			m := p.read()
			var s wireTask
			if tag, _ := m.ParamIn("_meta", "io.modelcontextprotocol/subscriptionId"); m.Method != "notifications/tasks" || string(tag) != "90" || json.Unmarshal(m.Params, &s) != nil {
				t.Fatalf("got %s", show(&m))
			}
			told[s.TaskID] = s.Status
			if s.Status == "completed" && s.Result == nil || s.TTLMs == nil || s.CreatedAt == "" {
				t.Errorf("not the whole task: %s", show(&m))
			}
		}
		if told[ended] != "completed" || len(told) != 2 {
			t.Errorf("told of %v", told)
		}
	})
}

// as serves a request of 2025-11-25 or 2026-07-28 over HTTP.
type httpShopper struct {
	t       testing.TB
	url     string
	who     string
	session string // of 2025-11-25
	id      int
}

func (h *httpShopper) send(method, capabilities, more string) (*http.Response, jsonrpc.Message) {
	h.t.Helper()
	h.id++
	frame := modern(int64(h.id), method, capabilities, more)
	if capabilities == "" {
		frame = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, h.id, method, more)
	}
	req, err := http.NewRequestWithContext(h.t.Context(), "POST", h.url, strings.NewReader(frame))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Who", h.who)
	if capabilities != "" {
		req.Header.Set("MCP-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", method)
		var w struct {
			Params struct{ Name, TaskID string }
		}
		if err := json.Unmarshal([]byte(frame), &w); err != nil {
			h.t.Fatal(err)
		}
		req.Header.Set("Mcp-Name", w.Params.Name+w.Params.TaskID)
	} else if h.session != "" {
		req.Header.Set("Mcp-Session-Id", h.session)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	m, err := jsonrpc.Decode(body, jsonrpc.Limits{})
	if err != nil {
		h.t.Fatalf("%s: HTTP %d %s: %v", method, res.StatusCode, body, err)
	}
	return res, m
}

func (h *httpShopper) get(method, more string) jsonrpc.Message {
	h.t.Helper()
	capabilities := canTask
	if h.session != "" {
		capabilities = ""
	}
	_, m := h.send(method, capabilities, more)
	return m
}

func (h *httpShopper) initialize() string {
	h.t.Helper()
	res, m := h.send("initialize", "", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}`)
	h.session = res.Header.Get("Mcp-Session-Id")
	return string(m.Result)
}

// TASK-25-042, -043, -044, -045, -056, -060, -061, XTASK-26-046: a task belongs to its
// principal, whoever else knows its id, on both revisions at once; and the list has all of
// them, page by page, and nobody else's.
func TestTaskPrincipals(t *testing.T) {
	shop := taskShop()
	shop.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("Who") }
	shop.Limits.PageSize = 4
	srv := httptest.NewServer(shop)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { shop.Shutdown(t.Context()) })
	ada := &httpShopper{t: t, url: srv.URL, who: "ada"}
	own := map[string]bool{}
	for range 7 {
		own[taskOf(t, ada.get("tools/call", `"name":"fails"`)).TaskID] = true
	}
	asks := taskOf(t, ada.get("tools/call", `"name":"asks"`)).TaskID
	own[asks] = true

	for _, who := range []string{"bob", ""} {
		other := &httpShopper{t: t, url: srv.URL, who: who}
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			m := other.get(method, `"taskId":"`+asks+`","inputResponses":{}`)
			never := other.get(method, `"taskId":"`+strings.Repeat("A", len(asks))+`","inputResponses":{}`)
			wantError(t, m, jsonrpc.CodeInvalidParams)
			if m.Error != nil && strings.Replace(m.Error.Message, asks, "", 1) != strings.Replace(never.Error.Message, strings.Repeat("A", len(asks)), "", 1) {
				t.Errorf("%s tells a task of somebody else from one that never was: %s, %s", method, m.Error.Message, never.Error.Message)
			}
		}
		said := other.initialize()
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			wantError(t, other.get(method, `"taskId":"`+asks+`"`), jsonrpc.CodeInvalidParams)
		}
		list := other.get("tasks/list", "")
		if listed := strings.Contains(said, `"list":{}`); listed != (who != "") {
			t.Errorf("%q was told %s", who, said)
		}
		if who == "" {
			wantError(t, list, jsonrpc.CodeMethodNotFound)
		} else if string(list.Result) != `{"tasks":[]}` {
			t.Errorf("the tasks of %q are %s", who, show(&list))
		}
	}

	ada.initialize()
	wantError(t, ada.get("tasks/list", `"cursor":"made up"`), jsonrpc.CodeInvalidParams)
	more := ""
	pages := 0
	for seen := map[string]bool{}; ; pages++ {
		var page struct {
			Tasks      []wireTask
			NextCursor *string
		}
		m := ada.get("tasks/list", more)
		if err := json.Unmarshal(m.Result, &page); err != nil {
			t.Fatalf("%s: %v", show(&m), err)
		}
		for _, s := range page.Tasks {
			if !own[s.TaskID] || seen[s.TaskID] || s.TTL == nil || strings.Contains(string(m.Result), "related-task") {
				t.Errorf("listed: %+v", s)
			}
			seen[s.TaskID] = true
			if got := taskOf(t, ada.get("tasks/get", `"taskId":"`+s.TaskID+`"`)); got.TaskID != s.TaskID {
				t.Errorf("listed, but tasks/get says %+v", got)
			}
		}
		if page.NextCursor == nil {
			if len(seen) != len(own) {
				t.Errorf("%d tasks are listed, there are %d", len(seen), len(own))
			}
			break
		}
		more = `"cursor":` + quote(*page.NextCursor)
	}
	if pages != 1 {
		t.Errorf("8 tasks took %d further pages of 4", pages)
	}
}

// XTASK-26-038, HTTP-26: Mcp-Name is the id of the task.
func TestTaskHeader(t *testing.T) {
	shop := taskShop()
	srv := httptest.NewServer(shop)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { shop.Shutdown(t.Context()) })
	id := taskOf(t, post(t, srv, "", "fails", modern(1, "tools/call", canTask, `"name":"fails"`))).TaskID
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		frame := modern(2, method, canTask, `"taskId":"`+id+`","inputResponses":{}`)
		wantError(t, post(t, srv, "", "other", frame), mcp.CodeHeaderMismatch)
		if m := post(t, srv, "", id, frame); m.Error != nil {
			t.Errorf("%s: %s", method, show(&m))
		}
	}
	// Our client sends it, and the frames it exchanges obey the schemas of the extension.
	client := &mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2026_07_28}}
	client.OnFrame = mcptest.Check(t, mcp.V2026_07_28, true, nil)
	s, err := client.Dial(t.Context(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// Whether the cancellation or the end came first is not told.
	if info, err := s.Task(id).Info(t.Context()); err != nil || info.Status != "completed" && info.Status != "cancelled" {
		t.Errorf("task = %+v, %v", info, err)
	}
}

// TASK-25-016, -058, XTASK-26-045: ids are strings of 128 random bits and more, each used
// once.
func TestTaskIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2026_07_28)
		seen := map[string]bool{}
		letters := map[rune]bool{}
		for range 50 {
			id := p.begin("fails", "{}").TaskID
			if len(id) < 26 || seen[id] { // 5 bits each
				t.Errorf("id %q", id)
			}
			seen[id] = true
			for _, r := range id {
				letters[r] = true
			}
		}
		if len(letters) < 30 {
			t.Errorf("%d different letters in 50 ids", len(letters))
		}
	})
}

// TASK-25-027, -063, XTASK-26-015: work that takes longer than its ttl is stopped, and what
// is kept is gone when that has passed; a caller may ask for less and gets no more.
func TestTaskTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := taskShop()
		shop.Tasks.TTL = time.Minute
		p := newShopper(t, shop, mcp.V2025_11_25)
		ttl := func(asked string) int64 {
			return *taskOf(t, p.get("tools/call", `"name":"fails","task":{`+asked+`}`)).Task.TTL
		}
		if a, b, c := ttl(``), ttl(`"ttl":5000`), ttl(`"ttl":86400000`); a != 60_000 || b != 5000 || c != 60_000 {
			t.Errorf("ttl is %d by default, %d when less was asked for, %d when more was", a, b, c)
		}
		short := taskOf(t, p.get("tools/call", `"name":"slow","arguments":{"seconds":600},"task":{"ttl":3000}`)).Task.TaskID
		kept := p.begin("fails", "{}").TaskID
		time.Sleep(2 * time.Second)
		if s := p.state(short); s.Status != "working" {
			t.Errorf("within the ttl: %+v", s)
		}
		time.Sleep(2 * time.Second)
		wantError(t, p.get("tasks/get", `"taskId":"`+short+`"`), jsonrpc.CodeInvalidParams)
		if s := p.state(kept); s.Status != "failed" {
			t.Errorf("kept: %+v", s)
		}
		time.Sleep(time.Minute)
		wantError(t, p.get("tasks/get", `"taskId":"`+kept+`"`), jsonrpc.CodeInvalidParams)
		wantError(t, p.get("tasks/result", `"taskId":"`+kept+`"`), jsonrpc.CodeInvalidParams)
	})
}

// TASK-25-062, -063: a caller who floods the server with tasks is refused, others are not;
// handlers that go on when their task was cancelled count until they end.
func TestTaskFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := taskShop()
		shop.Tasks.Max = 3
		p := newShopper(t, shop, mcp.V2026_07_28)
		for range 3 {
			id := p.begin("stubborn", `{"seconds":60}`).TaskID
			p.get("tasks/cancel", `"taskId":"`+id+`"`)
		}
		m := p.get("tools/call", `"name":"slow","arguments":{"seconds":1}`)
		wantError(t, m, jsonrpc.CodeInternal)
		time.Sleep(2 * time.Minute)
		p.begin("slow", `{"seconds":1}`)
	})
}

// brokenTasks is a store that fails when it is told to.
type brokenTasks struct {
	store.Tasks
	mu     sync.Mutex
	kept   map[string]store.Task // guarded by mu
	broken bool                  // guarded by mu
}

func (b *brokenTasks) fail(broken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = broken
}

func (b *brokenTasks) PutTask(_ context.Context, r store.Task) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return errors.New("disk full")
	}
	if b.kept == nil {
		b.kept = map[string]store.Task{}
	}
	b.kept[r.ID] = r
	return nil
}

func (b *brokenTasks) GetTask(_ context.Context, id string) (store.Task, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return store.Task{}, false, errors.New("disk full")
	}
	r, ok := b.kept[id]
	return r, ok, nil
}

// XTASK-26-009, -010, TASK-25-051: a store that fails is an internal error of the request;
// no handle is given out for what was not kept. A result that cannot be kept is there
// while the process lives, and is kept as soon as that can be done.
func TestTaskStoreFails(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctestRun(t, string(rev), func(t *testing.T) {
			kept := &brokenTasks{}
			shop := taskShop()
			shop.Tasks.Store = kept
			p := newShopper(t, shop, rev)
			id := p.begin("slow", `{"seconds":1}`).TaskID
			kept.fail(true)
			m := p.get("tools/call", `"name":"slow","task":{}`)
			wantError(t, m, jsonrpc.CodeInternal)
			if m.Error != nil && !strings.Contains(m.Error.Message, "disk full") {
				t.Errorf("the error says %q", m.Error.Message)
			}
			wantError(t, p.get("tasks/get", `"taskId":"unknown"`), jsonrpc.CodeInternal)
			time.Sleep(2 * time.Second)
			if s := p.state(id); s.Status != "completed" {
				t.Errorf("what could not be kept: %+v", s)
			}
			kept.fail(false)
			p.state(id)
			if r, _, _ := kept.GetTask(t.Context(), id); !r.Over {
				t.Errorf("not kept when it could be: %s", r.Data)
			}
		})
	}
}

// A client that goes away does not end its task, and another connection finds it.
func TestTaskOutlivesItsClient(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctestRun(t, string(rev), func(t *testing.T) {
			shop := taskShop()
			p := newShopper(t, shop, rev)
			id := p.begin("slow", `{"seconds":2}`).TaskID
			p.conn.Close()
			time.Sleep(3 * time.Second)
			if s := newShopper(t, shop, rev).state(id); s.Status != "completed" {
				t.Errorf("after its client has gone: %+v", s)
			}
		})
	}
}
