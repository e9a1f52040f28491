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

// Task is what a call that goes on after its caller was answered has to ask and to
// tell. Its answers come by other requests.
type Task struct {
	id      string
	changed func()               // called when questions come or go, without locks held
	told    func(message string) // called with what progress says

	mu      sync.Mutex
	pending []*taskQuestion // guarded by mu
	used    map[string]bool // keys, ever; guarded by mu
	closed  bool            // nothing more is asked or told; guarded by mu
}

var errTaskOver = errors.New("the task is over")

// Close ends what the task asks and tells, whatever its handler still does
// (PROG-25-003).
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
	got chan answered // has room for the one answer
}

type answered struct {
	raw json.RawMessage
	err error
}

// NewTask makes a task. Changed is called when questions come or go, told when the
// handler tells how far it is.
func NewTask(id string, changed func(), told func(message string)) *Task {
	return &Task{id: id, changed: changed, told: told, used: map[string]bool{}}
}

// InputRequests is the object of all questions without an answer, nil if there are
// none.
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

// ask puts questions and waits until all are answered.
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

// key is one that the task never used before (XTASK-26-022 to -024); mu is held.
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

// drop takes questions back.
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

// TakesTask tells whether the caller takes a task for an answer: it declared the
// extension (2026-07-28), or asked for one (2025-11-25).
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

// MayTakeTask tells whether callers of the peer's revision could take a task, be it by
// declaring so.
func (p *Peer) MayTakeTask() bool {
	return !p.Stateless && (!p.Revision.Sessions || p.Revision.CoreTasks)
}

// TaskNotes is the way of notifications about a task of the call, nil if the caller
// gets none unasked.
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

// taskName is what the caller calls the task of an id.
func (c *Call) taskName(id string) string {
	if !c.TasksNamed() {
		return id
	}
	return c.rare.rename(id)
}

// TaskTTL is the lifetime in milliseconds that the caller of 2025-11-25 wishes a task,
// 0 for none.
func (c *Call) TaskTTL() int64 {
	raw, _ := c.Msg.ParamIn("task", "ttl")
	ms, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || ms < 0 {
		return 0
	}
	return ms
}

// NeedsTask is the error for a caller who does not take the task that there must be.
func (c *Call) NeedsTask() error {
	if !c.Peer.Revision.Sessions {
		return &LacksError{What: "extension " + revision.Tasks, Required: json.RawMessage(`{"extensions":{"` + revision.Tasks + `":{}}}`)}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this tool runs as a task only; call it with a task member"}
}

// Detach returns a copy of the call for a handler that may go on when the caller was
// answered. Until [Call.Become] it asks and tells like c; release is called when the
// handler lets go of its caller, nil for nothing.
func (c *Call) Detach(release func()) *Call {
	params := bytes.Clone(c.Params)
	peer := *c.Peer
	peer.Capabilities, peer.Info = bytes.Clone(peer.Capabilities), bytes.Clone(peer.Info)
	out := &Call{
		Method: c.Method, Params: params, Msg: &jsonrpc.Message{ID: c.Msg.ID, Method: c.Method, Params: params},
		Peer: &peer, Header: c.Header, logLevel: c.logLevel, session: c.session, progress: c.progress.again(), rare: c.rare.again(), user: c.user,
	}
	out.asker = &turning{before: c.asker}
	out.ex = &taskExchange{before: c.ex, session: c.session, release: release, name: c.taskName}
	return out
}

// Outlive returns a copy of the call for work that may go on when the caller was answered: it
// describes the caller, and reaches it no more.
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

// turning asks like the call before it became a task, and then as a task.
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
func (a *turning) round() int                                { return a.before.round() }

// taskExchange is the way of notifications of a detached call: its caller's, then that
// of the session, which revisions with sessions alone have.
type taskExchange struct {
	before  Exchange
	session *Session
	release func()
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
	return x.before.Request(ctx, method, params) // not called by a task, which has its own way to ask
}

// Release lets go of the caller.
func (x *taskExchange) Release() {
	if x.now() == nil && x.release != nil {
		x.release()
	}
}

// tell takes what progress says as the status of a task.
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
