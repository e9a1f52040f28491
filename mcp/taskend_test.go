package mcp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Trap 16: who waits for a task notices at once that the server is gone, between two looks at the
// task too, on both revisions with tasks.
func TestTaskOfAServerThatDies(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &mcp.Server{Name: "s", Version: "1", Tasks: mcp.TaskConfig{Poll: 30 * time.Second}}
				mcp.AddTool(s, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(ctx context.Context, _ struct{}) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				})
				near, far := jsonrpc.Pipe()
				served := make(chan struct{})
				go func() { defer close(served); s.Serve(t.Context(), far) }()
				c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}}
				session, err := c.Connect(t.Context(), mcptest.Wire(near))
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() {
					_, err := session.CallTool(t.Context(), "work", nil)
					ended <- err
				}()
				time.Sleep(45 * time.Second) // between two looks
				died := time.Now()
				far.Close()
				if err := <-ended; err == nil || time.Since(died) > time.Second {
					t.Errorf("CallTool = %v, %v after the server died", err, time.Since(died))
				}
				session.Close()
				<-served
				s.Shutdown(t.Context())
			})
		})
	}
}

// Trap 16: Shutdown complains of tasks only if some are left.
func TestShutdownCountsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		start := func(work func(context.Context)) *mcp.Server {
			s := &mcp.Server{Name: "s", Version: "1"}
			mcp.AddTool(s, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(ctx context.Context, _ struct{}) (string, error) {
				work(ctx)
				return "", nil
			})
			session := mcptest.Connect(t, s, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
			if _, err := session.StartTask(t.Context(), "work", nil); err != nil {
				t.Fatal(err)
			}
			session.Close()
			return s
		}
		for range 50 {
			if err := new(mcp.Server).Shutdown(gone); err != nil {
				t.Fatalf("Shutdown without a task = %v", err)
			}
		}
		if err := start(func(context.Context) {}).Shutdown(gone); err != nil && strings.Contains(err.Error(), "task") {
			t.Errorf("Shutdown after a task = %v", err)
		}
		if err := start(func(ctx context.Context) { <-ctx.Done() }).Shutdown(gone); err != nil && strings.Contains(err.Error(), "task") {
			t.Errorf("Shutdown with a task that heeds its context = %v", err)
		}
		release := make(chan struct{})
		defer close(release)
		if err := start(func(context.Context) { <-release }).Shutdown(gone); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1 tasks did not end") {
			t.Errorf("Shutdown with a stuck task = %v", err)
		}
	})
}

// Trap 15: middleware tells a question from a failure.
func TestMiddlewareSeesAQuestion(t *testing.T) {
	var got []error
	s := &mcp.Server{Name: "s", Version: "1"}
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.Handle(ctx, req)
			if req.Method == "tools/call" {
				got = append(got, err)
			}
			return res, err
		})
	})
	mcp.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (bool, error) { return mcp.Confirm(ctx, "really?") })
	c := &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
	}}
	session := mcptest.Connect(t, s, c, mcp.V2026_07_28)
	if ok, err := mcp.CallAs[bool](t.Context(), session, "ask", nil); !ok || err != nil {
		t.Fatalf("ask = %v, %v", ok, err)
	}
	if len(got) != 2 || !errors.Is(got[0], mcp.ErrPending) || got[1] != nil {
		t.Errorf("middleware saw %v, want ErrPending and no error", got)
	}
}
