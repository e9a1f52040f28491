package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// StartTask does the same with and without middleware of the client: it returns a task or not, and the
// task ends, fails and is cancelled alike.
func TestStartTaskBehindMiddleware(t *testing.T) {
	mcptest.LeakCheck(t)
	nothing := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) { return next.Handle(ctx, req) })
	}
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			started := func(t *testing.T, name string, mw ...mcp.Middleware) []string {
				t.Helper()
				c := answeringYes()
				c.Use(mw...)
				s := mcptest.Connect(t, taskServer(), c, rev)
				task, err := s.StartTask(t.Context(), name, nil)
				if err != nil {
					return []string{outcomeOf(nil, err)}
				}
				said := []string{fmt.Sprintf("a task: %t", task.ID != "")}
				if name == "forever" {
					if err := task.Cancel(t.Context()); err != nil {
						t.Errorf("cancel: %v", err)
					}
					_, err := task.Wait(t.Context())
					said = append(said, fmt.Sprintf("cancelled: %t", err != nil)) // in the words of the server, or here
				} else {
					said = append(said, outcomeOf(task.Wait(t.Context())))
				}
				info, err := task.Info(t.Context())
				if err != nil {
					t.Errorf("info: %v", err)
				}
				if name == "unwell" { // a result with isError fails a task up to 2025-11-25, and completes it since
					return append(said, fmt.Sprintf("over: %t", info.Over()))
				}
				return append(said, info.Status)
			}
			for _, name := range []string{"optional", "required", "never", "late", "fail", "unwell", "panic", "forever", "unknown"} {
				t.Run(name, func(t *testing.T) {
					if got, want := started(t, name, nothing), started(t, name); !slices.Equal(got, want) {
						t.Errorf("with middleware %q, without %q", got, want)
					}
				})
			}
		})
	}
}

// outcomeOf describes the end of a task.
func outcomeOf(res *mcp.ToolResult, err error) string {
	var rpc *mcp.Error
	switch {
	case errors.As(err, &rpc):
		return fmt.Sprintf("error %d: %s", rpc.Code, rpc.Message)
	case err != nil:
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%t %s", res.IsError, res.Text())
}
