package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/store"
)

// TaskConfig configures the tasks of a [Server]. A task belongs to the principal that made it.
// Without authentication, the task's id, of 130 random bits, is its only protection.
type TaskConfig struct {
	// Store keeps tasks and their results. Nil: in memory, at most 10,000 and 256 MiB; the oldest
	// finished tasks make room. Only one server at a time may use a store, but for that of a
	// cluster.Node: a stored task at work that the server did not start counts as failed.
	Store store.Tasks

	// TTL is how long, from its creation, a task may run and is kept; a caller may ask for less.
	// Zero: 1 hour.
	TTL time.Duration

	// Poll is how often callers should ask. Zero: 1 second.
	Poll time.Duration

	// Max bounds the tasks of one principal that are at work; further ones are refused. Zero: 100.
	Max int

	// OnEnd is called once for each task when its handler has returned, with the outcome that the
	// middleware of a call without a task gets: the result of the tool or an error, and the other is
	// nil. The error of a task that its caller cancelled is [context.Canceled]. The
	// context has the values of the call's context, also those of middleware, so that a span of the
	// call can end here. OnEnd may be called before the middleware of the call has returned, or after
	// the call is over, and [CallFrom] then has no Client. If nil, nothing is called.
	OnEnd func(ctx context.Context, res Result, err error)
}

// maxTasks bounds the tasks at work of all principals.
const maxTasks = 10_000

// unwindTime is the time for handlers of tasks to return after their contexts have ended.
const unwindTime = time.Second

// maxTaskResult bounds the result of one task in bytes.
const maxTaskResult = 16 << 20

// maxUnkept bounds, in bytes, the results that are held because the store refused them.
const maxUnkept = 64 << 20

// settleTime bounds the time that a store may take to keep the end of a task.
const settleTime = 30 * time.Second

// tasks are the tasks of a server.
type tasks struct {
	s     *Server
	store store.Tasks
	ttl   time.Duration
	poll  time.Duration
	max   int

	wg sync.WaitGroup

	mu      sync.Mutex
	running int // goroutines that close waits for; guarded by mu

	work   map[string]*task // at work, or not kept by the store; guarded by mu
	own    map[string]int   // at work, by owner; guarded by mu
	down   bool             // guarded by mu
	ending context.Context  // of Shutdown; nil: not yet; guarded by mu

	unkept int // bytes that the store refused; guarded by mu
}

// task is one tool call that runs as a task.
type task struct {
	*engine.Task
	owner   string
	expires time.Time
	cancel  context.CancelCauseFunc
	notify  func(method string, params json.RawMessage) // nil if the caller gets no notifications

	mu    sync.Mutex
	state engine.TaskState // guarded by mu

	telling sync.Mutex // held while the state is read and announced, so that the last announcement is the newest

	rested bool // it is no longer counted as at work; guarded by mu of tasks
	unkept int  // bytes that are counted as held for the store; guarded by mu of tasks
}

// newTasks makes the tasks of a server. A nil store is one in memory.
func (s *Server) newTasks(kept store.Tasks) *tasks {
	m := &tasks{s: s, store: kept, ttl: orDefault(s.Tasks.TTL, time.Hour), poll: orDefault(s.Tasks.Poll, time.Second),
		max: orDefault(s.Tasks.Max, 100), work: map[string]*task{}, own: map[string]int{}}
	if m.store == nil {
		m.store = &memoryTasks{}
	} else {
		m.store = containedTasks{s.eng.User, m.store}
	}
	return m
}

// create makes a task of a detached call. It can be found from then on (XTASK-26-009).
func (m *tasks) create(ctx context.Context, call *engine.Call) (*task, error) {
	ttl := m.ttl
	if ms := call.TaskTTL(); ms > 0 && ms < ttl.Milliseconds() {
		ttl = time.Duration(ms) * time.Millisecond
	}
	at := engine.TaskTime()
	t := &task{owner: call.Peer.Principal, expires: at.Add(ttl), notify: call.TaskNotes(), cancel: func(error) {}}
	t.state = engine.TaskState{ID: node.Task(ctx, rand.Text()), Status: "working", Created: at, Updated: at, TTL: ttl.Milliseconds(), Poll: m.poll.Milliseconds()}
	t.Task = engine.NewTask(t.state.ID, func() { m.asks(t) }, func(message string) { m.tells(t, message) })
	m.mu.Lock()
	switch {
	case m.down:
		m.mu.Unlock()
		return nil, ErrClosed
	case m.own[t.owner] >= m.max:
		m.mu.Unlock()
		return nil, Errorf(jsonrpc.CodeInternal, "%d tasks of this caller are running, which is the limit; wait for one to end", m.max)
	case len(m.work) >= maxTasks:
		m.mu.Unlock()
		return nil, Errorf(jsonrpc.CodeInternal, "%d tasks are running, which is the limit of this server; try again later", maxTasks)
	}
	m.own[t.owner]++
	m.work[t.state.ID] = t
	m.mu.Unlock()
	if err := m.store.PutTask(ctx, t.record()); err != nil {
		m.mu.Lock()
		m.leave(t)
		m.rest(t)
		m.mu.Unlock()
		return nil, fmt.Errorf("create a task: %w", err)
	}
	call.Become(t.Task)
	return t, nil
}

// leave removes a task from those at work; mu is held.
func (m *tasks) leave(t *task) {
	if m.work[t.state.ID] != t {
		return
	}
	delete(m.work, t.state.ID)
	m.unkept -= t.unkept
}

// rest counts the handler of a task as no longer at work; mu is held. A handler that goes on after
// its task was cancelled still counts.
func (m *tasks) rest(t *task) {
	if t.rested {
		return
	}
	t.rested = true
	if m.own[t.owner]--; m.own[t.owner] <= 0 {
		delete(m.own, t.owner)
	}
}

// spawn runs f on a goroutine that close waits for; false if the server is already closing.
func (m *tasks) spawn(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return false
	}
	release := m.s.http.Hold()
	if release == nil {
		return false
	}
	m.running++
	m.wg.Go(func() {
		defer func() {
			m.mu.Lock()
			m.running--
			ending := m.ending
			m.mu.Unlock()
			if ending == nil {
				release()
				return
			}
			last := time.AfterFunc(max(2*m.poll, time.Second), release) // its caller may get the result, also over a slow network
			context.AfterFunc(ending, func() {
				if last.Stop() {
					release()
				}
			})
		}()
		f()
	})
	return true
}

// start lets a task work.
func (m *tasks) start(ctx context.Context, call *engine.Call, t *task, run func(context.Context) (Result, error)) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	m.adopt(t, cancel)
	begun := m.spawn(func() {
		defer cancel(nil)
		m.s.runTask(work, call, run, func(res Result, err error) { m.finish(work, t, res, err) })
	})
	if !begun {
		m.finish(work, t, nil, ErrClosed)
	}
}

// adopt cancels the task's work when the task is cancelled or its time is over.
func (m *tasks) adopt(t *task, cancel context.CancelCauseFunc) {
	timer := time.AfterFunc(time.Until(t.expires), func() {
		cancel(fmt.Errorf("the task took longer than its time to live, %v", time.Duration(t.snapshot().TTL)*time.Millisecond))
	})
	t.mu.Lock()
	over := t.state.Over()
	t.cancel = func(cause error) { timer.Stop(); cancel(cause) }
	t.mu.Unlock()
	m.mu.Lock()
	down := m.down
	m.mu.Unlock()
	if over || down {
		t.cancel(errShutdown)
	}
}

// finish ends a task with its handler's result.
func (m *tasks) finish(ctx context.Context, t *task, res Result, err error) {
	var raw json.RawMessage
	var text string
	if err == nil {
		err = m.s.eng.User.Run(context.Background(), "a task", func() error { // which has made res
			raw, text = res.JSON(), failedText(res)
			if len(raw) > maxTaskResult {
				return fmt.Errorf("the result has %d bytes, and that of a task at most %d", len(raw), maxTaskResult)
			}
			return nil
		})
	}
	m.mu.Lock()
	m.rest(t)
	m.mu.Unlock()
	t.mu.Lock()
	if t.state.Over() { // a cancelled task stays cancelled (TASK-25-049)
		res, err = nil, context.Canceled
	} else {
		t.state.Requests, t.state.Updated = nil, engine.TaskTime()
		var rpc *Error
		switch {
		case err == nil:
			t.state.Status, t.state.Message, t.state.Result = "completed", text, raw
		case errors.As(err, &rpc):
			t.state.Status, t.state.Message, t.state.Error = "failed", rpc.Message, rpc
		default:
			t.state.Status, t.state.Message, t.state.Error = "failed", err.Error(), Errorf(jsonrpc.CodeInternal, "%s", err)
		}
	}
	stop := t.cancel
	t.mu.Unlock()
	if err != nil { // also of a handler that returned a result
		res = nil
	}
	defer func() { // also if OnEnd ends the goroutine
		stop(nil)
		m.settle(t)
	}()
	if end := m.s.Tasks.OnEnd; end != nil {
		_ = m.s.eng.User.Run(ctx, "Tasks.OnEnd", func() error { end(ctx, res, err); return nil }) // a panic is reported
	}
}

// failedText returns the text of a failed tool's result, for the status.
func failedText(res Result) string {
	if r, ok := res.(*ToolResult); ok && r.IsError {
		return text.Short(r.Text())
	}
	return ""
}

// settle stores a task that is over.
func (m *tasks) settle(t *task) {
	t.Close()
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	record := t.record()
	err := m.store.PutTask(ctx, record)
	if errors.Is(err, store.ErrOver) { // others have been told so
		if rec, ok, _ := m.store.GetTask(ctx, record.ID); ok {
			t.become(rec)
		}
		m.s.eng.Logger.Warn("the end of a task came too late", "task", record.ID, "err", err)
		err = nil
	}
	lost := false
	m.mu.Lock()
	if err == nil {
		m.leave(t)
	} else if m.work[t.state.ID] == t && t.unkept == 0 {
		// The result is kept in memory while this process lives, up to maxUnkept.
		if lost = m.unkept+len(record.Data) > maxUnkept; !lost {
			t.unkept = len(record.Data)
			m.unkept += t.unkept
		}
		time.AfterFunc(time.Until(t.expires), func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.leave(t)
		})
	}
	m.mu.Unlock()
	if lost {
		t.loseResult()
	}
	if err != nil {
		m.s.eng.Logger.Error("the end of a task was not stored", "task", t.state.ID, "err", err)
	}
	m.announce(t)
}

// become makes the state of a task that in the store.
func (t *task) become(rec store.Task) {
	var state engine.TaskState
	if jsonx.Unmarshal(rec.Data, &state) == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.state = state
	}
}

// loseResult turns a task that has a result into a failed one.
func (t *task) loseResult() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.Result != nil {
		const why = "the result could not be kept"
		t.state.Status, t.state.Message, t.state.Result, t.state.Error = "failed", why, nil, Errorf(jsonrpc.CodeInternal, why)
	}
}

// settleAgain stores the end of a task that the store refused before.
func (m *tasks) settleAgain(ctx context.Context, t *task) {
	if m.store.PutTask(ctx, t.record()) != nil { // as was logged before
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leave(t)
}

// asks records that questions were asked or answered.
func (m *tasks) asks(t *task) {
	t.mu.Lock()
	if t.state.Over() {
		t.mu.Unlock()
		return
	}
	requests := t.InputRequests()
	t.state.Status, t.state.Requests, t.state.Updated = "working", requests, engine.TaskTime()
	if requests != nil {
		t.state.Status = "input_required"
	}
	t.mu.Unlock()
	m.announce(t)
}

// tells records progress as the status message.
func (m *tasks) tells(t *task, message string) {
	t.mu.Lock()
	if t.state.Over() || t.state.Message == message {
		t.mu.Unlock()
		return
	}
	t.state.Message, t.state.Updated = message, engine.TaskTime()
	t.mu.Unlock()
	m.announce(t)
}

// announce notifies listeners that a task changed.
func (m *tasks) announce(t *task) {
	m.s.feed.taskChanged(t.state.ID)
	if t.notify != nil {
		t.telling.Lock()
		defer t.telling.Unlock()
		t.notify(revision.NoteTaskStatus, revision.CoreTask(encode(t.snapshot())))
	}
}

func (t *task) snapshot() engine.TaskState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

func (t *task) record() store.Task {
	state := t.snapshot()
	return store.Task{ID: state.ID, Owner: t.owner, Expires: t.expires, Over: state.Over(), Data: encode(state)}
}

// handle is the answer to the call that became the task.
func (m *tasks) handle(t *task) Result {
	state := t.snapshot()
	return &CreateTaskResult{
		Task: encode(engine.TaskState{ID: state.ID, Status: "working", Created: state.Created, Updated: state.Created, TTL: state.TTL, Poll: state.Poll}),
		drop: func() { m.spawn(func() { m.cancel(t, "the caller left before it received the task") }) },
	}
}

// CreateTaskResult is the answer to a tool call that became a task. A caller that does not accept
// tasks must not get it (extensions/tasks).
type CreateTaskResult struct {
	Task json.RawMessage // with taskId, status and others; an object

	drop func() // cancels the task if the answer does not reach the caller; may be nil
}

// find returns a task of the caller: one at work, or else its state.
func (m *tasks) find(ctx context.Context, owner, id string) (*task, *engine.TaskState, error) {
	m.mu.Lock()
	t := m.work[id]
	m.mu.Unlock()
	if t != nil {
		if t.owner != owner {
			return nil, nil, engine.UnknownTask(id) // TASK-25-060, XTASK-26-046
		}
		state := t.snapshot()
		return t, &state, nil
	}
	rec, ok, err := m.store.GetTask(ctx, id)
	if err != nil {
		return nil, nil, fmt.Errorf("task %q: %w", text.Short(id), err)
	}
	if !ok || rec.Owner != owner {
		return nil, nil, engine.UnknownTask(id)
	}
	state, err := m.read(ctx, rec)
	return nil, state, err
}

// read decodes a record. If its task is at work, but not in this process, the task ended with the
// process that ran it.
func (m *tasks) read(ctx context.Context, rec store.Task) (*engine.TaskState, error) {
	var state engine.TaskState
	if err := jsonx.Unmarshal(rec.Data, &state); err != nil {
		return nil, fmt.Errorf("task %q: %w", text.Short(rec.ID), err)
	}
	if state.Over() || rec.Elsewhere {
		return &state, nil
	}
	m.mu.Lock()
	t := m.work[rec.ID] // it may have been made just now
	m.mu.Unlock()
	if t != nil {
		state = t.snapshot()
		return &state, nil
	}
	const why = "interrupted: the server ended, or was cut off, while the task was running"
	state.Status, state.Message, state.Error, state.Requests, state.Updated = "failed", why, Errorf(jsonrpc.CodeInternal, why), nil, engine.TaskTime()
	rec.Data, rec.Over = encode(state), true
	if err := m.store.PutTask(ctx, rec); err != nil { // the next look says the same
		m.s.eng.Logger.Warn("the end of a task was not stored", "task", state.ID, "err", err)
	}
	return &state, nil
}

// serve answers a request about tasks.
func (m *tasks) serve(ctx context.Context, req *Request) (Result, error) {
	call := engine.From(ctx)
	if !m.s.taskTools() {
		return nil, Errorf(jsonrpc.CodeMethodNotFound, "no method %q: this server has no tasks", req.Method)
	}
	owner := ""
	if call != nil {
		owner = call.Peer.Principal
		if !call.Peer.Revision.Sessions && !call.TakesTask() {
			return nil, call.NeedsTask() // XTASK-26-040
		}
	}
	if req.Method == revision.MethodTasks {
		return m.list(ctx, owner, req)
	}
	id, err := req.paramString("taskId")
	if err != nil {
		return nil, err
	}
	t, state, err := m.find(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	switch {
	case t != nil && state.Over():
		m.settleAgain(ctx, t)
	case t == nil && !state.Over() && req.Method != revision.MethodTask:
		return nil, Errorf(jsonrpc.CodeInternal, "task %q is at work at another node: ask in the session that began it", text.Short(id))
	}
	switch req.Method {
	case revision.MethodTask:
		return RawResult(encode(state)), nil
	case revision.MethodTaskCancel:
		if t != nil {
			m.cancel(t, "cancelled by request")
		}
	case revision.MethodTaskUpdate:
		var open *engine.Task
		if t != nil {
			open = t.Task
		}
		if err := engine.AnswerTask(call, req.Params, open); err != nil {
			return nil, err
		}
	}
	return RawResult(`{}`), nil
}

// cancel ends a task at once; its work is cancelled, and a later result is ignored.
func (m *tasks) cancel(t *task, why string) {
	t.mu.Lock()
	if t.state.Over() {
		t.mu.Unlock()
		return
	}
	t.state.Status, t.state.Message, t.state.Requests, t.state.Updated = "cancelled", why, nil, engine.TaskTime()
	stop := t.cancel
	t.mu.Unlock()
	stop(engine.ErrTaskCancelled)
	m.settle(t)
}

// list answers tasks/list of 2025-11-25.
func (m *tasks) list(ctx context.Context, owner string, req *Request) (Result, error) {
	after := ""
	if req.Param("cursor") != nil {
		cursor, err := req.paramString("cursor")
		if err != nil {
			return nil, err
		}
		var ok bool
		if after, ok = strings.CutPrefix(cursor, "after:"); !ok {
			return nil, Errorf(jsonrpc.CodeInvalidParams, "%s: unknown cursor %q; start again without one", req.Method, text.Short(cursor))
		}
	}
	size := m.s.limits.PageSize
	records, err := m.store.ListTasks(ctx, owner, after, size+1)
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	page := struct {
		Tasks []json.RawMessage `json:"tasks"`
		Next  string            `json:"nextCursor,omitempty"`
	}{Tasks: []json.RawMessage{}}
	if len(records) > size {
		records = records[:size]
		page.Next = "after:" + records[size-1].ID
	}
	for _, rec := range records {
		_, state, err := m.find(ctx, owner, rec.ID)
		if errors.As(err, new(*jsonrpc.Error)) {
			continue // it expired just now
		}
		if err != nil {
			return nil, err
		}
		page.Tasks = append(page.Tasks, encode(state))
	}
	return RawResult(encode(page)), nil
}

// known returns the given ids that belong to tasks of the caller.
func (m *tasks) known(ctx context.Context, ids []string) []string {
	owner := ""
	if call := engine.From(ctx); call != nil {
		owner = call.Peer.Principal
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		_, _, err := m.find(ctx, owner, id)
		return err != nil
	})
}

// detailed returns the answer to tasks/get, or nil if there is no such task.
func (m *tasks) detailed(ctx context.Context, id string) json.RawMessage {
	owner := ""
	if call := engine.From(ctx); call != nil {
		owner = call.Peer.Principal
	}
	_, state, err := m.find(ctx, owner, id)
	if err != nil {
		return nil
	}
	return encode(state)
}

// endWith cancels the tasks at work when ctx ends, unless stop is called before.
func (m *tasks) endWith(ctx context.Context) (stop func() bool) {
	m.mu.Lock()
	m.ending = ctx
	m.mu.Unlock()
	return context.AfterFunc(ctx, m.cancelAll)
}

// cancelAll cancels the tasks at work.
func (m *tasks) cancelAll() {
	m.mu.Lock()
	m.down = true
	work := slices.Collect(maps.Values(m.work))
	m.mu.Unlock()
	for _, t := range work {
		t.mu.Lock()
		stop := t.cancel
		t.mu.Unlock()
		stop(errShutdown)
	}
}

// close cancels the tasks at work and waits for them until ctx ends.
func (m *tasks) close(ctx context.Context) error {
	m.cancelAll()
	done := make(chan struct{})
	go func() { defer close(done); m.wg.Wait() }() // ends with the handlers
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	// Handlers that were just cancelled get a moment to return, as those of requests do.
	t := time.NewTimer(unwindTime)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
		m.mu.Lock()
		defer m.mu.Unlock()
		return fmt.Errorf("shutdown: %d tasks did not end when they were cancelled: %w", m.running, context.Cause(ctx))
	}
}
