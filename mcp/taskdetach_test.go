package mcp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A handler that detaches a caller whose time is over ends like any other: nothing
// waits for an answer that never comes.
func TestDetachAfterTheCallerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &mcp.Server{Name: "shop", Version: "1", Limits: mcp.Limits{CallTimeout: 10 * time.Second}}
		mcp.AddTool(s, mcp.Tool{Name: "late", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional, OnDetach: true}}, func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			mcp.Detach(ctx)
			return "", context.Cause(ctx)
		})
		p := newShopper(t, s, mcp.V2026_07_28)
		if m := p.get("tools/call", `"name":"late","arguments":{}`); m.Error == nil || !strings.Contains(m.Error.Message, "longer than 10s") {
			t.Errorf("got %s", show(&m))
		}
	})
}
