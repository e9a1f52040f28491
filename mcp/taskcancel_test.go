package mcp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// CANC-25-003: a task whose id comes when its call was given up and its session is being
// closed is cancelled all the same.
func TestTaskIsCancelledWhileTheSessionCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Time, 1)
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "long", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			ended <- time.Now()
			return "", context.Cause(ctx)
		})
		s.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == "tools/call" {
					time.Sleep(100 * time.Millisecond)
				}
				return next.Handle(ctx, req)
			})
		})
		t.Cleanup(func() { s.Shutdown(context.Background()) })
		c := mcptest.Connect(t, s, middle(t), mcp.V2025_11_25)
		for range c.Tools(t.Context()) {
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := c.CallTool(ctx, "long", nil); err == nil {
			t.Fatal("the call was not given up")
		}
		begun := time.Now()
		c.Close()
		select {
		case at := <-ended:
			if at.Sub(begun) > time.Minute {
				t.Errorf("the task went on for %v", at.Sub(begun))
			}
		case <-time.After(10 * time.Minute):
			t.Error("the task goes on")
		}
	})
}
