package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/level"
)

// A handler behind Open runs once, whatever it asks meanwhile.
func TestOpenRunsOnce(t *testing.T) {
	var runs atomic.Int32
	srv := &mcp.Server{Name: "s", Version: "1"}
	type args struct {
		Kind string `json:"kind"`
	}
	mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, in args) (string, error) {
		runs.Add(1)
		switch in.Kind {
		case "form":
			v, err := mcp.Elicit[struct {
				Name string `json:"name"`
			}](ctx, "Name?")
			return v.Name, err
		case "url":
			return "visited", mcp.ElicitURL(ctx, "Go", "https://example.com/")
		case "confirm":
			yes, err := mcp.Confirm(ctx, "Sure?")
			if !yes {
				return "no", err
			}
			return "yes", err
		case "sample":
			res, err := mcp.Sample(ctx, &mcp.SampleRequest{Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("hi")}}}, MaxTokens: 5})
			if err != nil {
				return "", err
			}
			return res.Text(), nil
		case "roots":
			roots, err := mcp.Roots(ctx)
			if err != nil {
				return "", err
			}
			return roots[0].URI, nil
		}
		return "plain", nil
	})
	client := &mcp.Client{
		OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			content := map[string]any{"name": "Ada"}
			if strings.Contains(string(r.Schema), "confirm") {
				content = map[string]any{"confirm": true}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
		OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
			return &mcp.SampleResult{Role: "assistant", Model: "m", Content: []mcp.Content{mcp.Text("pong")}}, nil
		},
		Roots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///r"}}, nil },
	}
	s, err := client.Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for kind, want := range map[string]string{"": "plain", "form": "Ada", "url": "visited", "confirm": "yes", "sample": "pong", "roots": "file:///r"} {
		runs.Store(0)
		res, err := s.CallTool(t.Context(), "ask", args{kind})
		if err != nil || res.IsError || res.Text() != want || runs.Load() != 1 {
			t.Errorf("%q = %v, %v after %d runs; want %q after 1", kind, res, err, runs.Load(), want)
		}
	}
}

// Every kind of request passes, with progress, logs and cancellation.
func TestOpenPasses(t *testing.T) {
	srv := &mcp.Server{Name: "s", Version: "1", Instructions: "be kind"}
	stuck := make(chan struct{})
	defer close(stuck)
	mcp.AddTool(srv, mcp.Tool{Name: "work"}, func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "half")
		mcp.Log(ctx).Warn("careful")
		return string(mcp.CallFrom(ctx).Revision) + " " + mcp.CallFrom(ctx).Client.Name, nil
	})
	mcp.AddTool(srv, mcp.Tool{Name: "stuck"}, func(ctx context.Context, _ struct{}) (string, error) {
		<-stuck // it does not listen to its context
		return "", nil
	})
	mcp.AddTool(srv, mcp.Tool{Name: "fail"}, func(context.Context, struct{}) (string, error) {
		panic("no")
	})
	type in struct{}
	mcp.AddPrompt(srv, mcp.Prompt{Name: "p"}, func(context.Context, in) ([]mcp.PromptMessage, error) {
		return []mcp.PromptMessage{mcp.User("hello")}, nil
	})
	client := &mcp.Client{Name: "me", LogLevel: level.Notice}
	s, err := client.Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	res, err := s.CallTool(t.Context(), "work", nil,
		mcp.OnProgress(func(_, _ float64, message string) { told = append(told, message) }),
		mcp.OnLog(func(l mcp.LogMessage) { told = append(told, string(l.Data)) }))
	if err != nil || res.Text() != "2026-07-28 me" || strings.Join(told, " ") != `half "careful"` {
		t.Errorf("work = %v, %v, told %q", res, err, told)
	}
	if info := s.Server(); info.Name != "s" || info.Instructions != "be kind" || !info.Capabilities.Has("tools") {
		t.Errorf("Server() = %+v", info)
	}
	n := 0
	for _, err := range s.Tools(t.Context()) {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 3 {
		t.Errorf("%d tools, want 3", n)
	}
	if p, err := s.GetPrompt(t.Context(), "p", nil); err != nil || len(p.Messages) != 1 {
		t.Errorf("prompt = %v, %v", p, err)
	}
	var rpc *mcp.Error
	if _, err := s.ReadResource(t.Context(), "no:where"); !errors.As(err, &rpc) {
		t.Errorf("read of an unknown resource: %v, want an *Error", err)
	}
	if _, err := s.CallTool(t.Context(), "nothing", nil); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("unknown tool: %v", err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := s.CallTool(ctx, "stuck", nil); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("a handler that does not return: %v, want the cause of the context", err)
	}
	if _, err := s.CallTool(t.Context(), "stuck", nil, mcp.IdleTimeout(20*time.Millisecond)); err == nil {
		t.Error("a silent handler: no error")
	}
	ended := make(chan error, 1)
	go func() { _, err := s.CallTool(context.Background(), "stuck", nil); ended <- err }()
	time.Sleep(10 * time.Millisecond)
	s.Close()
	if err := <-ended; !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("a call that Close ends: %v, want ErrClosed", err)
	}
	if _, err := s.CallTool(t.Context(), "work", nil); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("a call after Close: %v, want ErrClosed", err)
	}
}

// The error of a caller wraps what the handler has returned.
func TestOpenKeepsErrors(t *testing.T) {
	own := errors.New("own")
	s, err := (&mcp.Client{}).Open(t.Context(), mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == "tools/call" {
			return nil, own
		}
		return nil, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var rpc *mcp.Error
	if _, err := s.CallTool(t.Context(), "x", nil); !errors.Is(err, own) || !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal {
		t.Errorf("err = %v, want the handler's own and -32603", err)
	}
	if _, err := s.Raw(t.Context(), "tools/list", nil); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal {
		t.Errorf("no result: %v, want -32603", err)
	}
	if info := s.Server(); info == nil {
		t.Error("Server() = nil for a handler that says nothing")
	}
}

// A goroutine that a handler left behind gets ErrOver for a question and no bytes of other calls.
func TestOpenLeftBehind(t *testing.T) {
	srv := &mcp.Server{Name: "s", Version: "1"}
	later := make(chan func() (string, error), 1)
	mcp.AddTool(srv, mcp.Tool{Name: "leave"}, func(ctx context.Context, _ struct{}) (string, error) {
		later <- func() (string, error) {
			call := mcp.CallFrom(ctx)
			_, err := mcp.Confirm(ctx, "late?")
			return call.Client.Name, err
		}
		return "", nil
	})
	client := &mcp.Client{Name: "me", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		t.Error("asked after the answer")
		return nil, mcp.ErrDismissed
	}}
	s, err := client.Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "leave", nil); err != nil {
		t.Fatal(err)
	}
	late := <-later
	for range 10 {
		if _, err := s.Raw(t.Context(), "tools/list", map[string]any{"cursor": json.RawMessage(`""`)}); err != nil {
			break
		}
	}
	name, err := late()
	if !errors.Is(err, engine.ErrOver) || name != "" {
		t.Errorf("late question: %v, client %q; want %v and nothing", err, name, engine.ErrOver)
	}
}

// A list that is private to one caller stays in the cache of the session that asked for it: another
// session of the same client with the same handler asks again, and each gets its own again.
func TestOpenPrivateLists(t *testing.T) {
	for _, scope := range []string{`,"cacheScope":"private"`, ``} {
		c := &counting{answer: func(_ *mcp.Request, n int) (mcp.Result, error) { return tools(n, `,"ttlMs":60000`+scope), nil }}
		h, client := c.server(), nothing()
		var sessions [2]*mcp.Session
		for i := range sessions {
			s, err := client.Open(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			sessions[i] = s
		}
		for range 2 {
			for i, s := range sessions {
				want := fmt.Sprintf("[n%d]", i+1)
				if got := fmt.Sprint(toolNames(t, s)); got != want {
					t.Errorf("%q: session %d has the tools %s, want %s", scope, i+1, got, want)
				}
			}
		}
	}
}

// Watch hears of changes, and a task is waited for.
func TestOpenWatchAndTasks(t *testing.T) {
	srv := &mcp.Server{Name: "s", Version: "1"}
	release := make(chan struct{})
	mcp.AddTool(srv, mcp.Tool{Name: "long", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-release:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		return "done", nil
	})
	s, err := (&mcp.Client{}).Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := make(chan string, 4)
	go func() {
		defer close(heard)
		for e, err := range s.Watch(ctx) {
			if err != nil {
				return
			}
			heard <- e.Method
		}
	}()
	if m := <-heard; m != "notifications/subscriptions/acknowledged" {
		t.Fatalf("first event %q", m)
	}
	mcp.AddTool(srv, mcp.Tool{Name: "more"}, func(context.Context, struct{}) (string, error) { return "", nil })
	if m := <-heard; m != "notifications/tools/list_changed" {
		t.Errorf("event %q, want tools/list_changed", m)
	}
	task, err := s.StartTask(t.Context(), "long", nil)
	if err != nil || task.ID == "" {
		t.Fatalf("StartTask = %+v, %v", task, err)
	}
	close(release)
	if res, err := task.Wait(t.Context()); err != nil || res.Text() != "done" {
		t.Errorf("task = %v, %v", res, err)
	}
	if res, err := s.CallTool(t.Context(), "long", nil); err != nil || res.Text() != "done" {
		t.Errorf("call of a task = %v, %v", res, err)
	}
}

// A Handler that asks the session in front of it what it is gets an answer at once.
func TestOpenAsksItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *mcp.Session
		h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			return &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "of " + s.Server().Name}}, nil
		})
		var err error
		if s, err = new(mcp.Client).Open(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		start := time.Now()
		if got := s.Server().Name; !strings.HasPrefix(got, "of ") {
			t.Errorf("the name is %q, want one that begins with of", got)
		}
		if waited := time.Since(start); waited > 0 {
			t.Errorf("Server waited %v, want 0", waited)
		}
	})
}
