package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Bounds of the interval between polls of a task, whatever its server says.
const (
	minPoll = 10 * time.Millisecond
	maxPoll = time.Minute
)

// createTime bounds how long a server that speaks 2025-11-25 may take to make a task that nothing
// waits for any more. The task is then cancelled.
const createTime = 30 * time.Second

// pollFailures bounds the consecutive polls of a task that may fail.
const pollFailures = 5

// TaskParams makes the params of a request that names a task.
func TaskParams(id string) json.RawMessage {
	return append(jsonx.AppendString([]byte(`{"taskId":`), id), '}')
}

// TaskID reads the id of a handle.
func TaskID(handle json.RawMessage) (string, error) {
	raw, _ := jsonx.Lookup(handle, "taskId")
	id, err := jsonx.Unquote(raw)
	if err != nil || id == "" {
		return "", engine.Unusable("the server made a task without a taskId")
	}
	return id, nil
}

// Task asks for the state of a task.
func (r *Remote) Task(ctx context.Context, id string) (*engine.TaskState, error) {
	raw, err := r.Request(ctx, revision.MethodTask, TaskParams(id))
	if err != nil {
		return nil, err
	}
	var state engine.TaskState
	if err := jsonx.Unmarshal(r.InnerTask(raw), &state); err != nil {
		return nil, engine.Unusable("the server's task: %v", err)
	}
	return &state, nil
}

// InnerTask returns the inner form of a task in the server's form.
func (r *Remote) InnerTask(raw json.RawMessage) json.RawMessage {
	if r.Rev.CoreTasks {
		return revision.InnerTask(raw)
	}
	return raw
}

// ListsTasks reports whether the server lists its tasks, which only 2025-11-25 can.
func (r *Remote) ListsTasks() bool { return r.Rev.CoreTasks && r.has("tasks", "list") }

// MakesTask reports whether the answer to a tool call may come before its result.
func (r *Remote) MakesTask(ctx context.Context, tool string) bool {
	if !r.Rev.Sessions {
		return true
	}
	if !r.CoreTasks() {
		return false
	}
	support := r.TaskSupport(ctx, tool)
	return support == taskRequired || support == taskOptional // TASK-25-005
}

// StartTask sends a tool call and returns when the server has begun, with the id of the task that
// the server has made, or else with the result. Progress of a 2025-11-25 task reaches the listener
// until Forget. After an error nothing is left running.
func (x *Call) StartTask() (id string, result json.RawMessage, err error) {
	if !x.r.Rev.Sessions {
		ctx := x.ctx()
		if x.r.Local { // the server behind middleware may be one that makes tasks on request
			ctx = context.WithValue(ctx, wantsTask{}, true)
		}
		x.onTask = func(_ context.Context, handle json.RawMessage) (json.RawMessage, error) {
			var err error
			id, err = TaskID(handle)
			return handle, err
		}
		result, err = x.run(ctx)
		return id, result, err
	}
	d, ok := x.r.cancels.add(x.ctx())
	if !ok {
		return "", nil, ErrClosed
	}
	if x.tokenID != 0 {
		x.listen()
	}
	if result, err = x.create(d); err != nil {
		x.Forget()
		return "", nil, err
	}
	defer d.done()
	if handle := coreHandle(result); handle != nil {
		id, err = TaskID(handle)
		return id, nil, err
	}
	x.Forget()
	return "", result, nil
}

// Await waits for the end of a task and returns its result, in the inner form. Questions of the task
// are answered meanwhile.
func (x *Call) Await(id string) (json.RawMessage, error) { return x.await(x.ctx(), id) }

// await waits for the end of a task and answers its questions meanwhile. The idle timer is paused,
// because a task may take long without a message. Requests about it have their own limits.
func (x *Call) await(ctx context.Context, id string) (json.RawMessage, error) {
	x.timer.pause()
	defer x.timer.resume()
	if x.r.Rev.CoreTasks {
		for failures := 1; ; failures++ {
			out := x.bare() // for one run
			out.method, out.params = revision.MethodTaskResult, TaskParams(id)
			raw, err := out.run(ctx)
			var rpc *jsonrpc.Error
			if err == nil || errors.As(err, &rpc) || errors.Is(err, ErrClosed) || ctx.Err() != nil || x.r.Ended() || failures > pollFailures {
				return WithoutMeta(raw, revision.RelatedTask), err
			}
			// Polls fail, but the task goes on, and its result can be asked for again.
			if err := x.r.sleep(ctx, time.Duration(failures)*time.Second); err != nil {
				return nil, err
			}
		}
	}
	answered := map[string]bool{} // XTASK-26-021, -028
	failures := 0
	for {
		state, err := x.r.Task(ctx, id)
		var rpc *jsonrpc.Error
		switch {
		case err == nil:
			failures = 0
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &rpc), x.r.Ended(), errors.Is(err, ErrClosed), failures >= pollFailures:
			return nil, err
		default: // the poll failed; the task goes on
			failures++
			if err := x.r.sleep(ctx, time.Duration(failures)*time.Second); err != nil {
				return nil, err
			}
			continue
		}
		switch state.Status {
		case "completed":
			if jsonx.KindOf(state.Result) != '{' {
				return nil, engine.Unusable("the server's task is completed and has no result")
			}
			return state.Result, nil
		case "failed":
			if state.Error == nil {
				return nil, fmt.Errorf("the task failed: %s", text.Short(state.Message))
			}
			return nil, state.Error
		case "cancelled":
			return nil, fmt.Errorf("%w: %s", engine.ErrTaskCancelled, text.Short(state.Message))
		case "input_required":
			if err := x.answerTask(ctx, id, state.Requests, answered); err != nil {
				return nil, err
			}
		}
		poll := time.Duration(state.Poll) * time.Millisecond
		if poll <= 0 {
			poll = time.Second
		}
		if err := x.r.sleep(ctx, min(max(poll, minPoll), maxPoll)); err != nil {
			return nil, err
		}
	}
}

// answerTask answers the questions of a task that are not answered yet.
func (x *Call) answerTask(ctx context.Context, id string, requests json.RawMessage, answered map[string]bool) error {
	round, err := keptRound{}.next(jsonx.With(nil, json.RawMessage(`{"requestState":""}`), "inputRequests", jsonx.OrObject(requests)), 1)
	if err != nil {
		return err
	}
	fresh := round.Questions[:0]
	for _, q := range round.Questions {
		if !answered[q.Key] {
			fresh = append(fresh, q)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	round.Questions = fresh
	responses, err := x.answers(ctx, round)
	if err != nil {
		return err
	}
	for _, q := range fresh {
		answered[q.Key] = true
	}
	_, err = x.r.Request(ctx, revision.MethodTaskUpdate, jsonx.With(nil, TaskParams(id), "inputResponses", responses))
	return err
}

// finishTask waits for a task in place of its call: if the call is given up, so is the task.
func (x *Call) finishTask(ctx context.Context, handle json.RawMessage) (json.RawMessage, error) {
	d, ok := x.r.cancels.add(ctx)
	if !ok {
		return nil, ErrClosed
	}
	return x.finishPending(d, handle)
}

// finishPending is like finishTask, but d, which says when the call is given up, is registered
// already. It takes d from the register.
func (x *Call) finishPending(d *pendingCancel, handle json.RawMessage) (json.RawMessage, error) {
	id, err := TaskID(handle)
	if err != nil {
		d.done()
		return nil, err
	}
	raw, err := x.await(d.ctx, id)
	if err == nil || d.ctx.Err() == nil {
		d.done()
		return raw, err
	}
	d.doneAfter(func() { x.r.cancelTask(id) })
	return nil, err
}

// create makes a call to a server that speaks 2025-11-25 as a task, and returns the answer. Such a
// call must not be cancelled like others: if d ends first, the task is cancelled once its id is
// known (CANC-25-003). On an error, create calls d.done.
func (x *Call) create(d *pendingCancel) (json.RawMessage, error) {
	type answer struct {
		raw json.RawMessage
		err error
	}
	got := make(chan answer, 1)
	own, cancel := context.WithCancel(context.WithoutCancel(d.ctx))
	params := jsonx.With(nil, x.params, "task", []byte(`{}`)) // a copy, because the caller may return first
	// It ends before d is told.
	go func() {
		defer cancel()
		raw, err := x.plain(own, params)
		got <- answer{raw, err}
	}()
	select {
	case a := <-got:
		if a.err != nil {
			d.done()
		}
		return a.raw, a.err
	case <-d.ctx.Done():
	}
	cause := context.Cause(d.ctx)
	late := time.AfterFunc(createTime, cancel)
	d.doneAfter(func() {
		defer late.Stop()
		a := <-got
		if id := x.r.taskIn(a.raw); id != "" {
			x.r.cancelTask(id)
		}
	})
	return nil, cause
}

// coreHandle returns the task of a CreateTaskResult of 2025-11-25 in the inner form, or nil if the
// server answered the call at once.
func coreHandle(raw json.RawMessage) json.RawMessage {
	task, ok := jsonx.Lookup(raw, "task")
	if !ok || jsonx.KindOf(task) != '{' {
		return nil
	}
	return revision.InnerTask(task)
}

// requiresTask reports whether a call to a server that speaks 2025-11-25 must be a task. If the
// server refused a plain call, requiresTask reads the list of tools (TASK-25-007).
func (x *Call) requiresTask(ctx context.Context, refused error) bool {
	if x.method != revision.MethodCall || !x.r.CoreTasks() {
		return false
	}
	if _, augmented := jsonx.Lookup(x.params, "task"); augmented {
		return false
	}
	raw, _ := jsonx.Lookup(x.params, "name")
	name, err := jsonx.Unquote(raw)
	if err != nil {
		return false
	}
	var rpc *jsonrpc.Error
	if refused != nil && (!errors.As(refused, &rpc) || rpc.Code != jsonrpc.CodeMethodNotFound || !x.r.Owner.ListTools(ctx)) {
		return false
	}
	support, _ := x.r.taskSupport(name)
	return support == taskRequired
}
