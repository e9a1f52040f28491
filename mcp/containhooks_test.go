package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/store"
	"github.com/patchbay-dev/patchbay/trace"
)

// Stores, OnStart, OnShutdown, OnFrame, Principal and the function of WithNotify are contained
// too: the call fails, the next one works.
func TestContainHooks(t *testing.T) {
	mcptest.LeakCheck(t)
	var faulty atomic.Bool // the next call of a hook panics
	fault := func() {
		if faulty.Swap(false) {
			panic("secret")
		}
	}
	store := &faultyStore{fault: fault}
	var panics atomic.Int64
	server := func(set func(*mcp.Server)) *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1", OnPanic: func(context.Context, any, []byte) { panics.Add(1); panic("and OnPanic too") }}
		mcp.AddTool(s, mcp.Tool{Name: "echo"}, func(_ context.Context, in text) (string, error) { return in.Text, nil })
		mcp.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
			_, err := mcp.Confirm(ctx, "really?")
			return "asked", err
		})
		mcp.AddTool(s, mcp.Tool{Name: "task", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(context.Context, struct{}) (string, error) { return "done", nil })
		mcp.AddTool(s, mcp.Tool{Name: "tick"}, func(context.Context, struct{}) (string, error) { s.ResourceUpdated("x://clock"); return "told", nil })
		mcp.AddTool(s, mcp.Tool{Name: "progress"}, func(ctx context.Context, _ struct{}) (string, error) {
			mcp.Log(ctx).Error("working")
			return "told", nil
		})
		mcp.AddTool(s, mcp.Tool{Name: "note"}, func(ctx context.Context, _ struct{}) (string, error) {
			return "told", forward.Notify(forward.WithNotify(ctx, func(string, json.RawMessage) error { fault(); return nil }), "notifications/x", nil)
		})
		set(s)
		return s
	}
	for _, tt := range []struct {
		name, tool string
		set        func(*mcp.Server)
		fine       bool // the call itself works
	}{
		{"OnStart", "echo", func(s *mcp.Server) { s.OnStart = func(context.Context) error { fault(); return nil } }, false},
		{"States", "ask", func(s *mcp.Server) { s.State.Store = store }, false},
		{"Shared", "ask", func(s *mcp.Server) { s.Shared = faultyShared{store} }, false},
		{"Shared.Tell", "tick", func(s *mcp.Server) { s.Shared = faultyShared{store} }, true},
		{"Tasks", "task", func(s *mcp.Server) { s.Tasks.Store = store }, false},
		{"WithNotify", "note", func(*mcp.Server) {}, false},
		{"OnFrame", "echo", func(s *mcp.Server) { s.OnFrame = func(trace.Frame) { fault() } }, true},
		{"Principal", "echo", func(s *mcp.Server) { s.HTTP.Principal = func(*http.Request) string { fault(); return "" } }, false},
		{"Events", "progress", func(s *mcp.Server) { s.HTTP.Events, s.Revisions = store, []mcp.Revision{mcp.V2025_11_25} }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := server(tt.set)
			hs := httptest.NewServer(s)
			t.Cleanup(func() { hs.Close(); s.Shutdown(t.Context()) })
			c := &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
			}}
			open := func() (*mcp.Session, error) { return c.Dial(t.Context(), hs.URL) }
			session, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if tt.name == "OnStart" {
				s = server(tt.set) // one that has not started
				hs.Config.Handler = s
			}
			before := panics.Load()
			faulty.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = session.CallTool(ctx, tt.tool, nil)
			if faulty.Swap(false) || panics.Load() == before {
				t.Errorf("the hook was not called, or OnPanic was not: %v", err)
			}
			if failed := err != nil; failed == tt.fine && tt.tool != "note" || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the call with the panic = %v", err)
			}
			if _, err := session.CallTool(ctx, tt.tool, nil); err != nil {
				t.Errorf("the next call = %v", err)
			}
			echo(t, session)
		})
	}
	t.Run("OnShutdown", func(t *testing.T) {
		s := server(func(s *mcp.Server) {
			s.OnStart = func(context.Context) error { return nil }
			s.OnShutdown = func(context.Context) error { panic("secret") }
		})
		if _, err := s.Handle(t.Context(), &mcp.Request{Method: "tools/list"}); err != nil {
			t.Fatal(err)
		}
		if err := s.Shutdown(t.Context()); err == nil {
			t.Error("Shutdown hides that OnShutdown panicked")
		}
	})
	t.Run("middleware", func(t *testing.T) {
		s := server(func(s *mcp.Server) { s.Use(func(mcp.Handler) mcp.Handler { panic("secret") }) })
		for range 2 {
			if _, err := s.Handle(t.Context(), &mcp.Request{Method: "tools/list"}); err == nil {
				t.Error("Handle works though a middleware could not be made")
			}
		}
	})
}

// faultyShared shares the keys alone.
type faultyShared struct{ *faultyStore }

func (faultyShared) Sessions() store.Sessions { return nil }
func (faultyShared) Events() store.Events     { return nil }
func (faultyShared) Tasks() store.Tasks       { return nil }
func (s faultyShared) StateKeys() [][]byte {
	s.fault()
	return [][]byte{[]byte("a key of thirty-two bytes or so.")}
}

func (s faultyShared) Tell([]byte)       { s.fault() }
func (faultyShared) OnTold(func([]byte)) {}

// faultyStore keeps states, tasks and events, and panics when fault does.
type faultyStore struct {
	fault  func()
	states sync.Map
	n      atomic.Int64
	tasks  sync.Map
}

func (f *faultyStore) Put(_ context.Context, state []byte, _ time.Duration) (string, error) {
	f.fault()
	ref := fmt.Sprint(f.n.Add(1))
	f.states.Store(ref, state)
	return ref, nil
}

func (f *faultyStore) Take(_ context.Context, ref string) ([]byte, error) {
	f.fault()
	v, ok := f.states.LoadAndDelete(ref)
	if !ok {
		return nil, errors.New("unknown")
	}
	return v.([]byte), nil
}

func (f *faultyStore) PutTask(_ context.Context, t store.Task) error {
	f.fault()
	f.tasks.Store(t.ID, t)
	return nil
}

func (f *faultyStore) GetTask(_ context.Context, id string) (store.Task, bool, error) {
	f.fault()
	v, ok := f.tasks.Load(id)
	t, _ := v.(store.Task)
	return t, ok, nil
}

func (f *faultyStore) ListTasks(context.Context, string, string, int) ([]store.Task, error) {
	f.fault()
	return nil, nil
}

func (f *faultyStore) Append(context.Context, string, int64, []byte) error { f.fault(); return nil }
func (f *faultyStore) After(context.Context, string, int64) ([][]byte, error) {
	f.fault()
	return nil, nil
}
func (f *faultyStore) Forget(context.Context, string) error { f.fault(); return nil }
