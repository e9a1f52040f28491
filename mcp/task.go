package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// Task is a call of a tool that goes on at the server, whoever waits for it.
//
// Specification: extensions/tasks (2026-07-28); 2025-11-25, basic/utilities/tasks.
type Task struct {
	// ID names the task at its server; keep it to find the task again with
	// [Session.Task]. It is empty if the server made no task: it answered at once, or the
	// session waits for the answer in the background.
	ID string

	s    *Session
	name string // of the tool, for errors; may be empty
	opts []CallOption

	call *outgoingCall // that made it, at 2025-11-25, if it listens for progress

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
	TTL     time.Duration // how long the server keeps it, from Created; 0 if it does not say
	Poll    time.Duration // how often to ask; 0 if the server does not say
}

// Over tells whether the state is final.
func (t TaskInfo) Over() bool {
	return t.Status == "completed" || t.Status == "failed" || t.Status == "cancelled"
}

// How often a task is asked for, whatever its server says.
const (
	minPoll = 10 * time.Millisecond
	maxPoll = time.Minute
)

// createTime bounds how long a server of 2025-11-25 may take to make a task that nobody
// waits for any more, and which is cancelled then.
const createTime = 30 * time.Second

// cancelTime bounds telling a server that nobody waits for a task any more.
const cancelTime = 2 * time.Second

// pollFailures is how often in a row a task may be out of reach.
const pollFailures = 5

// StartTask calls a tool and returns when the server has begun: with a handle of the
// task if it made one. If not, be it that the tool or the revision has no tasks, the call
// goes on in the background, and the same methods work, within this session. A server of
// 2026-07-28 decides by itself, so StartTask returns with what it answers first: the task,
// or the result.
//
// Questions of a task are answered, by the functions of the [Client], while
// [Task.Wait] runs.
func (s *Session) StartTask(ctx context.Context, name string, args any, opts ...CallOption) (*Task, error) {
	params, err := namedParams(name, args)
	if err != nil {
		return nil, fmt.Errorf("call %q: %w", name, err)
	}
	t := &Task{s: s, name: name, opts: opts}
	switch {
	case !s.rev.Sessions && s.makesTask(ctx, name):
		x := s.outgoing(ctx, revision.MethodCall, params, opts)
		defer x.end(nil)
		x.onTask = func(_ context.Context, handle json.RawMessage) (json.RawMessage, error) {
			t.ID, err = taskID(handle)
			return handle, err
		}
		raw, err := x.run(x.ctx())
		if err != nil {
			return nil, fmt.Errorf("call %q: %w", name, x.end(err))
		}
		if t.ID == "" {
			t.answered(raw)
		}
		return t, nil
	case s.coreTasks():
		if _, known := s.taskSupport(name); !known {
			s.relist(ctx)
		}
		if support, _ := s.taskSupport(name); support == TaskOptional || support == TaskRequired { // TASK-25-005
			x := s.outgoing(ctx, revision.MethodCall, params, opts)
			d, ok := s.farewells.owe(x.ctx())
			if !ok {
				return nil, fmt.Errorf("call %q: %w", name, x.end(ErrClosed))
			}
			t.listen(x)
			raw, err := x.create(d)
			if err == nil {
				d.pay()
			}
			if err = x.end(err); err != nil {
				t.listenNoMore()
				return nil, fmt.Errorf("call %q: %w", name, err)
			}
			handle := coreHandle(raw)
			if handle == nil {
				t.listenNoMore()
				t.answered(raw)
				return t, nil
			}
			t.ID, err = taskID(handle)
			return t, err
		}
	}
	// There is nothing at the server to come back to.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.done, t.cancel = make(chan struct{}), cancel
	begun := s.spawn(func() {
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

// makesTask tells whether the answer to a call may come before its result. Behind middleware, a
// server before 2026-07-28 makes tasks only of tools that require it.
func (s *Session) makesTask(ctx context.Context, tool string) bool {
	if s.behind == nil || !s.behind.rev.Sessions {
		return true
	}
	if !s.behind.coreTasks() {
		return false
	}
	if _, known := s.behind.taskSupport(tool); !known {
		s.behind.relist(ctx)
	}
	support, _ := s.behind.taskSupport(tool)
	return support == TaskRequired
}

// listen has what the server tells of the call reach its options, by the token of the
// call, until the task is waited for or the session ends (PROG-25-001).
func (t *Task) listen(x *outgoingCall) {
	if x.tokenID == 0 {
		return
	}
	t.call = x
	x.listen()
}

func (t *Task) listenNoMore() {
	if t.call != nil {
		t.call.listenNoMore()
	}
}

// answered makes the task one that is over.
func (t *Task) answered(raw json.RawMessage) {
	t.raw, t.done, t.cancel = raw, make(chan struct{}), func() {}
	close(t.done)
}

// Task returns a handle of a task that exists at the server. Nothing is sent.
func (s *Session) Task(id string) *Task { return &Task{ID: id, s: s} }

// Tasks iterates over the tasks of this client at the server. Only 2025-11-25 has such a
// list, and not every server of it: [ErrNotSupported].
func (s *Session) Tasks(ctx context.Context) iter.Seq2[TaskInfo, error] {
	return func(yield func(TaskInfo, error) bool) {
		if !s.server().rev.CoreTasks || !s.Server().Capabilities.Has("tasks", "list") {
			yield(TaskInfo{}, fmt.Errorf("%s: %w", revision.MethodTasks, ErrNotSupported))
			return
		}
		for item, err := range listOf[json.RawMessage](ctx, s, revision.MethodTasks, "tasks", "taskId", nil) {
			var state taskState
			if err == nil {
				raw := *item
				if s.rev.CoreTasks {
					raw = revision.InnerTask(raw)
				}
				err = jsonx.Unmarshal(raw, &state)
			}
			if !yield(state.info(), err) {
				return
			}
		}
	}
}

func (t *taskState) info() TaskInfo {
	const ms = time.Millisecond
	return TaskInfo{t.ID, t.Status, t.Message, t.Created, t.Updated, time.Duration(t.TTL) * ms, time.Duration(t.Poll) * ms}
}

// Info asks the server for the state of the task.
func (t *Task) Info(ctx context.Context) (TaskInfo, error) {
	if t.ID == "" {
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
	state, err := t.s.task(ctx, t.ID)
	if err != nil {
		return TaskInfo{}, t.fail(err)
	}
	return state.info(), nil
}

// Wait waits for the result. When ctx ends, only the waiting does. A task that was
// cancelled is an error, like one that failed.
func (t *Task) Wait(ctx context.Context) (*ToolResult, error) {
	raw, err := t.wait(ctx)
	if err != nil {
		return nil, t.fail(err)
	}
	return decodeToolResult(raw)
}

func (t *Task) wait(ctx context.Context) (json.RawMessage, error) {
	if t.ID == "" {
		select {
		case <-t.done:
			return t.raw, t.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	x := t.s.outgoing(ctx, revision.MethodCall, nil, t.opts)
	raw, err := x.await(x.ctx(), t.ID)
	if ctx.Err() == nil {
		t.listenNoMore()
	}
	return raw, x.end(err)
}

// Cancel asks the server to give the task up. It need not: [Task.Info] tells.
func (t *Task) Cancel(ctx context.Context) error {
	if t.ID == "" {
		t.cancel()
		return nil
	}
	_, err := t.s.request(ctx, revision.MethodTaskCancel, taskParams(t.ID), nil)
	if err != nil {
		return t.fail(err)
	}
	return nil
}

func (t *Task) fail(err error) error {
	if t.name == "" {
		return fmt.Errorf("task %q: %w", clip(t.ID), err)
	}
	return fmt.Errorf("task %q of %q: %w", clip(t.ID), t.name, err)
}

func taskParams(id string) json.RawMessage {
	return append(jsonx.AppendString([]byte(`{"taskId":`), id), '}')
}

// taskID reads the id of a handle.
func taskID(handle json.RawMessage) (string, error) {
	raw, _ := jsonx.Lookup(handle, "taskId")
	id, err := jsonx.Unquote(raw)
	if err != nil || id == "" {
		return "", errors.New("the server made a task without a taskId")
	}
	return id, nil
}

// task asks for the state of a task.
func (s *Session) task(ctx context.Context, id string) (*taskState, error) {
	raw, err := s.request(ctx, revision.MethodTask, taskParams(id), nil)
	if err != nil {
		return nil, err
	}
	if s.rev.CoreTasks {
		raw = revision.InnerTask(raw)
	}
	var state taskState
	if err := jsonx.Unmarshal(raw, &state); err != nil {
		return nil, fmt.Errorf("the server's task: %w", err)
	}
	return &state, nil
}

// await waits for the end of a task and answers its questions meanwhile. The clock stands: a task
// may take long and say nothing. What is asked about it has limits of its own.
func (x *outgoingCall) await(ctx context.Context, id string) (json.RawMessage, error) {
	x.clock.pause()
	defer x.clock.resume()
	if x.s.rev.CoreTasks {
		out := x.bare()
		out.method, out.params = revision.MethodTaskResult, taskParams(id)
		for failures := 1; ; failures++ {
			raw, err := out.run(ctx)
			var rpc *Error
			if err == nil || errors.As(err, &rpc) || errors.Is(err, ErrClosed) || ctx.Err() != nil || x.s.wireEnded() || failures > pollFailures {
				return withoutMeta(raw, revision.RelatedTask), err
			}
			// Out of reach; the task goes on, and its result can be asked for again.
			if err := x.s.sleep(ctx, time.Duration(failures)*time.Second); err != nil {
				return nil, err
			}
		}
	}
	answered := map[string]bool{} // XTASK-26-021, -028
	failures := 0
	for {
		state, err := x.s.task(ctx, id)
		var rpc *Error
		switch {
		case err == nil:
			failures = 0
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &rpc), x.s.wireEnded(), errors.Is(err, ErrClosed), failures >= pollFailures:
			return nil, err
		default: // out of reach; the task goes on
			failures++
			if err := x.s.sleep(ctx, time.Duration(failures)*time.Second); err != nil {
				return nil, err
			}
			continue
		}
		switch state.Status {
		case "completed":
			if jsonx.KindOf(state.Result) != '{' {
				return nil, errors.New("the server's task is completed and has no result")
			}
			return state.Result, nil
		case "failed":
			if state.Error == nil {
				return nil, fmt.Errorf("the task failed: %s", clip(state.Message))
			}
			return nil, state.Error
		case "cancelled":
			return nil, fmt.Errorf("%w: %s", errTaskCancelled, clip(state.Message))
		case "input_required":
			if err := x.answerTask(ctx, id, state.Requests, answered); err != nil {
				return nil, err
			}
		}
		poll := time.Duration(state.Poll) * time.Millisecond
		if poll <= 0 {
			poll = time.Second
		}
		if err := x.s.sleep(ctx, min(max(poll, minPoll), maxPoll)); err != nil {
			return nil, err
		}
	}
}

// answerTask has the questions of a task answered that were not yet.
func (x *outgoingCall) answerTask(ctx context.Context, id string, requests json.RawMessage, answered map[string]bool) error {
	round, err := keptRound{}.next(jsonx.With(nil, json.RawMessage(`{"requestState":""}`), "inputRequests", orObject(requests)), 1)
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
	_, err = x.s.request(ctx, revision.MethodTaskUpdate, jsonx.With(nil, taskParams(id), "inputResponses", responses), nil)
	return err
}

// finishTask waits for a task in place of a call: whoever gives up the call gives up
// the task.
func (x *outgoingCall) finishTask(ctx context.Context, handle json.RawMessage) (json.RawMessage, error) {
	d, ok := x.s.farewells.owe(ctx)
	if !ok {
		return nil, ErrClosed
	}
	return x.finishOwed(d, handle)
}

// finishOwed is finishTask for a debt, which it pays.
func (x *outgoingCall) finishOwed(d *debt, handle json.RawMessage) (json.RawMessage, error) {
	id, err := taskID(handle)
	if err != nil {
		d.pay()
		return nil, err
	}
	raw, err := x.await(d.ctx, id)
	if err == nil || d.ctx.Err() == nil {
		d.pay()
		return raw, err
	}
	d.payBy(func() { x.s.cancelTask(id) })
	return nil, err
}

// spawn runs f on a goroutine that Close waits for; false if the session is closed.
func (s *Session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Go(f)
	return true
}

// coreTasks tells whether the server takes calls as tasks in the form of 2025-11-25.
func (s *Session) coreTasks() bool {
	raw := s.Server().Capabilities["tasks"]
	_, ok := jsonx.LookupPath(raw, "requests", "tools", "call")
	return s.rev.CoreTasks && ok // TASK-25-004
}

// taskSupport tells what is known of a tool from its listing.
func (s *Session) taskSupport(name string) (support TaskSupport, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	support, known = s.support[name]
	return support, known
}

// relist reads the list of tools for what calls need to know.
func (s *Session) relist(ctx context.Context) bool {
	for _, err := range s.Tools(ctx) {
		if err != nil {
			return false
		}
	}
	return true
}

// create makes a call to a server of 2025-11-25 as a task, and returns the answer. Such a
// call must not be cancelled like others: when d ends first, the task is cancelled once
// its id is known (CANC-25-003). D is paid if there is an error.
func (x *outgoingCall) create(d *debt) (json.RawMessage, error) {
	type answer struct {
		raw json.RawMessage
		err error
	}
	got := make(chan answer, 1)
	own, cancel := context.WithCancel(context.WithoutCancel(d.ctx))
	params := jsonx.With(nil, x.params, "task", []byte(`{}`)) // a copy: the caller may leave
	// It ends before d is paid.
	go func() {
		defer cancel()
		raw, err := x.plain(own, params)
		got <- answer{raw, err}
	}()
	select {
	case a := <-got:
		if a.err != nil {
			d.pay()
		}
		return a.raw, a.err
	case <-d.ctx.Done():
	}
	cause := context.Cause(d.ctx)
	late := time.AfterFunc(createTime, cancel)
	d.payBy(func() {
		defer late.Stop()
		a := <-got
		if id := x.s.taskIn(a.raw); id != "" {
			x.s.cancelTask(id)
		}
	})
	return nil, cause
}

// coreHandle returns the task of a CreateTaskResult of 2025-11-25 in the inner form, nil
// if the server answered the call at once.
func coreHandle(raw json.RawMessage) json.RawMessage {
	task, ok := jsonx.Lookup(raw, "task")
	if !ok || jsonx.KindOf(task) != '{' {
		return nil
	}
	return revision.InnerTask(task)
}

// requiresTask tells whether a call to a server of 2025-11-25 must be a task. It takes
// the server's refusal of a plain call as a sign that a list should be read (TASK-25-007).
func (x *outgoingCall) requiresTask(ctx context.Context, refused error) bool {
	if x.method != revision.MethodCall || !x.s.coreTasks() {
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
	var rpc *Error
	if refused != nil && (!errors.As(refused, &rpc) || rpc.Code != CodeMethodNotFound || !x.s.relist(ctx)) {
		return false
	}
	support, _ := x.s.taskSupport(name)
	return support == TaskRequired
}

// sleep waits for d, or returns the cause of ctx or why the session has ended.
func (s *Session) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-s.wire.Done():
		return s.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
