package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// ToolExecution configures how calls of a tool run.
//
// Specification: 2025-11-25, basic/utilities/tasks, and extensions/tasks.
type ToolExecution struct {
	// TaskSupport selects whether calls become tasks, which go on after the caller is answered. It
	// applies to callers that speak 2026-07-28 and declare the extension, and to callers that speak
	// 2025-11-25 and ask for a task. Questions that a task asks still reach the caller. All other
	// callers wait for the result. Zero: never.
	TaskSupport TaskSupport `json:"taskSupport,omitempty"`

	// OnDetach lets the handler choose the moment: the call becomes a task when the handler calls
	// [Detach], for instance after its questions. A caller that speaks 2025-11-25 and asks for a
	// task gets it at once. It needs TaskSupport.
	OnDetach bool `json:"-"`
}

// TaskSupport selects whether calls of a tool become tasks.
type TaskSupport string

// The kinds of task support other than none. A tool with TaskRequired refuses a caller that could
// accept a task but does not. A caller that speaks a revision before 2025-11-25 waits for the
// result.
const (
	TaskOptional TaskSupport = "optional"
	TaskRequired TaskSupport = "required"
)

// taskTools reports whether any tool may run as a task.
func (s *Server) taskTools() bool {
	for _, p := range s.tools.snapshot().order {
		if p.e.def.Execution.TaskSupport != "" {
			return true
		}
	}
	return false
}

// callAsTask calls a tool, as a task if the caller accepts one.
func (s *Server) callAsTask(ctx context.Context, how ToolExecution, args json.RawMessage, run func(context.Context, json.RawMessage) (Result, error)) (Result, error) {
	call := engine.From(ctx)
	switch {
	case call == nil:
		return run(ctx, args)
	case !call.TakesTask():
		if how.TaskSupport == TaskRequired && call.Peer.MayTakeTask() {
			return nil, call.NeedsTask()
		}
		return run(ctx, args)
	case how.TaskSupport == "":
		if !call.Peer.Revision.Sessions || !s.taskTools() {
			return run(ctx, args) // TASK-25-015
		}
		return nil, Errorf(jsonrpc.CodeMethodNotFound, "this tool does not run as a task; call it without a task member") // TASK-25-006
	}
	args = slices.Clone(args)
	if !how.OnDetach || call.Peer.Revision.Sessions {
		own := call.Detachable(nil)
		t, err := s.jobs.create(ctx, own)
		if err != nil {
			return nil, err
		}
		s.jobs.start(ctx, own, t, func(ctx context.Context) (Result, error) { return run(ctx, args) })
		return s.jobs.handle(t), nil
	}
	return s.callUntilDetach(ctx, call, args, run)
}

// callUntilDetach runs a handler that becomes a task when it calls Detach.
func (s *Server) callUntilDetach(ctx context.Context, call *engine.Call, args json.RawMessage, run func(context.Context, json.RawMessage) (Result, error)) (Result, error) {
	type outcome struct {
		res Result
		err error
		t   *task // that the call became
	}
	var (
		answer = make(chan outcome, 1)
		own    *engine.Call
		once   sync.Once
		became = make(chan *task, 1)
	)
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	attached := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	own = call.Detachable(func() {
		once.Do(func() {
			if !attached() { // the caller is gone, so the work is about to be cancelled
				answer <- outcome{err: context.Cause(ctx)}
				return
			}
			t, err := s.jobs.create(ctx, own)
			if err != nil {
				answer <- outcome{err: err}
				cancel(err)
				return
			}
			became <- t
			answer <- outcome{res: s.jobs.handle(t), t: t}
		})
	})
	ended := make(chan outcome, 1)
	begun := s.jobs.spawn(func() {
		defer cancel(nil)
		s.runTask(work, own, func(ctx context.Context) (Result, error) { return run(ctx, args) }, func(res Result, err error) {
			once.Do(func() { // the handler has returned without Detach; a later Detach has no effect
				close(became)
				ended <- outcome{res: res, err: err}
			})
			select {
			case t := <-became:
				if t != nil {
					s.jobs.finish(work, t, res, err)
				}
			default: // no task could be made
			}
		})
	})
	if !begun {
		attached()
		cancel(ErrClosed)
		return nil, ErrClosed
	}
	select {
	case o := <-ended:
		attached()
		return o.res, o.err
	case o := <-answer:
		if o.t != nil {
			s.jobs.adopt(o.t, cancel)
		}
		return o.res, o.err
	}
}

// runTask runs a handler on a goroutine without a request, and calls done with its result, also if
// the handler ends the goroutine.
func (s *Server) runTask(ctx context.Context, call *engine.Call, run func(context.Context) (Result, error), done func(Result, error)) {
	var res Result
	err := usercode.Failed()
	defer func() { done(res, err) }()
	ctx = engine.With(ctx, call)
	err = s.eng.User.Run(ctx, call.Method, func() (err error) {
		if res, err = run(ctx); err == nil {
			usable(res)
		}
		return err
	})
	if failed, ok := res.(*ToolResult); errors.Is(context.Cause(ctx), errShutdown) && (err != nil || ok && failed.IsError) {
		err = Errorf(jsonrpc.CodeInternal, "interrupted: the server was shut down while the task was running")
	}
}
