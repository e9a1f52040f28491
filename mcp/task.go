package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Task is a tool call that goes on at the server, even if nobody waits for it.
//
// Specification: extensions/tasks (2026-07-28); 2025-11-25, basic/utilities/tasks.
type Task struct {
	// ID names the task at its server; [Session.Task] finds the task again by its ID. It is empty
	// if the server made no task: it answered at once, or the session waits for the answer in the
	// background. The result can then only be had from this Task.
	ID string

	s    *Session
	name string // of the tool, for errors; may be empty
	opts []CallOption

	call *outgoing // the call that made it; nil if none of this process

	// Of a task without an ID:
	done   chan struct{} // closed when res and err are set
	cancel context.CancelFunc
	raw    json.RawMessage
	err    error
}

// TaskInfo is the state of a task.
type TaskInfo struct {
	ID      string
	Status  string // "working", "input_required", "completed", "failed" or "cancelled"
	Message string // for people
	Created time.Time
	Updated time.Time
	TTL     time.Duration // how long the server keeps it, from Created; 0 if the server does not say
	Poll    time.Duration // how often to ask; 0 if the server does not say
}

// Over reports whether the status is final.
func (t TaskInfo) Over() bool {
	return t.Status == "completed" || t.Status == "failed" || t.Status == "cancelled"
}

// StartTask calls a tool and returns when the server has begun, with a handle of the task if the
// server made one. If it did not, because the tool or the revision has no tasks, the call goes on
// in the background, and the same methods of the Task work within this session; an error of the
// call, such as that for an unknown tool, is then that of [Task.Wait]. A server that speaks 2026-07-28
// decides by itself, so StartTask returns with its first answer: the task, or the result.
//
// The functions of the [Client] answer questions that the task asks while [Task.Wait] runs.
func (s *Session) StartTask(ctx context.Context, name string, args any, opts ...CallOption) (*Task, error) {
	params, err := namedParams(name, args)
	if err != nil {
		return nil, fmt.Errorf("call %q: %w", name, err)
	}
	x := s.outgoing(opts)
	if x.opts.onBehalf {
		return nil, fmt.Errorf("call %q: %w", name, errTaskOnBehalf)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("call %q: %w", name, context.Cause(ctx))
	}
	t := &Task{s: s, name: name, opts: opts}
	if s.server().remote.MakesTask(ctx, name) {
		if err := x.begin(ctx, s, revision.MethodCall, params); err != nil {
			return nil, fmt.Errorf("call %q: %w", name, err)
		}
		id, raw, err := x.StartTask()
		if err = x.End(err); err != nil {
			return nil, fmt.Errorf("call %q: %w", name, err)
		}
		if t.ID, t.call = id, x; id == "" {
			t.answered(raw)
		}
		return t, nil
	}
	// The server has no task to come back to.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.done, t.cancel = make(chan struct{}), cancel
	begun := s.remote.Spawn(func() {
		defer cancel()
		defer close(t.done)
		t.raw, t.err = s.request(work, revision.MethodCall, params, opts)
	})
	if !begun {
		cancel()
		return nil, fmt.Errorf("call %q: %w", name, ErrClosed)
	}
	return t, nil
}

// errNoTask is the error of a Task that StartTask did not return, and that has no ID.
var errNoTask = errors.New("the id is empty, so the server made no task; use the Task that StartTask returned")

// errTaskOnBehalf refuses OnBehalf for a task, because a task may ask questions after the handler
// has returned.
var errTaskOnBehalf = errors.New("mcp: OnBehalf needs a call that waits for its result; use CallTool, which waits for a task")

// answered gives the task its result.
func (t *Task) answered(raw json.RawMessage) {
	t.raw, t.done, t.cancel = raw, make(chan struct{}), func() {}
	close(t.done)
}

// Task returns a handle of a task that exists at the server. Nothing is sent. The methods of a
// handle with an empty id return an error.
func (s *Session) Task(id string) *Task { return &Task{ID: id, s: s} }

// Tasks iterates over the tasks of this client at the server. Only 2025-11-25 has such a list, and
// not every server offers it; without it the error is [ErrNotSupported].
func (s *Session) Tasks(ctx context.Context) iter.Seq2[TaskInfo, error] {
	return func(yield func(TaskInfo, error) bool) {
		if !s.server().remote.ListsTasks() {
			yield(TaskInfo{}, fmt.Errorf("%s: %w", revision.MethodTasks, ErrNotSupported))
			return
		}
		for item, err := range listOf[json.RawMessage](ctx, s, feature.Tasks, nil) {
			var state engine.TaskState
			if err == nil {
				err = jsonx.Unmarshal(s.remote.InnerTask(*item), &state)
			}
			if !yield(taskInfo(&state), err) {
				return
			}
		}
	}
}

func taskInfo(t *engine.TaskState) TaskInfo {
	const ms = time.Millisecond
	return TaskInfo{t.ID, t.Status, t.Message, t.Created, t.Updated, time.Duration(t.TTL) * ms, time.Duration(t.Poll) * ms}
}

// Info asks the server for the state of the task.
func (t *Task) Info(ctx context.Context) (TaskInfo, error) {
	switch {
	case t.ID == "" && t.done == nil:
		return TaskInfo{}, t.fail(errNoTask)
	case t.ID == "":
		select {
		case <-t.done:
			if t.err != nil {
				return TaskInfo{Status: "failed", Message: t.err.Error()}, nil
			}
			return TaskInfo{Status: "completed"}, nil
		default:
			return TaskInfo{Status: "working"}, nil
		}
	}
	state, err := t.s.remote.Task(ctx, t.ID)
	if err != nil {
		return TaskInfo{}, t.fail(err)
	}
	return taskInfo(state), nil
}

// Wait waits for the result. If ctx ends, only Wait ends, not the task. For a task that failed or
// was cancelled, Wait returns an error.
func (t *Task) Wait(ctx context.Context) (*ToolResult, error) {
	raw, err := t.wait(ctx)
	if err != nil {
		return nil, t.fail(err)
	}
	return decodeToolResult(raw)
}

func (t *Task) wait(ctx context.Context) (json.RawMessage, error) {
	switch {
	case t.ID == "" && t.done == nil:
		return nil, errNoTask
	case t.ID == "":
		select {
		case <-t.done:
			return t.raw, t.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	x := t.s.outgoing(t.opts)
	if err := x.begin(ctx, t.s, revision.MethodCall, nil); err != nil {
		return nil, err
	}
	raw, err := x.Await(t.ID)
	if ctx.Err() == nil && t.call != nil {
		t.call.Forget()
	}
	return raw, x.End(err)
}

// Cancel asks the server to cancel the task. The server may ignore that; [Task.Info] returns the
// state.
func (t *Task) Cancel(ctx context.Context) error {
	switch {
	case t.ID == "" && t.done == nil:
		return t.fail(errNoTask)
	case t.ID == "":
		t.cancel()
		return nil
	}
	_, err := t.s.request(ctx, revision.MethodTaskCancel, bridge.TaskParams(t.ID), nil)
	if err != nil {
		return t.fail(err)
	}
	return nil
}

func (t *Task) fail(err error) error {
	switch {
	case t.done != nil: // there is no task
		return fmt.Errorf("call %q: %w", t.name, err)
	case t.name == "":
		return fmt.Errorf("task %q: %w", text.Short(t.ID), err)
	}
	return fmt.Errorf("task %q of %q: %w", text.Short(t.ID), t.name, err)
}
