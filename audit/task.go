package audit

import (
	"time"

	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/taskend"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
)

// pendingTask is the end of a call that has become a task, and when that was.
type pendingTask struct {
	entry Entry
	made  time.Time
}

// taskOutcomes are the words for the ends of tasks.
var taskOutcomes = map[outcome.Cause]middleware.Outcome{
	outcome.Result: middleware.OK, outcome.Tool: middleware.ToolError, outcome.Server: middleware.Failed, outcome.Caller: middleware.Canceled,
}

// taskSeen writes the line of the end of a task when a caller sees it for the first time. A Trail that
// has not seen the call of the task writes none.
func (t *Trail) taskSeen(id string, state mcp.Result) {
	end, over := taskend.Of(state)
	if !over {
		return
	}
	task, ok := t.tasks.Take(id)
	if !ok {
		return
	}
	e := task.entry
	e.Kind, e.Time, e.Outcome, e.Code = TaskEnd, time.Time{}, string(taskOutcomes[end.Cause]), end.Code
	if end.Cause == outcome.Server {
		e.Fault = faults[outcome.Server]
	}
	// A poll may come long after the end, so the server's own times are closer to it.
	took := time.Since(task.made)
	if end.Took > 0 {
		took = min(took, end.Took)
	}
	e.Millis += millis(took)
	if e.Bytes, e.Result = len(end.Result), ""; end.Result != nil {
		e.Result = digest(end.Result)
	}
	t.Log.Add(e)
}
