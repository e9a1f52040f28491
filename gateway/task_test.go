package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

func jobServer() *mcp.Server {
	s := &mcp.Server{Name: "jobs", Version: "1", Tasks: mcp.TaskConfig{Poll: 10 * time.Millisecond}}
	mcp.AddTool(s, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(ctx context.Context, _ struct{}) (string, error) {
			ok, err := mcp.Confirm(ctx, "go on?")
			if errors.Is(err, mcp.ErrNotSupported) || err == nil && ok {
				return "done", nil
			}
			return "", errors.Join(err, errors.New("stopped"))
		})
	return s
}

// Tasks pass the gateway, to servers within the process and behind a wire, on every
// revision (T-112).
func TestTasksPass(t *testing.T) {
	mcptest.LeakCheck(t)
	newClient := func() *mcp.Client {
		return &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
		}}
	}
	newServer := func() *mcp.Server {
		near := mcptest.Connect(t, jobServer(), newClient(), mcp.V2026_07_28)
		g := &gateway.Gateway{Name: "gw", Version: "1"}
		for name, h := range map[string]mcp.Handler{"in": jobServer(), "out/side": near} {
			if err := g.Set(name, h); err != nil {
				t.Fatal(err)
			}
		}
		return &mcp.Server{Name: "gw", Version: "1", Handler: g}
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		t.Parallel() // the test waits for polls
		for _, name := range []string{"in_work", gateway.Name("out/side", "work")} {
			task, err := s.StartTask(t.Context(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.Revision() == mcp.V2026_07_28 && !strings.Contains(task.ID, "/") {
				t.Errorf("%s has the id %q", name, task.ID)
			}
			if res, err := task.Wait(t.Context()); err != nil || res.Text() != "done" {
				t.Errorf("%s = %v, %v", name, res, err)
			}
			if task.ID == "" {
				continue
			}
			// The id does not work in another form.
			other := strings.Replace(task.ID, "/", "/x", 1)
			var rpc *mcp.Error
			if info, err := s.Task(other).Info(t.Context()); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("task %q = %v, %v", other, info, err)
			}
		}
	})
}

// A caller sees only its own tasks, even those of a server of 2025-11-25, to which all callers of
// the gateway are one.
func TestTaskListIsOfThePrincipal(t *testing.T) {
	legacy := jobServer()
	mcp.AddTool(legacy, mcp.Tool{Name: "must", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}},
		func(context.Context, struct{}) (string, error) { return "done", nil })
	g := &gateway.Gateway{Name: "gw", Version: "1"}
	for name, h := range map[string]mcp.Handler{
		"in":  jobServer(),
		"old": mcptest.Connect(t, legacy, &mcp.Client{Name: "c"}, mcp.V2025_11_25),
	} {
		if err := g.Set(name, h); err != nil {
			t.Fatal(err)
		}
	}
	front := &mcp.Server{Name: "gw", Version: "1", Handler: g}
	front.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("User") }
	srv := httptest.NewServer(front)
	t.Cleanup(srv.Close)
	connect := func(user string) *mcp.Session {
		c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2025_11_25}, Header: http.Header{"User": {user}}}
		s, err := c.Dial(t.Context(), srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	ada, eve := connect("ada"), connect("eve")
	task, err := ada.StartTask(t.Context(), "in_work", nil)
	if err != nil || task.ID == "" {
		t.Fatalf("start = %+v, %v", task, err)
	}
	if res, err := ada.CallTool(t.Context(), "old_must", nil); err != nil || res.Text() != "done" {
		t.Errorf("a call that must be a task at the server = %v, %v", res, err)
	}
	var seen []string
	for info, err := range ada.Tasks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, info.ID)
	}
	slices.Sort(seen) // the order of the servers varies
	if len(seen) != 2 || seen[0] != task.ID || !strings.HasPrefix(seen[1], "old/") {
		t.Fatalf("ada has %q, want %q and one of the old server", seen, task.ID)
	}
	for info, err := range eve.Tasks(t.Context()) {
		t.Errorf("eve has %v, %v", info, err)
	}
	var rpc *mcp.Error
	for _, id := range seen {
		if info, err := eve.Task(id).Info(t.Context()); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("eve sees %v, %v", info, err)
		}
	}
}

// All messages about a task to a caller of 2025-11-25 use its id at the gateway (TASK-25-034),
// whatever server it is at.
func TestTaskIsToldByItsID(t *testing.T) {
	jobs := func() *mcp.Server {
		s := jobServer()
		mcp.AddTool(s, mcp.Tool{Name: "tell", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
			func(ctx context.Context, _ struct{}) (string, error) {
				for i := range 3 {
					if _, err := mcp.Confirm(ctx, "more?"); err != nil {
						return "", err
					}
					mcp.Progress(ctx, float64(i+1), 3, "so far")
				}
				return "done", nil
			})
		return s
	}
	yes := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
	}
	g := &gateway.Gateway{Name: "gw", Version: "1"}
	for name, h := range map[string]mcp.Handler{
		"in":  jobs(),
		"old": mcptest.Connect(t, jobs(), &mcp.Client{Name: "c", OnElicit: yes}, mcp.V2025_11_25),
	} {
		if err := g.Set(name, h); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"in_tell", "old_tell"} {
		var mu sync.Mutex
		told := map[string]int{} // by method and id
		c := &mcp.Client{Name: "c", OnElicit: yes, OnFrame: func(f trace.Frame) {
			var m struct {
				Method string
				Params struct {
					TaskID string
					Meta   struct {
						Task struct{ TaskID string } `json:"io.modelcontextprotocol/related-task"`
					} `json:"_meta"`
				}
			}
			if err := json.Unmarshal(f.Msg, &m); err != nil || f.Dir == trace.Out || m.Method == "" {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			told[m.Method+" "+m.Params.TaskID+m.Params.Meta.Task.TaskID]++
		}}
		s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, c, mcp.V2025_11_25)
		task, err := s.StartTask(t.Context(), name, nil)
		if err != nil || task.ID == "" {
			t.Fatalf("start = %+v, %v", task, err)
		}
		if res, err := task.Wait(t.Context()); err != nil || res.Text() != "done" {
			t.Errorf("%s = %v, %v", name, res, err)
		}
		mu.Lock()
		if told["elicitation/create "+task.ID] != 3 || told["notifications/progress "+task.ID] == 0 {
			t.Errorf("%s, %q: told of %v", name, task.ID, told)
		}
		for what := range told {
			if !strings.HasSuffix(what, " "+task.ID) && !strings.Contains(what, "list_changed") {
				t.Errorf("%s, %q: told of %q", name, task.ID, what)
			}
		}
		mu.Unlock()
	}
}
