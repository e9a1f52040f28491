package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// TaskState is a task on the wire, and in a store, in the inner form (extensions/tasks, DetailedTask).
type TaskState struct {
	ID       string          `json:"taskId"`
	Status   string          `json:"status"`
	Message  string          `json:"statusMessage,omitempty"`
	Created  time.Time       `json:"createdAt"`
	Updated  time.Time       `json:"lastUpdatedAt"`
	TTL      int64           `json:"ttlMs"`          // milliseconds
	Poll     int64           `json:"pollIntervalMs"` // milliseconds
	Requests json.RawMessage `json:"inputRequests,omitzero"`
	Result   json.RawMessage `json:"result,omitzero"`
	Error    *jsonrpc.Error  `json:"error,omitempty"`
}

// Over reports whether the state is final.
func (t *TaskState) Over() bool {
	return t.Status == "completed" || t.Status == "failed" || t.Status == "cancelled"
}

// TaskTime is the time as tasks tell it: in UTC, to the millisecond.
func TaskTime() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// ErrTaskCancelled is the cause of the end of a task that was cancelled.
var ErrTaskCancelled = errors.New("the task was cancelled")

// UnknownTask is the error for a task that does not exist, or is not the caller's.
func UnknownTask(id string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: node.UnknownTask(id) + "; a task is kept for its time to live"}
}

// AnswerTask gives a task, nil for one that is over, the answers in the params of tasks/update. The
// call may be nil.
func AnswerTask(call *Call, params json.RawMessage, t *Task) error {
	responses, _ := jsonx.Lookup(params, "inputResponses")
	if jsonx.KindOf(responses) != '{' {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s: missing %q, an object", revision.MethodTaskUpdate, "inputResponses")}
	}
	for key, answer := range jsonx.Members(responses) {
		if jsonx.KindOf(answer) != '{' {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s: %q of inputResponses must be an object", revision.MethodTaskUpdate, text.Short(string(key)))}
		}
	}
	if t == nil {
		return nil // it is over, and nothing outstanding (XTASK-26-029)
	}
	for key, answer := range jsonx.Members(responses) {
		t.Answer(string(key), answer, nil)
	}
	if call != nil {
		for key, fault := range call.Faults() {
			t.Answer(key, nil, fault)
		}
	}
	return nil
}
