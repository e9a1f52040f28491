package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// taskStub is a server of tasks written by hand.
type taskStub struct {
	mu    sync.Mutex
	state string   // what tasks/get answers, without braces; guarded by mu
	calls []string // methods, in order, those of tools/call with "+task" if one was asked for; guarded by mu
	polls []time.Time
	saw   func(m *jsonrpc.Message) // called with each message; may be nil
}

func (s *taskStub) become(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

func (s *taskStub) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *taskStub) note(m *jsonrpc.Message) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := m.Method
	if _, ok := m.Param("task"); ok {
		name += "+task"
	}
	s.calls = append(s.calls, name)
	if m.Method == "tasks/get" {
		s.polls = append(s.polls, time.Now())
	}
	if s.saw != nil {
		s.saw(m)
	}
	return s.state
}

const fields = `"taskId":"T","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z",`

// modern answers as a server of 2026-07-28 with the extension.
func (s *taskStub) modern(m jsonrpc.Message) []string {
	state := s.note(&m)
	const ttl = fields + `"ttlMs":600000,"pollIntervalMs":5000,`
	switch m.Method {
	case "server/discover":
		return result(m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private"}`)
	case "tools/call", "prompts/get":
		if name, _ := m.Param("name"); string(name) == `"direct"` {
			return result(m, `{"resultType":"complete","content":[{"type":"text","text":"direct"}]}`)
		}
		return result(m, `{"resultType":"task",`+ttl+`"status":"working"}`)
	case "tasks/get":
		return result(m, `{"resultType":"complete",`+ttl+state+`}`)
	}
	return result(m, `{"resultType":"complete"}`)
}

// legacy answers as a server of 2025-11-25, with or without tasks.
func (s *taskStub) legacy(capabilities string) func(m jsonrpc.Message) []string {
	return func(m jsonrpc.Message) []string {
		if m.Kind() != jsonrpc.KindRequest {
			s.note(&m)
			return []string{}
		}
		state := s.note(&m)
		const ttl = fields + `"ttl":600000,"pollInterval":5000,`
		_, augmented := m.Param("task")
		switch m.Method {
		case "server/discover":
			return failure(m, -32601, "")
		case "initialize":
			return result(m, `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"serverInfo":{"name":"stub","version":"1"}}`)
		case "tools/list":
			return result(m, `{"tools":[
				{"name":"plain","inputSchema":{"type":"object"}},
				{"name":"forbidden","inputSchema":{"type":"object"},"execution":{"taskSupport":"forbidden"}},
				{"name":"optional","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},
				{"name":"required","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`)
		case "tools/call":
			name, _ := m.Param("name")
			switch {
			case augmented:
				return result(m, `{"task":{`+ttl+`"status":"working"}}`)
			case string(name) == `"required"` && strings.Contains(capabilities, "tasks"):
				return failure(m, -32601, "")
			}
			return result(m, `{"content":[{"type":"text","text":"plain"}]}`)
		case "tasks/get", "tasks/cancel":
			return result(m, `{`+ttl+state+`}`)
		case "tasks/result":
			if strings.Contains(state, "working") {
				return []string{} // it waits
			}
			return result(m, `{"content":[{"type":"text","text":"from a task"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T"}}}`)
		}
		return result(m, `{}`)
	}
}

func (s *taskStub) connect(t *testing.T, c *mcp.Client, reply func(m jsonrpc.Message) []string) *mcp.Session {
	t.Helper()
	session, err := c.Connect(t.Context(), stub(t, reply))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// XTASK-26-002, -012, -013, -018, -019, -021, -025, -028: a call that is answered with a task is
// polled as often as the server says, its questions are put once each, and answered by
// their keys; and a call that is answered at once is as good.
func TestClientFollowsATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &taskStub{state: `"status":"working"`}
		const question = `{"method":"elicitation/create","params":{"mode":"form","message":"%s?","requestedSchema":{"type":"object","properties":{"confirm":{"type":"boolean"}}}}}`
		a, b := fmt.Sprintf(question, "a"), fmt.Sprintf(question, "b")
		var answered []string
		srv.saw = func(m *jsonrpc.Message) {
			if m.Method != "tasks/update" {
				return
			}
			raw, _ := m.Param("inputResponses")
			var w map[string]json.RawMessage
			if err := json.Unmarshal(raw, &w); err != nil {
				t.Errorf("inputResponses: %v", err)
			}
			answered = append(answered, strings.Join(slices.Sorted(maps.Keys(w)), "+"))
		}
		var asked []string
		c := &mcp.Client{Name: "c", OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = append(asked, r.Message)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
		}}
		s := srv.connect(t, c, srv.modern)
		if res, err := s.CallTool(t.Context(), "direct", nil); err != nil || res.Text() != "direct" {
			t.Errorf("a direct answer: %v, %v", res, err)
		}
		go func() {
			time.Sleep(7 * time.Second)
			srv.become(`"status":"input_required","inputRequests":{"a":` + a + `}`)
			time.Sleep(5 * time.Second) // the server is slow to notice the answer
			srv.become(`"status":"input_required","inputRequests":{"a":` + a + `,"b":` + b + `}`)
			time.Sleep(5 * time.Second)
			srv.become(`"status":"completed","result":{"content":[{"type":"text","text":"done"}]}`)
		}()
		res, err := s.CallTool(t.Context(), "slow", nil)
		if err != nil || res.Text() != "done" {
			t.Fatalf("call = %v, %v", res, err)
		}
		if got := strings.Join(asked, " "); got != "a? b?" {
			t.Errorf("asked %s", got)
		}
		if got := strings.Join(answered, " "); got != "a b" {
			t.Errorf("answered %s", got)
		}
		for i, at := range srv.polls[1:] {
			if d := at.Sub(srv.polls[i]); d < 5*time.Second {
				t.Errorf("polled after %v, want 5s and more", d)
			}
		}
		if calls := srv.log(); slices.Contains(calls, "notifications/cancelled") || slices.Contains(calls, "tasks/cancel") {
			t.Errorf("sent %v", calls)
		}
	})
}

// XTASK-26-003: a task in answer to a request that cannot become one is invalid. XTASK-26-020,
// -047: a question of a task is like any other; one that the client did not declare is not
// answered.
func TestClientRefusesOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &taskStub{state: `"status":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}`}
		s := srv.connect(t, &mcp.Client{Name: "c"}, srv.modern)
		if res, err := s.GetPrompt(t.Context(), "p", nil); err == nil || !strings.Contains(err.Error(), "task") {
			t.Errorf("a prompt = %v, %v", res, err)
		}
		var rpc *mcp.Error
		if res, err := s.CallTool(t.Context(), "slow", nil); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeMethodNotFound {
			t.Errorf("a call whose questions nobody answers = %v, %v", res, err)
		}
		if calls := srv.log(); slices.Contains(calls, "tasks/update") {
			t.Errorf("sent %v", calls)
		}
	})
}

// XTASK-26-031, CANC-25-003, -005: giving up a call that has become a task cancels the task, with
// tasks/cancel; notifications/cancelled does not name the request of a task.
func TestClientGivesUpATask(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctestRun(t, string(rev), func(t *testing.T) {
			srv := &taskStub{state: `"status":"working"`}
			var made, withdrawn string
			srv.saw = func(m *jsonrpc.Message) {
				switch m.Method {
				case "tools/call":
					made = string(m.ID.AppendJSON(nil))
				case "notifications/cancelled":
					raw, _ := m.Param("requestId")
					withdrawn += string(raw) + " "
				}
			}
			reply := srv.modern
			if rev == mcp.V2025_11_25 {
				reply = srv.legacy(`{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`)
			}
			s := srv.connect(t, &mcp.Client{Name: "c"}, reply)
			ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
			defer cancel()
			if res, err := s.CallTool(ctx, "required", nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("call = %v, %v", res, err)
			}
			synctest.Wait()
			if calls := srv.log(); !slices.Contains(calls, "tasks/cancel") {
				t.Errorf("sent %v", calls)
			}
			if strings.Contains(withdrawn, made+" ") {
				t.Errorf("notifications/cancelled for %s, and %s made the task", withdrawn, made)
			}
			// Waiting alone may be given up without that.
			before := len(srv.log())
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if res, err := s.Task("T").Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("wait = %v, %v", res, err)
			}
			synctest.Wait()
			if calls := srv.log()[before:]; slices.Contains(calls, "tasks/cancel") {
				t.Errorf("the end of waiting sent %v", calls)
			}
		})
	}
}

// TASK-25-002, -003, -004, -005, -007: a call is made as a task where the server and the tool want
// that, and nowhere else. TASK-25-013, -014: without any notification of the server.
func TestClientAugments(t *testing.T) {
	const tasks = `{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`
	tests := []struct {
		capabilities, tool string
		call, start        bool // augmented
	}{
		{tasks, "plain", false, false},
		{tasks, "forbidden", false, false},
		{tasks, "optional", false, true},
		{tasks, "required", true, true},
		{`{"tools":{}}`, "required", false, false},
		{`{"tools":{},"tasks":{"cancel":{}}}`, "optional", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.tool, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := &taskStub{state: `"status":"completed"`}
				s := srv.connect(t, &mcp.Client{Name: "c"}, srv.legacy(tt.capabilities))
				check := func(what string, res *mcp.ToolResult, err error, want bool) {
					t.Helper()
					text := map[bool]string{true: "from a task", false: "plain"}[want]
					if err != nil || res.Text() != text {
						t.Errorf("%s = %v, %v, want %q", what, res, err, text)
					}
					if calls := srv.log(); slices.Contains(calls, "tools/call+task") != want {
						t.Errorf("%s sent %v", what, calls)
					}
					srv.mu.Lock()
					srv.calls = nil
					srv.mu.Unlock()
				}
				res, err := s.CallTool(t.Context(), tt.tool, nil)
				check("CallTool", res, err, tt.call)
				task, err := s.StartTask(t.Context(), tt.tool, nil)
				if err != nil {
					t.Fatal(err)
				}
				if (task.ID != "") != tt.start {
					t.Errorf("StartTask has the id %q", task.ID)
				}
				res, err = task.Wait(t.Context())
				check("StartTask", res, err, tt.start)
			})
		})
	}
}

// TASK-25-012, -025, SHTTP-25-014: over HTTP a task is polled by plain JSON, and the request for
// its result is a stream that carries its questions first and the answer last.
func TestTaskStreams(t *testing.T) {
	shop := taskShop()
	srv := httptest.NewServer(shop)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { shop.Shutdown(t.Context()) })
	h := &httpShopper{t: t, url: srv.URL}
	res, _ := h.send("initialize", "", `"protocolVersion":"2025-11-25","capabilities":`+canElicit+`,"clientInfo":{"name":"c","version":"1"}`)
	h.session = res.Header.Get("Mcp-Session-Id")
	send := func(frame string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, strings.NewReader(frame))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Session-Id", h.session)
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	res, m := h.send("tools/call", "", `"name":"later","arguments":{},"task":{}`)
	id := taskOf(t, m).Task.TaskID
	if got := res.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("the answer to the call is %q", got)
	}
	if res, _ = h.send("tasks/get", "", `"taskId":"`+id+`"`); res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the answer to tasks/get is %q", res.Header.Get("Content-Type"))
	}
	stream := send(`{"jsonrpc":"2.0","id":77,"method":"tasks/result","params":{"taskId":"` + id + `"}}`)
	if got := stream.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("the answer to tasks/result is %q", got)
	}
	var seen []string
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "" {
			continue
		}
		m, err := jsonrpc.Decode([]byte(data), jsonrpc.Limits{})
		if err != nil {
			t.Fatalf("event %q: %v", data, err)
		}
		if m.Kind() == jsonrpc.KindResponse {
			seen = append(seen, m.ID.String())
			continue
		}
		seen = append(seen, m.Method)
		answer := jsonrpc.AppendResult(nil, m.ID, json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`))
		if res := send(string(answer)); res.StatusCode != http.StatusAccepted {
			t.Errorf("an answer is answered by HTTP %d", res.StatusCode)
		}
	}
	if got := strings.Join(seen, " "); got != "elicitation/create elicitation/create 77" {
		t.Errorf("the stream had %s", got)
	}
}

// A request for the result of a 2025-11-25 task that fails is made again, and the result arrives.
func TestTaskResultIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(http.ResponseWriter){
		"refused": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"dropped": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := taskShop()
			var asked atomic.Int32
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if bytes.Contains(body, []byte(`"tasks/result"`)) && asked.Add(1) == 1 {
					refuse(w)
					return
				}
				shop.ServeHTTP(w, r)
			}))
			defer web.Close()
			s, err := (&mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}}).Dial(t.Context(), web.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if res, err := s.CallTool(t.Context(), "must", nil); err != nil || res.Text() != "ran" || asked.Load() != 2 {
				t.Errorf("CallTool = %v, %v after %d requests for the result, want its result after 2", res, err, asked.Load())
			}
		})
	}
}
