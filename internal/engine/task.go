package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Task holds the questions and progress of a call that goes on after its caller was answered.
// Answers come in other requests.
type Task struct {
	id      string
	changed func()               // called when questions come or go, without locks held
	told    func(message string) // called with the message of progress

	mu      sync.Mutex
	pending []*taskQuestion // guarded by mu
	used    map[string]bool // keys, ever; guarded by mu
	closed  bool            // no more questions or progress; guarded by mu
}

var errTaskOver = errors.New("the task is over")

// Close ends the task's questions and progress, even if its handler still runs (PROG-25-003).
func (t *Task) Close() {
	t.mu.Lock()
	pending := t.pending
	t.closed, t.pending = true, nil
	t.mu.Unlock()
	for _, p := range pending {
		p.got <- answered{nil, errTaskOver}
	}
}

func (t *Task) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

type taskQuestion struct {
	key string
	q   Question
	got chan answered // capacity 1, for the answer
}

type answered struct {
	raw json.RawMessage
	err error
}

// NewTask makes a task. The function changed is called when questions are added or removed, told
// when the handler reports progress.
func NewTask(id string, changed func(), told func(message string)) *Task {
	return &Task{id: id, changed: changed, told: told, used: map[string]bool{}}
}

// InputRequests returns an object with all unanswered questions, or nil if there are none.
func (t *Task) InputRequests() json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending) == 0 {
		return nil
	}
	out := []byte{'{'}
	for i, p := range t.pending {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsonx.AppendString(out, p.key), `:{"method":`...)
		out = jsonx.AppendString(out, p.q.Method)
		if p.q.Params != nil {
			out = append(append(out, `,"params":`...), p.q.Params...)
		}
		out = append(out, '}')
	}
	return append(out, '}')
}

// Answer answers a question. A key that is not outstanding is ignored.
func (t *Task) Answer(key string, raw json.RawMessage, err error) {
	t.mu.Lock()
	var found *taskQuestion
	for i, p := range t.pending {
		if p.key == key {
			found = p
			t.pending = append(t.pending[:i:i], t.pending[i+1:]...)
			break
		}
	}
	t.mu.Unlock()
	if found != nil {
		found.got <- answered{bytes.Clone(raw), err}
		t.changed()
	}
}

// ask adds questions and waits until all are answered.
func (t *Task) ask(ctx context.Context, qs []Question) ([]json.RawMessage, error) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, errTaskOver
	}
	mine := make([]*taskQuestion, len(qs))
	for i, q := range qs {
		mine[i] = &taskQuestion{t.key(q), q, make(chan answered, 1)}
	}
	t.pending = append(t.pending, mine...)
	t.mu.Unlock()
	t.changed()
	out := make([]json.RawMessage, len(qs))
	for i, m := range mine {
		select {
		case a := <-m.got:
			if a.err != nil {
				t.drop(mine)
				return nil, a.err
			}
			out[i] = a.raw
		case <-ctx.Done():
			t.drop(mine)
			return nil, context.Cause(ctx)
		}
	}
	return out, nil
}

// key returns a key that the task has not used before (XTASK-26-022 to -024); mu is held.
func (t *Task) key(q Question) string {
	base, key := q.Key, q.Key
	if base == "" {
		base = "q"
		key = "q1"
	}
	for n := 2; t.used[key]; n++ {
		key = base + strconv.Itoa(n)
	}
	t.used[key] = true
	return key
}

// drop withdraws questions.
func (t *Task) drop(mine []*taskQuestion) {
	t.mu.Lock()
	rest := t.pending[:0:0]
	for _, p := range t.pending {
		keep := true
		for _, m := range mine {
			keep = keep && p != m
		}
		if keep {
			rest = append(rest, p)
		}
	}
	t.pending = rest
	t.mu.Unlock()
	t.changed()
}

// TakesTask reports whether the caller accepts a task as the answer: it declared the extension
// (2026-07-28), or asked for one (2025-11-25).
func (c *Call) TakesTask() bool {
	switch {
	case c.Peer.Stateless:
		return false
	case !c.Peer.Revision.Sessions:
		_, ok := jsonx.LookupPath(c.Peer.Capabilities, "extensions", revision.Tasks)
		return ok
	case c.Peer.Revision.CoreTasks:
		if c.Msg == nil {
			return false
		}
		raw, ok := c.Msg.Param("task")
		return ok && jsonx.KindOf(raw) == '{'
	}
	return false
}

// MayTakeTask reports whether callers of the peer's revision can accept a task, possibly after
// declaring so.
func (p *Peer) MayTakeTask() bool {
	return !p.Stateless && (!p.Revision.Sessions || p.Revision.CoreTasks)
}

// TaskNotes returns the function that sends notifications about a task of the call, or nil if the
// caller gets none without asking.
func (c *Call) TaskNotes() func(method string, params json.RawMessage) {
	s := c.session
	if s == nil || s.Events == nil {
		return nil
	}
	return func(method string, params json.RawMessage) {
		if id, ok := jsonx.Lookup(params, "taskId"); ok && c.TasksNamed() {
			if id, err := jsonx.Unquote(id); err == nil {
				params = jsonx.With(nil, params, "taskId", jsonx.AppendString(nil, c.taskName(id)))
			}
		}
		_ = s.Events.Notify(method, params) // polling suffices (TASK-25-013)
	}
}

// taskName returns the name of a task for the caller.
func (c *Call) taskName(id string) string {
	if !c.TasksNamed() {
		return id
	}
	return c.rare.rename(id)
}

// TaskTTL returns the lifetime in milliseconds that a caller that speaks 2025-11-25 requests for a
// task, 0 for none.
func (c *Call) TaskTTL() int64 {
	raw, _ := c.Msg.ParamIn("task", "ttl")
	ms, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || ms < 0 {
		return 0
	}
	return ms
}

// NeedsTask returns the error for a caller that does not accept a task where one is required.
func (c *Call) NeedsTask() error {
	if !c.Peer.Revision.Sessions {
		return &LacksError{What: "extension " + revision.Tasks, Required: json.RawMessage(`{"extensions":{"` + revision.Tasks + `":{}}}`)}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this tool runs only as a task; call it with a task member"}
}

// Detachable returns a copy of the call for a handler that may go on after the caller is answered.
// Until [Call.Become] its questions and notifications are those of c. [Call.Detach] of the copy calls
// detach, which may be nil.
func (c *Call) Detachable(detach func()) *Call {
	params := bytes.Clone(c.Params)
	peer := *c.Peer
	peer.Capabilities, peer.Info = bytes.Clone(peer.Capabilities), bytes.Clone(peer.Info)
	out := &Call{
		Method: c.Method, Params: params, Msg: &jsonrpc.Message{ID: c.Msg.ID, Method: c.Method, Params: params},
		Peer: &peer, Header: c.Header, logLevel: c.logLevel, session: c.session, progress: c.progress.again(), rare: c.rare.again(), user: c.user,
	}
	out.asker = &turning{before: c.asker}
	out.ex = &taskExchange{before: c.ex, session: c.session, detach: detach, name: c.taskName}
	return out
}

// Outlive returns a copy of the call for work that may go on after the caller is answered: it
// describes the caller but cannot reach it.
func (c *Call) Outlive() *Call {
	params := bytes.Clone(c.Params)
	peer := *c.Peer
	peer.Capabilities, peer.Info = bytes.Clone(peer.Capabilities), bytes.Clone(peer.Info)
	return &Call{
		Method: c.Method, Params: params, Msg: &jsonrpc.Message{Method: c.Method, Params: params},
		Peer: &peer, Header: c.Header, logLevel: c.logLevel, session: c.session, user: c.user,
	}
}

// Become makes a detached call a task.
func (c *Call) Become(t *Task) {
	a, x := c.asker.(*turning), c.ex.(*taskExchange)
	a.mu.Lock()
	a.task = t
	a.mu.Unlock()
	x.mu.Lock()
	x.task = t
	x.mu.Unlock()
}

// turning asks as a call, and as a task once the call becomes one.
type turning struct {
	before asker

	mu   sync.Mutex
	task *Task // nil before; guarded by mu
}

func (a *turning) ask(ctx context.Context, c *Call, qs []Question) ([]json.RawMessage, error) {
	a.mu.Lock()
	t := a.task
	a.mu.Unlock()
	if t == nil {
		return a.before.ask(ctx, c, qs)
	}
	return t.ask(ctx, qs)
}

func (a *turning) remember(key string, v json.RawMessage)    { a.before.remember(key, v) }
func (a *turning) recall(key string) (json.RawMessage, bool) { return a.before.recall(key) }
func (a *turning) carry()                                    { a.before.carry() }
func (a *turning) carries() bool                             { return a.before.carries() }
func (a *turning) stay(node string)                          { a.before.stay(node) }
func (a *turning) stayed() string                            { return a.before.stayed() }
func (a *turning) round() int                                { return a.before.round() }

// taskExchange sends the notifications of a detached call: to its caller, and later to the
// session in revisions with sessions.
type taskExchange struct {
	before  Exchange
	session *Session
	detach  func()
	name    func(id string) string // of the task, toward its caller

	mu   sync.Mutex
	task *Task // nil before; guarded by mu
}

func (x *taskExchange) now() *Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.task
}

func (x *taskExchange) Notify(method string, params json.RawMessage) error {
	t := x.now()
	switch {
	case t == nil:
		return x.before.Notify(method, params)
	case x.session == nil || x.session.Events == nil || t.over():
		return nil // XTASK-26-037: tasks of the extension have no such notifications
	}
	return x.session.Events.Notify(method, revision.WithRelatedTask(params, x.name(t.id))) // TASK-25-034
}

func (x *taskExchange) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return x.before.Request(ctx, method, params) // not called by a task, which asks in its own way
}

// Detach implements [Detacher].
func (x *taskExchange) Detach() {
	if x.now() == nil && x.detach != nil {
		x.detach()
	}
}

// tell reports progress as the status of a task.
func (x *taskExchange) tell(done, total float64, message string) {
	t := x.now()
	if t == nil {
		return
	}
	switch {
	case message != "":
	case total > 0:
		message = fmt.Sprintf("%g of %g", done, total)
	default:
		message = fmt.Sprintf("%g", done)
	}
	t.told(message)
}
