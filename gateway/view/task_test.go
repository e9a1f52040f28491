package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/view"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// crew is a gateway with two servers, each with a tool that reports progress and works until it is cancelled, and
// one that ends at once.
func crew(t *testing.T) *gateway.Gateway {
	t.Helper()
	g := &gateway.Gateway{Name: "all"}
	for _, name := range []string{"kb", "jira"} {
		srv := &mcp.Server{Name: name}
		mcp.AddTool(srv, mcp.Tool{Name: "job", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		mcp.AddTool(srv, mcp.Tool{Name: "steps"}, func(ctx context.Context, _ struct{}) (string, error) {
			for i := range 3 {
				mcp.Progress(ctx, float64(i+1), 3, "step of "+name)
			}
			return "done", nil
		})
		if err := g.Set(name, srv); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// A task is one of the view in which it began, and of views with everything. For the others, also those that have
// its tool, it does not exist: they neither read, list, cancel nor follow it.
func TestTasksBelongToViews(t *testing.T) {
	for _, revision := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(revision), func(t *testing.T) {
			g := crew(t)
			handlers, sessions := map[string]mcp.Handler{}, map[string]*mcp.Session{}
			for name, v := range map[string]*view.View{
				"begun":      {Tools: []string{"kb_*"}},
				"same tools": {Tools: []string{"kb_*"}},
				"others":     {Tools: []string{"jira_*"}},
				"search":     {Tools: []string{"*"}, Search: new(view.Search)},
				"everything": {},
			} {
				v.Name = name
				handlers[name] = v.Middleware()(g)
				sessions[name] = mcptest.Connect(t, &mcp.Server{Name: "gw", Handler: handlers[name]}, &mcp.Client{Name: "c"}, revision)
			}
			task, err := sessions["begun"].StartTask(t.Context(), "kb_job", nil)
			if err != nil || task.ID == "" {
				t.Fatalf("%+v, %v", task, err)
			}
			has := map[string]bool{"begun": true, "everything": true}
			absent := strings.Repeat("x", len(task.ID))
			for name, s := range sessions {
				list, err := handlers[name].Handle(t.Context(), &mcp.Request{Method: "tasks/list", Params: []byte("{}")})
				if err != nil {
					t.Fatal(err)
				}
				listed := strings.Count(string(list.JSON()), `"taskId"`)
				info, err := s.Task(task.ID).Info(t.Context())
				if has[name] {
					if err != nil || info.Status != "working" || listed != 1 {
						t.Errorf("%s: the task is %+v, %v; %d are listed", name, info, err, listed)
					}
					continue
				}
				if listed > 0 {
					t.Errorf("%s lists %d tasks", name, listed)
				}
				for way, try := range map[string]func(id string) error{
					"tasks/get":    func(id string) error { _, err := s.Task(id).Info(t.Context()); return err },
					"tasks/cancel": func(id string) error { return s.Task(id).Cancel(t.Context()) },
					"tasks/update": func(id string) error {
						_, err := handlers[name].Handle(t.Context(), &mcp.Request{Method: "tasks/update", Params: json.RawMessage(`{"taskId":"` + id + `","inputResponses":{}}`)})
						return err
					},
					"subscription": func(id string) error {
						_, err := handlers[name].Handle(t.Context(), &mcp.Request{Method: "subscriptions/listen", Params: json.RawMessage(`{"notifications":{"taskIds":["` + id + `"]}}`)})
						return err
					},
				} {
					there, none := fmt.Sprint(try(task.ID)), fmt.Sprint(try(absent))
					if strings.ReplaceAll(there, task.ID, "ID") != strings.ReplaceAll(none, absent, "ID") || !strings.Contains(there, "does not exist") {
						t.Errorf("%s, %s: of the task %q, of none %q", name, way, there, none)
					}
				}
			}
			if info, err := task.Info(t.Context()); err != nil || info.Status != "working" {
				t.Errorf("after the others have tried, the task is %+v, %v", info, err)
			}
			if err := sessions["everything"].Task(task.ID).Cancel(t.Context()); err != nil {
				t.Errorf("cancelled in the view with everything: %v", err)
			}
			if info, err := task.Info(t.Context()); err != nil || info.Status != "cancelled" {
				t.Errorf("the cancelled task is %+v, %v", info, err)
			}
		})
	}
}

// Progress of a call reaches the caller of a view, also by call_tool, and a call of a tool outside of the view has
// none.
func TestProgressOfViews(t *testing.T) {
	for _, revision := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		for _, search := range []*view.Search{nil, new(view.Search)} {
			h := (&view.View{Name: "v", Tools: []string{"kb_*"}, Search: search}).Middleware()(crew(t))
			s := mcptest.Connect(t, &mcp.Server{Name: "gw", Handler: h}, &mcp.Client{Name: "c"}, revision)
			call := func(tool string) (told []string, err error) {
				note := mcp.OnProgress(func(done, of float64, text string) { told = append(told, fmt.Sprint(done, " of ", of, ": ", text)) })
				if search != nil {
					_, err = s.CallTool(t.Context(), "call_tool", map[string]any{"name": tool}, note)
				} else {
					_, err = s.CallTool(t.Context(), tool, nil, note)
				}
				return told, err
			}
			if told, err := call("kb_steps"); err != nil || len(told) == 0 || told[len(told)-1] != "3 of 3: step of kb" {
				t.Errorf("%s, search %v: progress %q, %v", revision, search != nil, told, err)
			}
			for _, tool := range []string{"jira_steps", "none_steps"} {
				if told, err := call(tool); err == nil || len(told) > 0 {
					t.Errorf("%s, search %v: progress of %s %q, %v", revision, search != nil, tool, told, err)
				}
			}
		}
	}
}

// A change of a list is announced to the clients of a view that has no part in it, too. Nothing says what has
// changed, and the view lists the same as before.
func TestListChangesAreWithoutNames(t *testing.T) {
	g := crew(t)
	v := &view.View{Name: "v", Tools: []string{"kb_*"}}
	s := mcptest.Connect(t, &mcp.Server{Name: "gw", Handler: v.Middleware()(g)}, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
	before := names(t, s)
	added := false
	for e, err := range s.Watch(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if !added {
			added = true
			if err := g.Set("secret", &mcp.Server{Name: "secret", Instructions: "secrets"}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if text := fmt.Sprintf("%+v", e); strings.Contains(text, "secret") {
			t.Errorf("the announcement is %s", text)
		}
		break
	}
	if after := names(t, s); after != before {
		t.Errorf("the view has %s, had %s", after, before)
	}
}
