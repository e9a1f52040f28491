package mcp_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/store"
	"github.com/patchbay-dev/patchbay/trace"
)

// answeringYes is a client that confirms all it is asked.
func answeringYes() *mcp.Client {
	return &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
	}}
}

func quick() mcp.TaskConfig { return mcp.TaskConfig{Poll: 10 * time.Millisecond} }

// taskServer has tools of each kind of task support.
func taskServer() *mcp.Server {
	s := &mcp.Server{Name: "s", Version: "1", Tasks: quick()}
	twice := func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 3, "asking")
		for _, q := range []string{"first?", "second?"} {
			ok, err := mcp.Confirm(ctx, q)
			if errors.Is(err, mcp.ErrNotSupported) {
				break // 2024-11-05 and 2025-03-26 have no elicitation
			}
			if err != nil || !ok {
				return "", errors.Join(err, errors.New("not confirmed"))
			}
		}
		return "done", nil
	}
	for name, how := range map[string]mcp.ToolExecution{
		"optional": {TaskSupport: mcp.TaskOptional},
		"required": {TaskSupport: mcp.TaskRequired},
		"never":    {},
	} {
		mcp.AddTool(s, mcp.Tool{Name: name, Execution: how}, twice)
	}
	mcp.AddTool(s, mcp.Tool{Name: "late", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional, OnDetach: true}},
		func(ctx context.Context, in struct{}) (string, error) {
			if ok, err := mcp.Confirm(ctx, "before?"); err != nil && !errors.Is(err, mcp.ErrNotSupported) || err == nil && !ok {
				return "", errors.Join(err, errors.New("not confirmed"))
			}
			mcp.Detach(ctx)
			return twice(ctx, in)
		})
	mcp.AddTool(s, mcp.Tool{Name: "fail", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(context.Context, struct{}) (string, error) { return "", mcp.Errorf(-32000, "broken") })
	mcp.AddTool(s, mcp.Tool{Name: "unwell", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(context.Context, struct{}) (string, error) { return "", errors.New("no such file") })
	mcp.AddTool(s, mcp.Tool{Name: "panic", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(context.Context, struct{}) (string, error) { panic("oops") })
	mcp.AddTool(s, mcp.Tool{Name: "forever", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
	return s
}

// The same handlers and the same client code work on all revisions, whether a call
// becomes a task or not.
func TestTaskEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	mcptest.Every(t, taskServer, answeringYes, func(t *testing.T, s *mcp.Session) {
		t.Parallel()
		for _, name := range []string{"optional", "required", "never", "late"} {
			res, err := s.CallTool(t.Context(), name, nil)
			if err != nil || res.Text() != "done" {
				t.Fatalf("call %q = %v, %v", name, res, err)
			}
			task, err := s.StartTask(t.Context(), name, nil)
			if err != nil {
				t.Fatalf("start %q: %v", name, err)
			}
			if res, err = task.Wait(t.Context()); err != nil || res.Text() != "done" {
				t.Fatalf("wait for %q = %v, %v", name, res, err)
			}
			info, err := task.Info(t.Context())
			if err != nil || info.Status != "completed" || !info.Over() {
				t.Errorf("info of %q = %+v, %v", name, info, err)
			}
			if task.ID != "" {
				if res, err = s.Task(task.ID).Wait(t.Context()); err != nil || res.Text() != "done" {
					t.Errorf("wait for %q again = %v, %v", name, res, err)
				}
			}
		}
		var rpc *mcp.Error
		if res, err := s.CallTool(t.Context(), "fail", nil); !errors.As(err, &rpc) || rpc.Message != "broken" {
			t.Errorf("fail = %v, %v", res, err)
		}
		if res, err := s.CallTool(t.Context(), "unwell", nil); err != nil || !res.IsError || res.Text() != "no such file" {
			t.Errorf("unwell = %v, %v", res, err)
		}
		if res, err := s.CallTool(t.Context(), "panic", nil); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal || strings.Contains(rpc.Message, "oops") {
			t.Errorf("panic = %v, %v", res, err)
		}
		task, err := s.StartTask(t.Context(), "forever", nil)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := task.Info(t.Context()); err != nil || info.Status != "working" {
			t.Errorf("forever is %+v, %v", info, err)
		}
		if err := task.Cancel(t.Context()); err != nil {
			t.Errorf("cancel = %v", err)
		}
		if res, err := task.Wait(t.Context()); err == nil {
			t.Errorf("a cancelled task ended with %v", res)
		}
		ctx, give := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer give()
		if _, err := s.CallTool(ctx, "forever", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that was given up = %v", err)
		}
	})
}

// A task that the end of its server interrupts has failed, and the reason is told to
// who asks the next server that has the store.
func TestTaskInterrupted(t *testing.T) {
	mcptest.LeakCheck(t)
	synctest.Test(t, func(t *testing.T) {
		kept := &mapStore{}
		start := func() (*mcp.Server, *mcp.Session) {
			s := taskServer()
			s.Tasks.Store = kept
			return s, mcptest.Connect(t, s, answeringYes(), mcp.V2026_07_28)
		}
		first, near := start()
		task, err := near.StartTask(t.Context(), "forever", nil)
		if err != nil {
			t.Fatal(err)
		}
		stuck, err := near.StartTask(t.Context(), "forever", nil)
		if err != nil {
			t.Fatal(err)
		}
		asLeft, _ := kept.kept.Load(stuck.ID) // as it is when the process dies without a word
		if err := near.Close(); err != nil {
			t.Fatal(err)
		}
		short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		if err := first.Shutdown(short); err != nil {
			t.Fatal(err)
		}
		kept.kept.Store(stuck.ID, asLeft)
		_, near = start()
		for _, id := range []string{task.ID, stuck.ID} {
			info, err := near.Task(id).Info(t.Context())
			if err != nil || info.Status != "failed" || !strings.Contains(info.Message, "interrupted") {
				t.Errorf("the interrupted task is %+v, %v", info, err)
			}
			var rpc *mcp.Error
			if _, err := near.Task(id).Wait(t.Context()); !errors.As(err, &rpc) || !strings.Contains(rpc.Message, "interrupted") {
				t.Errorf("its outcome = %v", err)
			}
		}
	})
}

// mapStore is a [store.Tasks] that can be looked into.
type mapStore struct{ kept sync.Map }

func (m *mapStore) PutTask(_ context.Context, r store.Task) error {
	m.kept.Store(r.ID, r)
	return nil
}

func (m *mapStore) GetTask(_ context.Context, id string) (store.Task, bool, error) {
	v, ok := m.kept.Load(id)
	r, _ := v.(store.Task)
	return r, ok, nil
}

func (m *mapStore) ListTasks(context.Context, string, string, int) ([]store.Task, error) {
	return nil, errors.New("not asked for here")
}

// The progress of a task of 2025-11-25 reaches the caller that started it, by the token of the call
// (PROG-25-001, -002).
func TestTaskTellsWhoStartedIt(t *testing.T) {
	mcptest.LeakCheck(t)
	started := make(chan struct{})
	s := &mcp.Server{Name: "s", Version: "1", Tasks: quick()}
	mcp.AddTool(s, mcp.Tool{Name: "steps", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}},
		func(ctx context.Context, _ struct{}) (string, error) {
			<-started
			for i := range 3 {
				mcp.Progress(ctx, float64(i+1), 3, "")
			}
			return "done", nil
		})
	near := mcptest.Connect(t, s, answeringYes(), mcp.V2025_11_25)
	told := make(chan float64, 10)
	task, err := near.StartTask(t.Context(), "steps", nil, mcp.OnProgress(func(done, _ float64, _ string) { told <- done }))
	if err != nil {
		t.Fatal(err)
	}
	close(started)
	if res, err := task.Wait(t.Context()); err != nil || res.Text() != "done" {
		t.Errorf("wait = %v, %v", res, err)
	}
	for i := range 3 {
		select {
		case done := <-told:
			if done != float64(i+1) {
				t.Errorf("progress %v, want %d", done, i+1)
			}
		case <-time.After(time.Minute):
			t.Fatal("no progress")
		}
	}
}

// slowStore keeps tasks when it is let.
type slowStore struct {
	mapStore
	asked, let chan struct{}
}

func (s *slowStore) PutTask(ctx context.Context, r store.Task) error {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	<-s.let
	return s.mapStore.PutTask(ctx, r)
}

// A call as a task that is given up before its task is known is cancelled as a task, and
// not by the notification (CANC-25-003, -005).
func TestTaskGivenUp(t *testing.T) {
	mcptest.LeakCheck(t)
	s := taskServer()
	store := &slowStore{asked: make(chan struct{}, 1), let: make(chan struct{})}
	s.Tasks.Store = store
	cancelled := make(chan struct{})
	c := answeringYes()
	c.OnFrame = func(f trace.Frame) {
		switch text := string(f.Msg); {
		case strings.Contains(text, "notifications/cancelled"):
			t.Errorf("the client sent %s", text)
		case f.Dir == trace.Out && strings.Contains(text, "tasks/cancel"):
			close(cancelled)
		}
	}
	near := mcptest.Connect(t, s, c, mcp.V2025_11_25)
	ctx, giveUp := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := near.StartTask(ctx, "forever", nil)
		failed <- err
	}()
	<-store.asked
	giveUp()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("StartTask = %v", err)
	}
	close(store.let)
	select {
	case <-cancelled:
	case <-time.After(time.Minute):
		t.Fatal("the task was not cancelled")
	}
}
