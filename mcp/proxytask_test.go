package mcp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// T-100: nobody uses up the tasks that others can have: those that are over make room, and
// results that are too much are dropped, the oldest first.
func TestLentTasksMakeRoom(t *testing.T) {
	long.WithoutRace(t)
	synctest.Test(t, func(t *testing.T) {
		big := strings.Repeat("x", 12<<20)
		back := &mcp.Server{Name: "back", Version: "1"}
		required := mcp.ToolExecution{TaskSupport: mcp.TaskRequired}
		mcp.AddTool(back, mcp.Tool{Name: "quick", Execution: required}, func(context.Context, struct{}) (string, error) { return "done", nil })
		mcp.AddTool(back, mcp.Tool{Name: "big", Execution: required}, func(context.Context, struct{}) (string, error) { return big, nil })
		t.Cleanup(func() { back.Shutdown(context.Background()) })
		session := mcptest.Connect(t, back, middle(t), mcp.V2025_11_25)
		p := newShopper(t, &mcp.Server{Name: "front", Version: "1", Handler: session}, mcp.V2026_07_28)
		var first, last string
		for i := range 1005 {
			last = p.begin("quick", "{}").TaskID
			if i == 0 {
				first = last
			}
			synctest.Wait()
			if i%50 == 0 { // some were looked at before they ended, and are looked at again
				time.Sleep(10 * time.Second)
			}
		}
		if s := p.state(last); s.Status != "completed" {
			t.Errorf("the last task: %+v", s)
		}
		wantError(t, p.get("tasks/get", `"taskId":"`+first+`"`), jsonrpc.CodeInvalidParams)

		for i := range 7 {
			last = p.begin("big", "{}").TaskID
			if i == 0 {
				first = last
			}
			time.Sleep(time.Second)
		}
		if s := p.state(last); s.Status != "completed" || len(s.Result) < len(big) {
			t.Errorf("the last big task is %s with %d bytes", s.Status, len(s.Result))
		}
		wantError(t, p.get("tasks/get", `"taskId":"`+first+`"`), jsonrpc.CodeInvalidParams)
	})
}
