package mcp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// TRANSLATION T-100 to T-109: tools of every kind of task support work through a session
// that is served, on all 25 pairs of front and back, for callers who wait and for those who
// start a task.
func TestTaskPairs(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, front := range mcp.Revisions() {
		for _, back := range mcp.Revisions() {
			if !asks(front) && asks(back) && back != mcp.V2026_07_28 {
				continue // a question fails there: the server was told that it may ask
			}
			t.Run(fmt.Sprintf("%s on %s", front, back), func(t *testing.T) {
				session := mcptest.Connect(t, taskServer(), middle(t), back)
				s := mcptest.Connect(t, &mcp.Server{Name: "front", Version: "1", Handler: session}, answeringYes(), front)
				for _, name := range []string{"optional", "required", "never", "late"} {
					if res, err := s.CallTool(t.Context(), name, nil); err != nil || res.Text() != "done" {
						t.Errorf("call %q = %v, %v", name, res, err)
					}
					task, err := s.StartTask(t.Context(), name, nil)
					if err != nil {
						t.Errorf("start %q: %v", name, err)
						continue
					}
					if res, err := task.Wait(t.Context()); err != nil || res.Text() != "done" {
						t.Errorf("wait for %q = %v, %v", name, res, err)
					}
				}
				var rpc *mcp.Error
				if res, err := s.CallTool(t.Context(), "fail", nil); !errors.As(err, &rpc) || rpc.Message != "broken" {
					t.Errorf("fail = %v, %v", res, err)
				}
			})
		}
	}
}
