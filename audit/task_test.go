package audit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/metrics"
)

// works is a server whose tools run as tasks.
func works() *mcp.Server {
	s := &mcp.Server{Name: "works", Version: "1", Tasks: mcp.TaskConfig{Poll: 10 * time.Millisecond}}
	for _, name := range []string{"do", "fail", "hang"} {
		mcp.AddTool(s, mcp.Tool{Name: name, Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(ctx context.Context, _ struct{}) (string, error) {
			switch name {
			case "fail":
				return "", errors.New("no")
			case "hang":
				<-ctx.Done()
				return "", context.Cause(ctx)
			}
			return "done", nil
		})
	}
	return s
}

// The end of a task has one line with the id of its call, and counts once, whoever asks how often.
func TestTaskEnds(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			mcptest.LeakCheck(t)
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			trail := &audit.Trail{Log: open(t, path, &audit.Options{Sync: audit.SyncNone})}
			counters := &metrics.Counters{}
			gw := &gateway.Gateway{Name: "gw", Version: "1", Middleware: counters.Around(trail.Around)}
			if err := gw.Set("w", works()); err != nil {
				t.Fatal(err)
			}
			front := &mcp.Server{Name: "front", Version: "1", Handler: gw}
			front.Use(trail.Outer())
			s := mcptest.Connect(t, front, &mcp.Client{Name: "c"}, rev)
			ctx := t.Context()
			for _, name := range []string{"do", "fail", "hang"} {
				task, err := s.StartTask(ctx, "w_"+name, nil)
				if err != nil || task.ID == "" {
					t.Fatalf("%s: %+v, %v", name, task, err)
				}
				if name == "hang" {
					if err := task.Cancel(ctx); err != nil {
						t.Fatal(err)
					}
				}
				task.Wait(ctx)
				for range 3 {
					if info, err := task.Info(ctx); err != nil || !info.Over() {
						t.Errorf("%s: %+v, %v", name, info, err)
					}
				}
			}
			if err := trail.Log.Close(); err != nil {
				t.Fatal(err)
			}
			ids := map[string]string{} // of calls, by tool
			tasks := map[string]string{}
			var got []string
			for _, e := range calls(t, path) {
				switch {
				case e.Kind == audit.CallEnd && e.Outcome == "task":
					ids[e.Tool], tasks[e.Tool] = e.Call, e.Name
				case e.Kind == audit.TaskEnd:
					got = append(got, fmt.Sprint(e.Tool, " at ", e.Server.Name, " ", e.Outcome, " ", e.Bytes > 0 && e.Result != ""))
					if e.Call == "" || e.Call != ids[e.Tool] || e.Name == "" || e.Name != tasks[e.Tool] || e.Client == nil || e.Millis <= 0 {
						t.Errorf("the end of %s, whose call is %s and whose task is %s: %s", e.Tool, ids[e.Tool], tasks[e.Tool], e.Line())
					}
				}
			}
			if want := []string{"do at w ok true", "fail at w tool error true", "hang at w canceled false"}; !slices.Equal(got, want) {
				t.Errorf("the ends are %q, want %q", got, want)
			}
			w := httptest.NewRecorder()
			counters.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			for _, outcome := range []string{"ok", "tool_error", "canceled"} {
				if line := `patchbay_tasks_ended_total{server="w",outcome="` + outcome + `"} 1` + "\n"; !strings.Contains(w.Body.String(), line) {
					t.Errorf("/metrics has no line %s", line)
				}
			}
		})
	}
}

// A caller that follows a task learns of its end by a notification, and asks no more.
func TestTaskEndIsNotified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := &audit.Trail{Log: open(t, path, &audit.Options{Sync: audit.SyncNone})}
	counters := &metrics.Counters{}
	srv := works()
	srv.Use(trail.Outer(), counters.Server("w"), trail.Around("w"))
	web := httptest.NewServer(srv)
	defer web.Close()
	s, err := (&mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2026_07_28}}).Dial(t.Context(), web.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	task, err := s.StartTask(t.Context(), "hang", nil)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", web.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["`+task.ID+`"]},"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	events := bufio.NewScanner(res.Body)
	until := func(word string) {
		for events.Scan() {
			if strings.Contains(events.Text(), word) {
				return
			}
		}
		t.Fatalf("the stream has ended without %s: %v", word, events.Err())
	}
	until("acknowledged")
	if err := task.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(`"cancelled"`)
	res.Body.Close()
	if err := trail.Log.Close(); err != nil {
		t.Fatal(err)
	}
	kinds := map[audit.Kind]int{}
	for _, e := range calls(t, path) {
		kinds[e.Kind]++
		if e.Kind == audit.TaskEnd && e.Outcome != "canceled" {
			t.Errorf("%s", e.Line())
		}
	}
	if kinds[audit.TaskEnd] != 1 {
		t.Errorf("the kinds of the lines are %v", slices.Collect(maps.Keys(kinds)))
	}
	w := httptest.NewRecorder()
	counters.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if line := `patchbay_tasks_ended_total{server="w",outcome="canceled"} 1` + "\n"; !strings.Contains(w.Body.String(), line) {
		t.Errorf("/metrics has no line %s", line)
	}
}
