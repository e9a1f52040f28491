package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	canTask   = `{"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	relatedTo = "io.modelcontextprotocol/related-task"
)

// taskShop has a tool for each way in which a task goes.
func taskShop() *mcp.Server {
	s := &mcp.Server{Name: "shop", Version: "1"}
	type name struct {
		Name string `json:"name"`
	}
	type wait struct {
		Seconds int `json:"seconds,omitempty"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "plain"}, func(context.Context, struct{}) (string, error) { return "plain", nil })
	mcp.AddTool(s, mcp.Tool{Name: "slow", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(ctx context.Context, in wait) (string, error) {
		for i := range in.Seconds {
			mcp.Progress(ctx, float64(i), float64(in.Seconds), fmt.Sprintf("second %d", i))
			mcp.Log(ctx).Warn("slow")
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		return "done", nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "stubborn", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(ctx context.Context, in wait) (string, error) {
		for i := range in.Seconds {
			mcp.Progress(ctx, float64(i), 0, "still there")
			time.Sleep(time.Second)
		}
		return "done all the same", nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "must", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(context.Context, struct{}) (string, error) { return "ran", nil })
	mcp.AddTool(s, mcp.Tool{Name: "fails", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(context.Context, struct{}) (string, error) {
		return "", errors.New("no luck")
	})
	mcp.AddTool(s, mcp.Tool{Name: "breaks", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(context.Context, struct{}) (string, error) {
		return "", &mcp.Error{Code: -31999, Message: "broken", Data: json.RawMessage(`{"why":1}`)}
	})
	mcp.AddTool(s, mcp.Tool{Name: "panics", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(context.Context, struct{}) (string, error) {
		panic("secret")
	})
	mcp.AddTool(s, mcp.Tool{Name: "asks", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(ctx context.Context, _ struct{}) (string, error) {
		// One key twice: the second question must get another.
		first, err := mcp.Elicit[name](ctx, "First name?", mcp.QuestionKey("name"))
		if err != nil {
			return "", err
		}
		time.Sleep(time.Second)
		last, err := mcp.Elicit[name](ctx, "Last name?", mcp.QuestionKey("last"))
		if err != nil {
			return "", err
		}
		return first.Name + " " + last.Name, nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "both", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(ctx context.Context, _ struct{}) (string, error) {
		var first, last name
		var err1, err2 error
		var wg sync.WaitGroup
		wg.Go(func() { first, err1 = mcp.Elicit[name](ctx, "First name?", mcp.QuestionKey("same")) })
		wg.Go(func() { last, err2 = mcp.Elicit[name](ctx, "Last name?", mcp.QuestionKey("same")) })
		wg.Wait()
		return first.Name + last.Name, errors.Join(err1, err2)
	})
	mcp.AddTool(s, mcp.Tool{Name: "later", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional, OnDetach: true}}, func(ctx context.Context, _ struct{}) (string, error) {
		who, err := mcp.Elicit[name](ctx, "Name?", mcp.QuestionKey("name"))
		if err != nil {
			return "", err
		}
		mcp.Detach(ctx)
		last, err := mcp.Elicit[name](ctx, "Last name?", mcp.QuestionKey("name"))
		if err != nil {
			return "", err
		}
		return who.Name + " " + last.Name, nil
	})
	return s
}

// taskState is a task as either revision shows it.
type wireTask struct {
	ResultType     string
	TaskID         string `json:"taskId"`
	Status         string
	StatusMessage  string
	CreatedAt      string
	LastUpdatedAt  string
	TTL            *int64 `json:"ttl"`
	TTLMs          *int64 `json:"ttlMs"`
	PollInterval   *int64
	PollIntervalMs *int64
	InputRequests  map[string]struct {
		Method string
		Params json.RawMessage
	}
	Result json.RawMessage
	Error  *jsonrpc.Error
	Task   *wireTask
}

func taskOf(t testing.TB, m jsonrpc.Message) wireTask {
	t.Helper()
	var s wireTask
	if m.Error != nil {
		t.Fatalf("got %s, want a task", show(&m))
	}
	if err := json.Unmarshal(m.Result, &s); err != nil {
		t.Fatalf("got %s: %v", show(&m), err)
	}
	return s
}

// shopper is a hand-written client of a revision.
type shopper struct {
	*peer
	rev mcp.Revision
	id  int64
}

func newShopper(t testing.TB, s *mcp.Server, rev mcp.Revision) *shopper {
	p := &shopper{peer: rawClient(t, s), rev: rev}
	if rev != mcp.V2026_07_28 {
		p.initialize(rev, canElicit)
	}
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return p
}

// ask sends a request. More are members of params, without braces.
func (p *shopper) ask(method, more string) int64 {
	p.t.Helper()
	p.id++
	if p.rev == mcp.V2026_07_28 {
		p.send(modern(p.id, method, canTask, more))
	} else {
		p.sendf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, p.id, method, more)
	}
	return p.id
}

// get sends a request and returns the answer.
func (p *shopper) get(method, more string) jsonrpc.Message {
	p.t.Helper()
	return p.answer(p.ask(method, more))
}

// begin starts a task and returns it.
func (p *shopper) begin(tool, args string) wireTask {
	p.t.Helper()
	if p.rev == mcp.V2026_07_28 {
		return taskOf(p.t, p.get("tools/call", `"name":"`+tool+`","arguments":`+args))
	}
	return *taskOf(p.t, p.get("tools/call", `"name":"`+tool+`","arguments":`+args+`,"task":{"ttl":60000},"_meta":{"progressToken":"`+tool+`"}`)).Task
}

func (p *shopper) state(id string) wireTask {
	p.t.Helper()
	return taskOf(p.t, p.get("tasks/get", `"taskId":"`+id+`"`))
}

// XTASK-26-006, -009, -015, -016, -017, -022, -023, -024, -026, -029, -030: a task of
// 2026-07-28 from its creation to its result, with its questions.
func TestTaskOfExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2026_07_28)
		made := p.begin("asks", "{}")
		if made.ResultType != "task" || made.Status != "working" || made.TTLMs == nil || *made.TTLMs != 3_600_000 || made.PollIntervalMs == nil || made.Result != nil {
			t.Fatalf("created: %+v", made)
		}
		synctest.Wait()
		s := p.state(made.TaskID)
		if s.ResultType != "complete" || s.Status != "input_required" || len(s.InputRequests) != 1 || s.InputRequests["name"].Method != "elicitation/create" {
			t.Fatalf("asking: %+v", s)
		}
		// Keys of closed questions are ignored, and an invalid answer is refused.
		for _, bad := range []string{`"inputResponses":{"name":7}`, `"inputResponses":[]`, `"x":1`} {
			wantError(t, p.get("tasks/update", `"taskId":"`+made.TaskID+`",`+bad), jsonrpc.CodeInvalidParams)
		}
		ack := p.get("tasks/update", `"taskId":"`+made.TaskID+`","inputResponses":{"other":{"action":"decline"}}`)
		if string(ack.Result) != `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"shop","version":"1"}}}` {
			t.Fatalf("update is acknowledged with %s", ack.Result)
		}
		if s = p.state(made.TaskID); s.Status != "input_required" {
			t.Fatalf("after an answer to nothing: %+v", s)
		}
		p.get("tasks/update", `"taskId":"`+made.TaskID+`","inputResponses":{"name":{"action":"accept","content":{"name":"Ada"}},"more":{}}`)
		if s = p.state(made.TaskID); s.Status != "working" || s.InputRequests != nil {
			t.Fatalf("after the answer: %+v", s)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		// The first key again does not answer the second question.
		p.get("tasks/update", `"taskId":"`+made.TaskID+`","inputResponses":{"name":{"action":"decline"}}`)
		if s = p.state(made.TaskID); len(s.InputRequests) != 1 || s.InputRequests["last"].Method == "" {
			t.Fatalf("second question: %+v", s)
		}
		p.get("tasks/update", `"taskId":"`+made.TaskID+`","inputResponses":{"last":{"action":"accept","content":{"name":"Lovelace"}}}`)
		synctest.Wait()
		s = p.state(made.TaskID)
		if s.Status != "completed" || string(s.Result) != `{"content":[{"type":"text","text":"Ada Lovelace"}]}` || s.CreatedAt != made.CreatedAt || s.LastUpdatedAt <= s.CreatedAt {
			t.Fatalf("end: %+v %s", s, s.Result)
		}
		// An update of what has ended changes nothing.
		p.get("tasks/update", `"taskId":"`+made.TaskID+`","inputResponses":{"last":{"action":"decline"}}`)
		if again := p.state(made.TaskID); again.LastUpdatedAt != s.LastUpdatedAt || again.Status != "completed" {
			t.Errorf("after an update of a finished task: %+v", again)
		}
	})
}

// XTASK-26-016, -022, -024: two questions at once, whose author gave them one key,
// have two, and are answered one by one.
func TestTaskAsksTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2026_07_28)
		id := p.begin("both", "{}").TaskID
		synctest.Wait()
		s := p.state(id)
		if len(s.InputRequests) != 2 {
			t.Fatalf("open questions: %+v", s)
		}
		keys := slices.Sorted(maps.Keys(s.InputRequests))
		for i, want := range []string{"input_required", "completed"} {
			key := keys[i]
			p.get("tasks/update", `"taskId":"`+id+`","inputResponses":{"`+key+`":{"action":"accept","content":{"name":"x"}}}`)
			synctest.Wait()
			if s = p.state(id); s.Status != want {
				t.Errorf("after %q: %+v", key, s)
			}
		}
	})
}

// XTASK-26-011: a tool that asks before it becomes a task is asked by rounds of the
// call, and afterwards by the task; a key of the rounds is not one of the task.
func TestTaskDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2026_07_28)
		state, questions := inputRequired(t, p.get("tools/call", `"name":"later"`))
		made := taskOf(t, p.get("tools/call", `"name":"later","requestState":`+quote(state)+`,`+accept(questions, `{"name":"Ada"}`)))
		if made.ResultType != "task" {
			t.Fatalf("second round: %+v", made)
		}
		synctest.Wait()
		p.get("tasks/update", `"taskId":"`+made.TaskID+`",`+accept(p.state(made.TaskID).InputRequests, `{"name":"Lovelace"}`))
		synctest.Wait()
		if s := p.state(made.TaskID); !strings.Contains(string(s.Result), "Ada Lovelace") {
			t.Errorf("end: %+v %s", s, s.Result)
		}
	})
}

// XTASK-26-001, -004, -007, -027, -033, -035, -039, -040, VER-26-005: a caller that did not declare
// the extension on this very request gets the result, or the missing capability.
func TestTaskOptIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2026_07_28)
		id := p.begin("slow", `{"seconds":1}`).TaskID
		p.send(modern(50, "tools/call", `{}`, `"name":"slow","arguments":{"seconds":1}`))
		if s := taskOf(t, p.answer(50)); s.ResultType != "complete" || s.TaskID != "" {
			t.Errorf("without the extension: %+v", s)
		}
		for i, frame := range []string{
			modern(60, "tools/call", `{}`, `"name":"must"`),
			modern(61, "tasks/get", `{}`, `"taskId":"`+id+`"`),
			modern(62, "tasks/update", `{}`, `"taskId":"`+id+`","inputResponses":{}`),
			modern(63, "tasks/cancel", `{}`, `"taskId":"unknown"`),
			modern(64, "subscriptions/listen", `{}`, `"notifications":{"taskIds":["`+id+`"]}`),
		} {
			p.send(frame)
			m := p.answer(60 + int64(i))
			wantError(t, m, mcp.CodeMissingCapability)
			if m.Error != nil && string(m.Error.Data) != `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}` {
				t.Errorf("data of %s: %s", frame, m.Error.Data)
			}
		}
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			wantError(t, p.get(method, `"taskId":"unknown","inputResponses":{}`), jsonrpc.CodeInvalidParams)
			wantError(t, p.get(method, `"taskId":7`), jsonrpc.CodeInvalidParams)
		}
		// Methods that only 2025-11-25 has.
		for _, method := range []string{"tasks/result", "tasks/list"} {
			wantError(t, p.get(method, `"taskId":"`+id+`"`), jsonrpc.CodeMethodNotFound)
		}
	})
}

// XTASK-26-008, -042, -043, -044, TASK-25-018, -019, -031, -033, -053, -054, -055: how a
// call ends, as a task of either revision.
func TestTaskEnds(t *testing.T) {
	tests := []struct {
		tool      string
		extension string // status in 2026-07-28
		augmented string // and in 2025-11-25
		message   string
		result    string // its beginning
		code      int    // of the error
	}{
		{"slow", "completed", "completed", "", `{"content":[{"type":"text","text":"done"}]`, 0},
		{"fails", "completed", "failed", "no luck", `{"content":[{"type":"text","text":"no luck"}],"isError":true`, 0},
		{"breaks", "failed", "failed", "broken", "", -31999},
		{"panics", "failed", "failed", "internal error", "", jsonrpc.CodeInternal},
	}
	for _, tt := range tests {
		t.Run(tt.tool, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shop := taskShop()
				p := newShopper(t, shop, mcp.V2026_07_28)
				id := p.begin(tt.tool, "{}").TaskID
				synctest.Wait()
				s := p.state(id)
				if s.Status != tt.extension || s.StatusMessage != tt.message || !strings.HasPrefix(string(s.Result), tt.result) {
					t.Errorf("2026-07-28: %+v %s", s, s.Result)
				}
				if (s.Error == nil) != (tt.code == 0) || s.Error != nil && (s.Error.Code != tt.code || s.Result != nil) {
					t.Errorf("2026-07-28: error %v", s.Error)
				}

				p = newShopper(t, shop, mcp.V2025_11_25)
				id = p.begin(tt.tool, "{}").TaskID
				synctest.Wait()
				if s = p.state(id); s.Status != tt.augmented || s.StatusMessage != tt.message || s.Result != nil || s.Error != nil {
					t.Errorf("2025-11-25: %+v", s)
				}
				m := p.get("tasks/result", `"taskId":"`+id+`"`)
				if tt.code != 0 {
					wantError(t, m, tt.code)
				} else if want := tt.result + `,"_meta":{"` + relatedTo + `":{"taskId":"` + id + `"}}}`; string(m.Result) != want && tt.tool == "fails" {
					t.Errorf("result %s, want %s", m.Result, want)
				}
			})
		})
	}
}

// TASK-25-016, -017, -020, -021, -023, -026, -027, -029, -030, -032, -034, -035, -036, -037,
// -038, -039, -040, -041, PROG-25-001, PROG-25-002: a task of 2025-11-25 from its creation
// to its result, with a question on the stream of tasks/result.
func TestTaskOfAugmentedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2025_11_25)
		made := p.begin("asks", "{}")
		if made.Status != "working" || made.TTL == nil || *made.TTL != 60_000 || made.PollInterval == nil || made.CreatedAt == "" || made.LastUpdatedAt == "" {
			t.Fatalf("created: %+v", made)
		}
		synctest.Wait()
		// Related-task in a request about tasks does not count.
		s := taskOf(t, p.get("tasks/get", `"taskId":"`+made.TaskID+`","_meta":{"`+relatedTo+`":{"taskId":"other"}}`))
		if s.Status != "input_required" || s.TTL == nil || s.InputRequests != nil || s.TaskID != made.TaskID {
			t.Fatalf("asking: %+v", s)
		}
		result := p.ask("tasks/result", `"taskId":"`+made.TaskID+`"`)
		for _, want := range []string{"First name?", "Last name?"} {
			m := p.read()
			for m.Kind() == jsonrpc.KindNotification {
				if _, ok := m.ParamIn("_meta", relatedTo); ok || m.Method != "notifications/tasks/status" {
					t.Errorf("got %s, want a status without related-task", show(&m))
				}
				m = p.read()
			}
			about, _ := m.ParamIn("_meta", relatedTo)
			if m.Method != "elicitation/create" || string(about) != `{"taskId":"`+made.TaskID+`"}` || !strings.Contains(string(m.Params), want) {
				t.Fatalf("got %s, want the question %q of the task", show(&m), want)
			}
			p.send(string(jsonrpc.AppendResult(nil, m.ID, json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`))))
			synctest.Wait()
		}
		m := p.answer(result)
		if want := `{"content":[{"type":"text","text":"Ada Ada"}],"_meta":{"` + relatedTo + `":{"taskId":"` + made.TaskID + `"}}}`; string(m.Result) != want {
			t.Errorf("result %s, want %s", m.Result, want)
		}
	})
}

// PROG-25-001, -002, -003, TASK-25-034: progress of a task goes on, with the token of the
// call and the task's id, and ends with the task.
func TestTaskProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2025_11_25)
		id := p.begin("stubborn", `{"seconds":9}`).TaskID
		if got := taskOf(t, p.get("tasks/get", `"taskId":"`+id+`"`)); got.Status != "working" {
			t.Fatalf("got %+v", got)
		}
		time.Sleep(1500 * time.Millisecond)
		p.get("tasks/cancel", `"taskId":"`+id+`"`)
		time.Sleep(10 * time.Second)
		p.sendf(`{"jsonrpc":"2.0","id":99,"method":"ping"}`)
		seen := 0
		for m := p.read(); m.ID != jsonrpc.IntID(99); m = p.read() {
			if m.Method != "notifications/tasks/status" {
				t.Errorf("after the end: %s", show(&m))
			}
		}
		for _, method := range p.notes {
			if method == "notifications/progress" {
				seen++
			}
		}
		if seen != 2 {
			t.Errorf("%d progress notifications before the end (%q), want 2", seen, p.notes)
		}
	})
}

// TASK-25-006, -008, -015, -043, -044, -046, -047, -048, -049, -051, -052, -059, CANC-25-003: what
// is refused in 2025-11-25, and cancelling.
func TestTaskRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2025_11_25)
		wantError(t, p.get("tools/call", `"name":"plain","task":{}`), jsonrpc.CodeMethodNotFound)
		wantError(t, p.get("tools/call", `"name":"must"`), jsonrpc.CodeMethodNotFound)
		wantError(t, p.get("tasks/list", ``), jsonrpc.CodeMethodNotFound) // of whom?
		wantError(t, p.get("tasks/update", `"taskId":"x","inputResponses":{}`), jsonrpc.CodeMethodNotFound)
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			wantError(t, p.get(method, `"taskId":"unknown"`), jsonrpc.CodeInvalidParams)
			wantError(t, p.get(method, ``), jsonrpc.CodeInvalidParams)
		}
		for _, tool := range []string{"slow", "stubborn"} {
			id := p.begin(tool, `{"seconds":3}`).TaskID
			// notifications/cancelled for the call that made the task does not touch it.
			p.sendf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, p.id)
			time.Sleep(time.Second)
			if s := p.state(id); s.Status != "working" {
				t.Errorf("%s after notifications/cancelled: %+v", tool, s)
			}
			if s := taskOf(t, p.get("tasks/cancel", `"taskId":"`+id+`"`)); s.Status != "cancelled" || s.TaskID != id {
				t.Errorf("%s: the answer to tasks/cancel is %+v", tool, s)
			}
			wantError(t, p.get("tasks/cancel", `"taskId":"`+id+`"`), jsonrpc.CodeInvalidParams)
			wantError(t, p.get("tasks/result", `"taskId":"`+id+`"`), jsonrpc.CodeInternal)
			time.Sleep(5 * time.Second)
			if s := p.state(id); s.Status != "cancelled" {
				t.Errorf("%s when its handler has ended: %+v", tool, s)
			}
		}
		id := p.begin("slow", "{}").TaskID
		synctest.Wait()
		wantError(t, p.get("tasks/cancel", `"taskId":"`+id+`"`), jsonrpc.CodeInvalidParams)

		// A server without such tools processes the call as if nothing had been asked.
		plain := &mcp.Server{Name: "plain"}
		mcp.AddTool(plain, mcp.Tool{Name: "plain"}, func(context.Context, struct{}) (string, error) { return "plain", nil })
		p = newShopper(t, plain, mcp.V2025_11_25)
		if s := taskOf(t, p.get("tools/call", `"name":"plain","task":{}`)); s.Task != nil {
			t.Errorf("a server without tasks made %+v", s.Task)
		}
		wantError(t, p.get("tasks/get", `"taskId":"x"`), jsonrpc.CodeMethodNotFound)
		// Nor does another request know tasks.
		mcp.AddPrompt(plain, mcp.Prompt{Name: "p"}, func(context.Context, struct{}) (string, error) { return "hi", nil })
		if s := taskOf(t, p.get("prompts/get", `"name":"p","task":{}`)); s.Task != nil {
			t.Errorf("a prompt became %+v", s.Task)
		}
	})
}

// XTASK-26-032, -034: cancelling is acknowledged with nothing, also twice and for what has
// ended. This server cancels at once, whatever the handler does.
func TestTaskCancelOfExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2026_07_28)
		for tool, want := range map[string]string{"slow": "cancelled", "stubborn": "cancelled", "asks": "cancelled"} {
			args := map[string]string{"asks": "{}"}[tool]
			if args == "" {
				args = `{"seconds":3}`
			}
			id := p.begin(tool, args).TaskID
			for range 2 {
				var ack map[string]any
				if m := p.get("tasks/cancel", `"taskId":"`+id+`"`); json.Unmarshal(m.Result, &ack) != nil || ack["resultType"] != "complete" || len(ack) != 2 {
					t.Errorf("acknowledged with %s", show(&m))
				}
				time.Sleep(5 * time.Second)
			}
			if s := p.state(id); s.Status != want {
				t.Errorf("%s: %+v, want %s", tool, s, want)
			}
		}
	})
}

// TASK-25-001, TOOL-25-004: tasks are declared by who has them, in the form of each revision, and
// which tools have them is said in 2025-11-25 alone.
func TestTaskCapability(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		p := &shopper{peer: rawClient(t, taskShop()), rev: rev}
		var said string
		if rev == mcp.V2026_07_28 {
			m := p.get("server/discover", "")
			said = string(m.Result)
		} else {
			m := p.initialize(rev, canElicit)
			said = string(m.Result)
		}
		m := p.get("tools/list", "")
		tools := string(m.Result)
		augmented := strings.Contains(said, `"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}`)
		extension := strings.Contains(said, `"extensions":{"io.modelcontextprotocol/tasks":{}}`)
		if augmented != (rev == mcp.V2025_11_25) || extension != (rev == mcp.V2026_07_28) {
			t.Errorf("%s: declared %s", rev, said)
		}
		if got, want := strings.Count(tools, "taskSupport"), 9; rev == mcp.V2025_11_25 && got != want || rev != mcp.V2025_11_25 && got != 0 {
			t.Errorf("%s: %d tools say how they relate to tasks: %s", rev, got, tools)
		}
		if rev == mcp.V2025_11_25 && (!strings.Contains(tools, `"name":"must","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"execution":{"taskSupport":"required"}`) && !strings.Contains(tools, `"execution":{"taskSupport":"required"}`) || strings.Contains(tools, "detach")) {
			t.Errorf("%s: %s", rev, tools)
		}
	}
	bare := &shopper{peer: rawClient(t, echoServer()), rev: mcp.V2026_07_28}
	if m := bare.get("server/discover", ""); strings.Contains(string(m.Result), "tasks") {
		t.Errorf("a server without tasks declares %s", m.Result)
	}
}
