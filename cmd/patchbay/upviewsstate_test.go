package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A change of gateway.yaml leaves alone what views know of earlier calls: the tools of their tasks, and the
// rests of results. A task of a tool that the view no longer has is absent, until the view has the tool again.
func TestUpViewsKeepState(t *testing.T) {
	runtimeFolder(t)
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	write := func(limits, work, found string) {
		t.Helper()
		text := "limits: [" + limits + "]\nviews:\n  work: " + work + "\n  found: " + found + "\n  all: {}\n"
		if err := os.WriteFile(file+"~", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"~", file); err != nil {
			t.Fatal(err)
		}
	}
	const work, found = "{tools: [all_slow_compute, all_greet]}", "{tools: ['stub_*'], mode: search, budget: 1KiB}"
	write("1000/s", work, found)
	r := startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}, "stub": stubServer(t)}, "--gateway", file)

	tasks := map[string]*mcp.Task{}
	for _, revision := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		for path, tool := range map[string]string{"/v/work": "all_slow_compute", "": "all_slow_compute"} {
			s, err := (&mcp.Client{Revisions: []mcp.Revision{revision}}).Dial(t.Context(), r.url+path)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			task, err := s.StartTask(t.Context(), tool, map[string]any{"seconds": 600})
			if err != nil || task.ID == "" {
				t.Fatalf("%s: a task %+v, %v", revision, task, err)
			}
			defer task.Cancel(context.WithoutCancel(t.Context()))
			tasks[string(revision)+path] = task
		}
	}
	s, err := new(mcp.Client).Dial(t.Context(), r.url+"/v/found")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	long := strings.Repeat("long ", 1000)
	res, err := s.CallTool(t.Context(), "call_tool", map[string]any{"name": "stub_args", "arguments": map[string]any{"text": long}})
	if err != nil || len(res.Content) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	link, ok := res.Content[1].(mcp.ResourceLink)
	if !ok {
		t.Fatalf("no link but %+v", res.Content[1])
	}

	check := func(when string, absent bool) {
		t.Helper()
		for name, task := range tasks {
			info, err := task.Info(t.Context())
			if gone := absent && strings.HasSuffix(name, "/v/work"); gone {
				if err == nil || !strings.Contains(err.Error(), "does not exist or has expired") {
					t.Errorf("%s: the task %s is %+v, %v; its view does not have the tool", when, name, info, err)
				}
			} else if err != nil || info.Status != "working" {
				t.Errorf("%s: the task %s is %+v, %v", when, name, info, err)
			}
		}
		if read, err := s.ReadResource(t.Context(), link.URI); err != nil || !strings.Contains(read.Contents[0].Text, "long long") {
			t.Errorf("%s: the rest is %+v, %v", when, read, err)
		}
	}
	check("at first", false)
	write("2000/s", work, found)
	r.stderr.await(t, "changed limits\n")
	check("after a change of limits", false)
	write("2000/s", "{tools: [all_slow_compute], rename: {all_slow_compute: work}}", "{tools: ['*'], mode: search, budget: 2KiB}")
	r.stderr.await(t, "(?s)(changed views.*){1}")
	check("after a change of the views", false)
	write("2000/s", "{tools: [all_greet]}", found)
	r.stderr.await(t, "(?s)(changed views.*){2}")
	check("when the view does not have the tool", true)
	write("2000/s", work, found)
	r.stderr.await(t, "(?s)(changed views.*){3}")
	check("when it has the tool again", false)
}
