package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
)

// becomesTask reports whether a call reaches the caller in front as a task.
func becomesTask(front, back mcp.Revision, tool string) bool {
	switch {
	case front == mcp.V2025_11_25 && back == mcp.V2026_07_28:
		return true // whatever the server makes of the call (T-105, T-106)
	case tool == "never":
		return false
	case front == mcp.V2026_07_28 && back == mcp.V2025_11_25:
		return tool == "required" // the others are answered sooner without (T-100)
	}
	return front == back && front >= mcp.V2025_11_25
}

// TRANSLATION T-100 to T-109: tools of every kind of task support work through a session
// that is served, on all 25 pairs of front and back, for callers who wait and for those who
// start a task.
func TestTaskPairs(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, front := range mcp.Revisions() {
		for _, back := range mcp.Revisions() {
			if !asks(front) && asks(back) && back != mcp.V2026_07_28 {
				continue // a question fails there: the server was told that it may ask
			}
			t.Run(fmt.Sprintf("%s on %s", front, back), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { taskPair(t, front, back) })
			})
		}
	}
}

func taskPair(t *testing.T, front, back mcp.Revision) {
	session := mcptest.Connect(t, taskServer(), middle(t), back)
	s := mcptest.Connect(t, &mcp.Server{Name: "front", Version: "1", Handler: session}, answeringYes(), front)
	for _, name := range []string{"optional", "required", "never", "late"} {
		if res, err := s.CallTool(t.Context(), name, nil); err != nil || res.Text() != "done" {
			t.Errorf("call %q = %v, %v", name, res, err)
		}
		task, err := s.StartTask(t.Context(), name, nil)
		if err != nil {
			t.Errorf("start %q: %v", name, err)
			continue
		}
		if (task.ID != "") != becomesTask(front, back, name) {
			t.Errorf("start %q has the id %q", name, task.ID)
		}
		if res, err := task.Wait(t.Context()); err != nil || res.Text() != "done" {
			t.Errorf("wait for %q = %v, %v", name, res, err)
		}
	}
	// A server of 2026-07-28 that makes no task has nothing to say before the result.
	if front != mcp.V2026_07_28 || becomesTask(front, back, "forever") {
		giveUp(t, s)
	}
	var rpc *mcp.Error
	if res, err := s.CallTool(t.Context(), "fail", nil); !errors.As(err, &rpc) || rpc.Message != "broken" {
		t.Errorf("fail = %v, %v", res, err)
	}
}

// giveUp starts an endless call and cancels it.
func giveUp(t *testing.T, s *mcp.Session) {
	t.Helper()
	task, err := s.StartTask(t.Context(), "forever", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Cancel(t.Context()); err != nil {
		t.Errorf("cancel: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if res, err := task.Wait(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cancelled call = %v, %v", res, err)
	}
	if info, err := task.Info(ctx); task.ID != "" && (err != nil || info.Status != "cancelled") {
		t.Errorf("a cancelled task is %+v, %v", info, err)
	}
}

// T-100 to T-103, T-112: a task of a server of 2025-11-25 is one of the caller of
// 2026-07-28 in front: its questions and its result are in tasks/get, and cancelling is
// acknowledged, also twice.
func TestTaskLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := &mcp.Server{Name: "back", Version: "1"}
		type name struct {
			Name string `json:"name"`
		}
		required := mcp.ToolExecution{TaskSupport: mcp.TaskRequired}
		mcp.AddTool(back, mcp.Tool{Name: "asks", Execution: required}, func(ctx context.Context, _ struct{}) (string, error) {
			var first, last name
			var err1, err2 error
			var wg sync.WaitGroup
			wg.Go(func() { first, err1 = mcp.Elicit[name](ctx, "First name?", mcp.QuestionKey("a")) })
			wg.Go(func() { last, err2 = mcp.Elicit[name](ctx, "Last name?", mcp.QuestionKey("b")) })
			wg.Wait()
			return first.Name + " " + last.Name, errors.Join(err1, err2)
		})
		mcp.AddTool(back, mcp.Tool{Name: "fails", Execution: required}, func(context.Context, struct{}) (string, error) {
			return "", errors.New("no luck")
		})
		mcp.AddTool(back, mcp.Tool{Name: "breaks", Execution: required}, func(context.Context, struct{}) (string, error) {
			return "", mcp.Errorf(-31999, "broken")
		})
		mcp.AddTool(back, mcp.Tool{Name: "forever", Execution: required}, func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		t.Cleanup(func() { back.Shutdown(context.Background()) })
		session := mcptest.Connect(t, back, middle(t), mcp.V2025_11_25)
		p := newShopper(t, &mcp.Server{Name: "front", Version: "1", Handler: session}, mcp.V2026_07_28)

		id := p.begin("asks", "{}").TaskID
		time.Sleep(10 * time.Second)
		s := p.state(id)
		if s.Status != "input_required" || len(s.InputRequests) != 2 || s.TTLMs == nil || s.ResultType != "complete" {
			t.Fatalf("asking: %+v", s)
		}
		answers := map[string]string{}
		for key, q := range s.InputRequests {
			if strings.Contains(string(q.Params), "related-task") {
				t.Errorf("the question names the task of the server: %s", q.Params)
			}
			answers[key] = map[bool]string{true: "Ada", false: "Lovelace"}[strings.Contains(string(q.Params), "First")]
		}
		for key, text := range answers {
			p.get("tasks/update", `"taskId":"`+id+`","inputResponses":{`+quote(key)+`:{"action":"accept","content":{"name":`+quote(text)+`}}}`)
		}
		time.Sleep(10 * time.Second)
		if s = p.state(id); s.Status != "completed" || string(s.Result) != `{"content":[{"type":"text","text":"Ada Lovelace"}]}` {
			t.Errorf("end: %+v %s", s, s.Result)
		}

		id = p.begin("fails", "{}").TaskID
		time.Sleep(10 * time.Second)
		if s = p.state(id); s.Status != "completed" || !strings.Contains(string(s.Result), `"isError":true`) {
			t.Errorf("a tool that fails: %+v %s", s, s.Result)
		}
		id = p.begin("breaks", "{}").TaskID
		time.Sleep(10 * time.Second)
		if s = p.state(id); s.Status != "failed" || s.Error == nil || s.Error.Code != -31999 || s.Result != nil {
			t.Errorf("a call that breaks: %+v", s)
		}
		id = p.begin("forever", "{}").TaskID
		for range 2 {
			if m := p.get("tasks/cancel", `"taskId":"`+id+`"`); m.Error != nil {
				t.Errorf("cancel: %s", show(&m))
			}
			if s = p.state(id); s.Status != "cancelled" {
				t.Errorf("cancelled: %+v", s)
			}
		}
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			wantError(t, p.get(method, `"taskId":"unknown","inputResponses":{}`), jsonrpc.CodeInvalidParams)
		}
		// Without the extension the call is waited for inside (T-104).
		p.send(modern(900, "tools/call", canElicit, `"name":"fails"`))
		if m := p.answer(900); !strings.Contains(string(m.Result), "no luck") {
			t.Errorf("without the extension: %s", show(&m))
		}
		p.send(modern(901, "tasks/get", canElicit, `"taskId":"`+id+`"`))
		wantError(t, p.answer(901), mcp.CodeMissingCapability)
	})
}

// T-112, TASK-25-061: a task that was lent belongs to the principal it was lent to.
func TestTaskLentPrincipals(t *testing.T) {
	session := mcptest.Connect(t, taskServer(), middle(t), mcp.V2025_11_25)
	front := &mcp.Server{Name: "front", Version: "1", Handler: session}
	front.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("Who") }
	srv := httptest.NewServer(front)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { front.Shutdown(t.Context()) })
	ada, bob := &httpShopper{t: t, url: srv.URL, who: "ada"}, &httpShopper{t: t, url: srv.URL, who: "bob"}
	ada.initialize()
	bob.initialize()
	id := taskOf(t, ada.get("tools/call", `"name":"fail","task":{}`)).Task.TaskID
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		wantError(t, bob.get(method, `"taskId":"`+id+`"`), jsonrpc.CodeInvalidParams)
	}
	if m := bob.get("tasks/list", ""); string(m.Result) != `{"tasks":[]}` {
		t.Errorf("the tasks of bob: %s", show(&m))
	}
	var page struct{ Tasks []wireTask }
	if m := ada.get("tasks/list", ""); json.Unmarshal(m.Result, &page) != nil || len(page.Tasks) != 1 || page.Tasks[0].TaskID != id {
		t.Errorf("the tasks of ada: %s", show(&m))
	}
	var rpc *jsonrpc.Error
	if m := ada.get("tasks/result", `"taskId":"`+id+`"`); !errors.As(m.Error, &rpc) || rpc.Message != "broken" {
		t.Errorf("result: %s", show(&m))
	}
	wantError(t, ada.get("tools/call", `"name":"never","task":{}`), jsonrpc.CodeMethodNotFound)
}
