package bridge

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// proxyTask is a task at a server that speaks 2025-11-25. A caller in front has its handle (T-100
// to T-103). The server knows only this session as its owner, so the real owner is recorded here.
// Its questions and its result arrive by a tasks/result request, which stays open; the caller finds
// them with tasks/get.
type proxyTask struct {
	*engine.Task
	owner string
	ask   func(context.Context, []engine.Question) ([]json.RawMessage, error)

	ended uint64 // its position among the session's ended tasks, from 1; 0 before; guarded by its mu

	done chan struct{} // closed when raw and err are set; nil: another process has begun the task
	raw  json.RawMessage
	err  error

	here *engine.TaskState         // state of a task made here, which the server does not know; nil for others
	stop func()                    // cancels a task made here
	fate atomic.Int32              // of a task made here
	last atomic.Pointer[time.Time] // when its fate was decided; nil: it is open
}

// The fate of a task made here.
const (
	fateOpen = iota
	fateCancelled
	fateEnded // with an outcome
)

// decide ends a task made here, if it is open.
func (t *proxyTask) decide(fate int32) bool {
	if !t.fate.CompareAndSwap(fateOpen, fate) {
		return false
	}
	at := engine.TaskTime()
	t.last.Store(&at)
	return true
}

const (
	maxProxies    = 1000             // tasks of one session
	maxOwned      = 100              // of these, of one owner
	maxProxyBytes = 64 << 20         // bytes of their results
	proxyTime     = time.Hour        // for which a task is kept after its end
	proxyWait     = 10 * time.Second // for the result of a task that is over
	proxyPage     = 50               // tasks of a page of a list
)

// wantsTask is a key in the context of a request of the client itself: it is to become a task if the
// tool allows one. In the form of the newest revision the request does not say so.
type wantsTask struct{}

// wantsProxy reports whether a forwarded call is made as a task: the tool requires it, or allows it
// and the caller wants it.
func (r *Remote) wantsProxy(ctx context.Context, call *engine.Call, method string, params json.RawMessage) (bool, error) {
	if method != revision.MethodCall || !r.CoreTasks() || !call.TakesTask() {
		return false, nil
	}
	raw, _ := jsonx.Lookup(params, "name")
	name, err := jsonx.Unquote(raw)
	if err != nil {
		return false, nil // the server says what is wrong
	}
	support, known := r.taskSupport(name)
	if !known && r.Owner.ListTools(ctx) {
		support, _ = r.taskSupport(name)
	}
	demanded := call.Peer.Revision.Sessions || r.fromFront(call) && ctx.Value(wantsTask{}) != nil
	switch support {
	case taskRequired:
		return true, nil
	case taskOptional:
		// For a 2026-07-28 caller that accepts both, a plain call is faster.
		return demanded, nil
	}
	if demanded {
		return false, errorf(jsonrpc.CodeMethodNotFound, "the tool %q does not run as a task; call it without a task member", text.Short(name)) // TASK-25-006
	}
	return false, nil
}

// proxy makes a call as a task and returns the task's handle for the caller in front.
func (r *Remote) proxy(ctx context.Context, call *engine.Call, x *Call) (Answer, error) {
	if err := r.proxyRoom(call.Peer.Principal); err != nil {
		return Answer{}, err
	}
	x.begin(ctx)
	defer x.over()
	d, ok := r.cancels.add(x.ctx())
	if !ok {
		return Answer{}, ErrClosed
	}
	own := call.Detachable(nil) // it still has questions and progress after its caller was answered
	x.front, x.turn.front = own, own
	x.ask = func(ctx context.Context, qs []engine.Question) ([]json.RawMessage, error) {
		for i := range qs {
			qs[i].Params = WithoutMeta(qs[i].Params, revision.RelatedTask) // it has the server's id of the task
		}
		return own.Ask(ctx, qs...)
	}
	x.note = func(method string, params json.RawMessage) { r.forwardNote(own, method, params) }
	if x.tokenID != 0 {
		x.listen()
	}
	raw, err := x.create(d)
	if err != nil {
		x.Forget()
		return Answer{}, err
	}
	defer d.done()
	handle := coreHandle(raw)
	if handle == nil { // the server answered at once
		x.Forget()
		return Answer{JSON: raw}, nil
	}
	id, err := TaskID(handle)
	if err != nil {
		x.Forget()
		return Answer{}, err
	}
	t := &proxyTask{Task: engine.NewTask(id, func() {}, func(string) {}), owner: call.Peer.Principal, ask: x.ask, done: make(chan struct{})}
	own.Become(t.Task)
	r.mu.Lock()
	r.proxies[id] = t
	r.mu.Unlock()
	lasts := call.TasksLast()
	began := bytes.Clone(handle)
	if !lasts {
		own.KeepTask(id, began)
	}
	going, _ := r.cancels.add(context.Background()) // there is time for it: d is open
	going.doneAfter(func() {
		defer close(t.done)
		t.raw, t.err = x.await(going.ctx, id)
		if t.err != nil && going.ctx.Err() != nil && !lasts { // the session is being closed
			r.cancelTask(id)
		}
		t.Close()
		x.Forget()
		r.proxyEnded(t)
		// Other gateways know the end before the caller can have the result.
		switch set := setter(jsonx.With(nil, began, "lastUpdatedAt", encode(engine.TaskTime()))); {
		case lasts:
		case going.ctx.Err() == nil:
			own.KeepTask(id, r.proxyOver(own, t, set))
		default:
			own.KeepTask(id, set("failed", "error", encode(errorf(jsonrpc.CodeInternal, "%s", sessionOver))))
		}
		time.AfterFunc(proxyTime, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.forgetProxy(id, t)
		})
	})
	return Answer{JSON: handle, Task: true, Drop: func() { r.abandon(id) }}, nil
}

// proxyRoom makes room for one more task of an owner: it drops the task that ended first, among the
// owner's tasks if the owner has too many.
func (r *Remote) proxyRoom(owner string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	owned := 0
	for _, t := range r.proxies {
		if t.owner == owner {
			owned++
		}
	}
	most, all := maxProxies, owned < maxOwned
	switch {
	case !all:
		most = maxOwned
	case len(r.proxies) < maxProxies:
		return nil
	}
	oldest := r.oldestProxy(func(t *proxyTask) bool { return all || t.owner == owner })
	if oldest == "" {
		return errorf(jsonrpc.CodeInternal, "%d tasks of the server are running, which is the limit; try again later", most)
	}
	delete(r.proxies, oldest)
	return nil
}

// oldestProxy returns the task that ended first among some, empty for none; mu is held.
func (r *Remote) oldestProxy(among func(*proxyTask) bool) (oldest string) {
	for id, t := range r.proxies {
		if t.ended != 0 && among(t) && (oldest == "" || t.ended < r.proxies[oldest].ended) {
			oldest = id
		}
	}
	return oldest
}

// proxyEnded records the end of a task. If the results take too much memory, it drops those of the
// tasks that ended first.
func (r *Remote) proxyEnded(ended *proxyTask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.proxyEnds++
	ended.ended = r.proxyEnds
	kept := 0
	for _, t := range r.proxies {
		if t.ended != 0 {
			kept += len(t.raw)
		}
	}
	for kept > maxProxyBytes {
		oldest := r.oldestProxy(func(t *proxyTask) bool { return t != ended })
		if oldest == "" {
			return
		}
		kept -= len(r.proxies[oldest].raw)
		delete(r.proxies, oldest)
	}
}

// forgetProxy drops a task, unless its id now names another; mu is held.
func (r *Remote) forgetProxy(id string, t *proxyTask) {
	if r.proxies[id] == t {
		delete(r.proxies, id)
	}
}

// forwardTask answers a request about a proxyTask.
func (r *Remote) forwardTask(ctx context.Context, call *engine.Call, req Request) (Answer, error) {
	switch {
	case call == nil:
		return Answer{}, ErrNoCall
	case r.Rev.Sessions && !r.CoreTasks():
		return Answer{}, errorf(jsonrpc.CodeMethodNotFound, "no method %q: the server has no tasks", req.Method)
	case !call.Peer.Revision.Sessions && !call.TakesTask():
		return Answer{}, call.NeedsTask()
	case req.Method == revision.MethodTasks:
		return r.listProxyTasks(ctx, call, req)
	}
	id, err := req.text("taskId")
	if err != nil {
		return Answer{}, err
	}
	r.mu.Lock()
	t := r.proxies[id]
	r.mu.Unlock()
	switch {
	case t == nil && call.TasksNamed() && r.CoreTasks():
		t = strangeTask() // the handler in front knows that it is the caller's
	case t == nil || t.owner != call.Peer.Principal:
		return Answer{}, engine.UnknownTask(id)
	}
	switch req.Method {
	case revision.MethodTask:
		state, err := r.proxyState(ctx, call, id, t)
		return Answer{JSON: state}, err
	case revision.MethodTaskUpdate:
		if t.done == nil && t.here == nil {
			return Answer{}, errorf(jsonrpc.CodeInvalidParams, "questions of task %q went to another node, or to this one before a restart; it can only be cancelled", text.Short(id))
		}
		if err := engine.AnswerTask(call, req.Params, t.Task); err != nil {
			return Answer{}, err
		}
	case revision.MethodTaskCancel:
		if t.here != nil {
			t.give()
			break
		}
		if !r.has("tasks", "cancel") {
			break // T-103: acknowledged only
		}
		var rpc *jsonrpc.Error
		_, err := r.Request(ctx, revision.MethodTaskCancel, TaskParams(id))
		if err != nil && (!errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams) { // it is over already
			return Answer{}, err
		}
		if err != nil && t.done == nil { // or unknown
			if _, err := r.proxyState(ctx, call, id, t); err != nil {
				return Answer{}, err
			}
		}
	}
	return Answer{JSON: json.RawMessage(`{}`)}, nil
}

// proxyState returns the state of a task in the inner form (T-101, T-102).
func (r *Remote) proxyState(ctx context.Context, call *engine.Call, id string, t *proxyTask) (json.RawMessage, error) {
	if t.here != nil {
		return r.hereState(call, t), nil
	}
	raw, err := r.Request(ctx, revision.MethodTask, TaskParams(id))
	if err != nil {
		var rpc *jsonrpc.Error
		if errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeInvalidParams {
			return nil, engine.UnknownTask(id)
		}
		return nil, err
	}
	state := WithoutMeta(revision.InnerTask(raw), revision.RelatedTask)
	kind, _ := jsonx.Lookup(state, "status")
	status, _ := jsonx.Unquote(kind)
	set := setter(state)
	switch status {
	case "cancelled":
		return state, nil
	case "working", "input_required":
		if t.done == nil && status == "input_required" {
			state = jsonx.With(nil, state, "statusMessage", jsonx.AppendString(nil, strangeQuestion))
		}
		if requests := t.InputRequests(); requests != nil {
			return set("input_required", "inputRequests", requests), nil
		}
		return set("working", "", nil), nil // its questions have not arrived yet
	}
	if t.done == nil {
		t.raw, t.err = r.Request(ctx, revision.MethodTaskResult, TaskParams(id))
		var rpc *jsonrpc.Error
		switch {
		case t.err == nil, errors.As(t.err, &rpc):
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		default: // the result did not come, and can be asked for again
			return nil, t.err
		}
		t.raw = WithoutMeta(t.raw, revision.RelatedTask)
		return r.proxyOver(call, t, set), nil
	}
	wait := time.NewTimer(proxyWait)
	defer wait.Stop()
	select {
	case <-t.done:
	case <-wait.C:
		return set("working", "", nil), nil // its result has not arrived yet
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return r.proxyOver(call, t, set), nil
}

// setter returns a function that sets the status of a task and another member, "" for none.
func setter(state json.RawMessage) func(status, member string, value json.RawMessage) json.RawMessage {
	return func(status, member string, value json.RawMessage) json.RawMessage {
		out := jsonx.With(nil, state, "status", jsonx.AppendString(nil, status))
		if member == "" {
			return out
		}
		return jsonx.With(nil, out, member, value)
	}
}

// proxyOver returns the state of a task whose outcome is known. The function set sets its status and another member.
func (r *Remote) proxyOver(call *engine.Call, t *proxyTask, set func(status, member string, value json.RawMessage) json.RawMessage) json.RawMessage {
	if t.err == nil {
		return set("completed", "result", t.raw)
	}
	var rpc *jsonrpc.Error
	if !errors.As(r.forwardError(call, revision.MethodCall, r.Owner.Public(t.err)), &rpc) {
		rpc = errorf(jsonrpc.CodeInternal, "no result of the task came: %s", text.Short(t.err.Error()))
	}
	return set("failed", "error", encode(rpc))
}

// strangeTask returns a task of the caller that another process has begun, over a session of its own: its state, its result and its
// cancellation are those at the server. Its questions are not seen here.
func strangeTask() *proxyTask {
	return &proxyTask{Task: engine.NewTask("", func() {}, func(string) {})}
}

// sessionOver is the error of a task whose session with its server has ended before it.
const sessionOver = "the session with the server of the task has ended; whether the task has done what was asked is not known"

const strangeQuestion = "it waits for answers to questions that went to another node, or to this one before a restart; cancel it and begin again"

// listProxyTasks lists the tasks of the caller.
func (r *Remote) listProxyTasks(ctx context.Context, call *engine.Call, req Request) (Answer, error) {
	after := ""
	if req.has("cursor") {
		cursor, err := req.text("cursor")
		if err != nil {
			return Answer{}, err
		}
		var ok bool
		if after, ok = strings.CutPrefix(cursor, "after:"); !ok {
			return Answer{}, errorf(jsonrpc.CodeInvalidParams, "%s: unknown cursor %q; start again without one", req.Method, text.Short(cursor))
		}
	}
	r.mu.Lock()
	proxies := maps.Clone(r.proxies)
	r.mu.Unlock()
	page := struct {
		Tasks []json.RawMessage `json:"tasks"`
		Next  string            `json:"nextCursor,omitempty"`
	}{Tasks: []json.RawMessage{}}
	for _, id := range slices.Sorted(maps.Keys(proxies)) {
		if proxies[id].owner != call.Peer.Principal || id <= after {
			continue
		}
		if len(page.Tasks) == proxyPage {
			page.Next = "after:" + after
			break
		}
		after = id
		state, err := r.proxyState(ctx, call, id, proxies[id])
		var rpc *jsonrpc.Error
		switch {
		case errors.As(err, &rpc):
			continue // the server no longer has it
		case err != nil:
			return Answer{}, err
		}
		page.Tasks = append(page.Tasks, state)
	}
	return Answer{JSON: encode(page)}, nil
}

// proxyAsk passes a question of a task to the caller that has its proxyTask; false if there is
// none. Such a question may arrive on any stream (TASK-25-024).
func (r *Remote) proxyAsk(ctx context.Context, id, method string, params json.RawMessage) (json.RawMessage, bool, error) {
	r.mu.Lock()
	t := r.proxies[id]
	r.mu.Unlock()
	if t == nil {
		return nil, false, nil
	}
	r.sawQuestion()
	r.timers.pause() // of a call that waits for the result, too
	defer r.timers.resume()
	if err := r.mayAsk(method, params); err != nil {
		return nil, true, err
	}
	answers, err := t.ask(ctx, []engine.Question{{Method: method, Params: r.Rev.InnerQuestion(method, params)}})
	if err != nil {
		return nil, true, err
	}
	return tied(r.Rev.Answer(method, answers[0]), params), true, nil
}

// mayBecome reports whether the tools of this server, which speaks 2026-07-28, are listed to a
// caller that speaks 2025-11-25 as tools that may run as tasks. If the caller asks for a task and
// the server answers at once, this process makes the task (T-105).
func (r *Remote) mayBecome(call *engine.Call) bool {
	return call != nil && !r.Rev.Sessions && call.Peer.Revision.CoreTasks && call.Peer.MayTakeTask() && r.has("extensions", revision.Tasks)
}

// proxyHere makes a task of a call to a server that speaks 2026-07-28 for a caller that speaks
// 2025-11-25, whatever the server answers with: a task, questions or a result (T-106, T-107).
func (r *Remote) proxyHere(call *engine.Call, x *Call) (Answer, error) {
	if err := r.proxyRoom(call.Peer.Principal); err != nil {
		return Answer{}, err
	}
	d, ok := r.cancels.add(context.Background())
	if !ok {
		return Answer{}, ErrClosed
	}
	own := call.Detachable(nil)
	ttl := proxyTime
	if ms := call.TaskTTL(); ms > 0 && ms < ttl.Milliseconds() {
		ttl = time.Duration(ms) * time.Millisecond
	}
	at := engine.TaskTime()
	state := engine.TaskState{ID: rand.Text(), Status: "working", Created: at, Updated: at, TTL: ttl.Milliseconds(), Poll: time.Second.Milliseconds()}
	t := &proxyTask{Task: engine.NewTask(state.ID, func() {}, func(string) {}), owner: call.Peer.Principal, done: make(chan struct{}), here: &state}
	x.memo, x.caps, x.self = own, bytes.Clone(x.caps), bytes.Clone(x.self) // they are part of the request, which is soon over
	x.timer.idle, x.timer.total = 0, 0                                     // a task may be silent; ttl bounds it
	x.ask = func(ctx context.Context, qs []engine.Question) ([]json.RawMessage, error) { return own.Ask(ctx, qs...) }
	x.note = func(method string, params json.RawMessage) { r.forwardNote(own, method, params) }
	ctx, cancel := context.WithCancelCause(context.Background())
	wanted, giveUp := context.WithCancelCause(ctx)
	t.stop = func() {
		giveUp(engine.ErrTaskCancelled)
		// A server that is about to make a task gets a moment to return it; otherwise the task
		// would go on and could not be cancelled.
		time.AfterFunc(cancelTime, func() { cancel(engine.ErrTaskCancelled) })
	}
	x.onTask = func(_ context.Context, handle json.RawMessage) (json.RawMessage, error) {
		return x.finishTask(wanted, handle)
	}
	own.Become(t.Task)
	r.mu.Lock()
	r.proxies[state.ID] = t
	r.mu.Unlock()
	own.KeepTask(state.ID, encode(state))
	attached := context.AfterFunc(d.ctx, t.stop)
	d.doneAfter(func() {
		defer close(t.done)
		defer attached()
		defer cancel(nil)
		t.raw, t.err = x.run(ctx)
		t.decide(fateEnded)
		t.Close()
		r.proxyEnded(t)
		final := r.hereOver(own, t)
		if d.ctx.Err() != nil && t.fate.Load() == fateEnded {
			lost := state
			lost.Updated = engine.TaskTime()
			final = setter(encode(lost))("failed", "error", encode(errorf(jsonrpc.CodeInternal, "%s", sessionOver)))
		}
		own.KeepTask(state.ID, final)
	})
	time.AfterFunc(ttl, func() {
		t.stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.forgetProxy(state.ID, t)
	})
	return Answer{JSON: encode(state), Task: true, Drop: t.give}, nil
}

// give cancels a task made here, unless it has ended.
func (t *proxyTask) give() {
	if t.decide(fateCancelled) {
		t.stop()
	}
}

// hereState returns the state of a task made here.
func (r *Remote) hereState(call *engine.Call, t *proxyTask) json.RawMessage {
	if t.fate.Load() == fateCancelled {
		return r.hereOver(call, t)
	}
	select {
	case <-t.done:
		return r.hereOver(call, t)
	default:
	}
	state := *t.here
	if requests := t.InputRequests(); requests != nil {
		state.Status, state.Requests = "input_required", requests
	}
	return encode(state)
}

// hereOver returns the state of a task made here that was cancelled, or whose outcome is known.
func (r *Remote) hereOver(call *engine.Call, t *proxyTask) json.RawMessage {
	state := *t.here
	if at := t.last.Load(); at != nil {
		state.Updated = *at
	}
	switch {
	case t.fate.Load() == fateCancelled:
		state.Status, state.Message = "cancelled", "cancelled by request"
	case t.err == nil:
		state.Status, state.Result = "completed", t.raw
	default:
		err := r.forwardError(call, revision.MethodCall, r.Owner.Public(t.err))
		state.Status = "failed"
		if !errors.As(err, &state.Error) {
			state.Error = errorf(jsonrpc.CodeInternal, "%s", text.Short(err.Error()))
		}
		state.Message = text.Short(state.Error.Message)
	}
	return encode(state)
}
