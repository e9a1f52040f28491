package mcp

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
)

// lentTask is a task of a server of 2025-11-25 that a caller in front was given (T-100 to
// T-103). To the server it is this session's, so what is known of its owner is here. Its
// questions and its result come by tasks/result, which is open all the while; the caller
// finds them in tasks/get.
type lentTask struct {
	*engine.Task
	owner string
	ask   func(context.Context, []engine.Question) ([]json.RawMessage, error)

	ended uint64 // its place among those of the session that ended, from 1; 0 before; guarded by its mu

	done chan struct{} // closed when raw and err are set
	raw  json.RawMessage
	err  error

	here *taskState  // of a task made here, of which the server knows nothing; else nil
	stop func()      // gives up a task made here
	over atomic.Bool // a task made here was cancelled
}

const (
	maxLent  = 1000             // tasks of one session
	maxOwned = 100              // of these, of one owner
	maxKept  = 64 << 20         // bytes of their results
	lentTime = time.Hour        // that a task is known after its end
	lentWait = 10 * time.Second // for the result of a task that is over
	lentPage = 50               // tasks of a page of a list
)

// lends tells whether a call for somebody in front is made as a task: one that has to be,
// or that the caller wants to be and can.
func (s *Session) lends(ctx context.Context, call *engine.Call, method string, params json.RawMessage) (bool, error) {
	if method != revision.MethodCall || !s.coreTasks() || !call.TakesTask() {
		return false, nil
	}
	raw, _ := jsonx.Lookup(params, "name")
	name, err := jsonx.Unquote(raw)
	if err != nil {
		return false, nil // the server says what is wrong
	}
	support, known := s.taskSupport(name)
	if !known && s.relist(ctx) {
		support, _ = s.taskSupport(name)
	}
	demanded := call.Peer.Revision.Sessions
	switch support {
	case TaskRequired:
		return true, nil
	case TaskOptional:
		// A caller of 2026-07-28 who takes either is served sooner without.
		return demanded, nil
	}
	if demanded {
		return false, Errorf(CodeMethodNotFound, "the tool %q does not run as a task; call it without a task member", clip(name)) // TASK-25-006
	}
	return false, nil
}

// lend makes a call as a task and hands its handle to the caller in front.
func (s *Session) lend(ctx context.Context, call *engine.Call, x *outgoingCall) (Result, error) {
	if err := s.roomToLend(call.Peer.Principal); err != nil {
		return nil, err
	}
	x.begin(ctx)
	defer x.over()
	d, ok := s.farewells.owe(x.ctx())
	if !ok {
		return nil, ErrClosed
	}
	own := call.Detach(nil) // it has questions and progress when its caller was answered
	x.front, x.turn.front = own, own
	x.ask = func(ctx context.Context, qs []engine.Question) ([]json.RawMessage, error) {
		for i := range qs {
			qs[i].Params = withoutMeta(qs[i].Params, revision.RelatedTask) // it names the task as the server does
		}
		return own.Ask(ctx, qs...)
	}
	x.note = func(method string, params json.RawMessage) { s.forwardNote(own, method, params) }
	if x.tokenID != 0 {
		x.listen()
	}
	raw, err := x.create(d)
	if err != nil {
		x.listenNoMore()
		return nil, err
	}
	defer d.pay()
	handle := coreHandle(raw)
	if handle == nil { // it was answered at once
		x.listenNoMore()
		return RawResult(raw), nil
	}
	id, err := taskID(handle)
	if err != nil {
		x.listenNoMore()
		return nil, err
	}
	t := &lentTask{Task: engine.NewTask(id, func() {}, func(string) {}), owner: call.Peer.Principal, ask: x.ask, done: make(chan struct{})}
	own.Become(t.Task)
	s.mu.Lock()
	s.lent[id] = t
	s.mu.Unlock()
	going, _ := s.farewells.owe(context.Background()) // there is time for it: d is owed
	going.payBy(func() {
		defer close(t.done)
		t.raw, t.err = x.await(going.ctx, id)
		if t.err != nil && going.ctx.Err() != nil { // the session is being closed
			s.cancelTask(id)
		}
		t.Close()
		x.listenNoMore()
		s.endLent(t)
		time.AfterFunc(lentTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.forgetLent(id, t)
		})
	})
	return &CreateTaskResult{Task: handle, drop: func() { s.abandon(id) }}, nil
}

// roomToLend makes room for one more task of an owner: in place of the one that is over
// for longest, of the owner's if it has too many.
func (s *Session) roomToLend(owner string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	owned := 0
	for _, t := range s.lent {
		if t.owner == owner {
			owned++
		}
	}
	most, all := maxLent, owned < maxOwned
	switch {
	case !all:
		most = maxOwned
	case len(s.lent) < maxLent:
		return nil
	}
	oldest := s.oldestLent(func(t *lentTask) bool { return all || t.owner == owner })
	if oldest == "" {
		return Errorf(CodeInternal, "%d tasks of the server are at work, the most there may be; try again later", most)
	}
	delete(s.lent, oldest)
	return nil
}

// oldestLent finds the task that is over for longest among some, empty for none; mu is held.
func (s *Session) oldestLent(among func(*lentTask) bool) (oldest string) {
	for id, t := range s.lent {
		if t.ended != 0 && among(t) && (oldest == "" || t.ended < s.lent[oldest].ended) {
			oldest = id
		}
	}
	return oldest
}

// endLent takes notice of the end of a task. Results that are too much drop those of the
// tasks that are over for longest.
func (s *Session) endLent(ended *lentTask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lentEnds++
	ended.ended = s.lentEnds
	kept := 0
	for _, t := range s.lent {
		if t.ended != 0 {
			kept += len(t.raw)
		}
	}
	for kept > maxKept {
		oldest := s.oldestLent(func(t *lentTask) bool { return t != ended })
		if oldest == "" {
			return
		}
		kept -= len(s.lent[oldest].raw)
		delete(s.lent, oldest)
	}
}

// forgetLent drops a task, unless another has its id; mu is held.
func (s *Session) forgetLent(id string, t *lentTask) {
	if s.lent[id] == t {
		delete(s.lent, id)
	}
}

// forwardTask answers a request about a task that was lent.
func (s *Session) forwardTask(ctx context.Context, call *engine.Call, req *Request) (Result, error) {
	switch {
	case call == nil:
		return nil, ErrNoCall
	case s.rev.Sessions && !s.coreTasks():
		return nil, Errorf(CodeMethodNotFound, "no method %q: the server has no tasks", req.Method)
	case !call.Peer.Revision.Sessions && !call.TakesTask():
		return nil, call.NeedsTask()
	case req.Method == revision.MethodTasks:
		return s.lentTasks(ctx, call, req)
	}
	id, err := req.paramString("taskId")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	t := s.lent[id]
	s.mu.Unlock()
	if t == nil || t.owner != call.Peer.Principal {
		return nil, unknownTask(id)
	}
	switch req.Method {
	case revision.MethodTask:
		state, err := s.lentState(ctx, call, id, t)
		return RawResult(state), err
	case revision.MethodTaskUpdate:
		if err := answerAll(call, req, t.Task); err != nil {
			return nil, err
		}
	case revision.MethodTaskCancel:
		if t.here != nil {
			t.give()
			break
		}
		if !s.Server().Capabilities.Has("tasks", "cancel") {
			break // T-103: acknowledged, and that is all
		}
		var rpc *Error
		_, err := s.request(ctx, revision.MethodTaskCancel, taskParams(id), nil)
		if err != nil && (!errors.As(err, &rpc) || rpc.Code != CodeInvalidParams) { // it is over already
			return nil, err
		}
	}
	return RawResult(`{}`), nil
}

// lentState is the state of a task in the inner form (T-101, T-102).
func (s *Session) lentState(ctx context.Context, call *engine.Call, id string, t *lentTask) (json.RawMessage, error) {
	if t.here != nil {
		return s.hereState(call, t), nil
	}
	raw, err := s.request(ctx, revision.MethodTask, taskParams(id), nil)
	if err != nil {
		var rpc *Error
		if errors.As(err, &rpc) && rpc.Code == CodeInvalidParams {
			return nil, unknownTask(id)
		}
		return nil, err
	}
	state := withoutMeta(revision.InnerTask(raw), revision.RelatedTask)
	kind, _ := jsonx.Lookup(state, "status")
	status, _ := jsonx.Unquote(kind)
	set := func(status, member string, value json.RawMessage) json.RawMessage {
		out := jsonx.With(nil, state, "status", jsonx.AppendString(nil, status))
		if member == "" {
			return out
		}
		return jsonx.With(nil, out, member, value)
	}
	switch status {
	case "cancelled":
		return state, nil
	case "working", "input_required":
		if requests := t.InputRequests(); requests != nil {
			return set("input_required", "inputRequests", requests), nil
		}
		return set("working", "", nil), nil // its questions have not come yet
	}
	wait := time.NewTimer(lentWait)
	defer wait.Stop()
	select {
	case <-t.done:
	case <-wait.C:
		return set("working", "", nil), nil // its result has not come yet
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if t.err == nil {
		return set("completed", "result", t.raw), nil
	}
	var rpc *Error
	if !errors.As(s.forwardError(call, revision.MethodCall, publicError(t.err)), &rpc) {
		rpc = Errorf(CodeInternal, "the result of the task did not come: %s", clip(t.err.Error()))
	}
	return set("failed", "error", encode(rpc)), nil
}

// lentTasks lists the tasks of the caller.
func (s *Session) lentTasks(ctx context.Context, call *engine.Call, req *Request) (Result, error) {
	after := ""
	if req.Param("cursor") != nil {
		cursor, err := req.paramString("cursor")
		if err != nil {
			return nil, err
		}
		var ok bool
		if after, ok = strings.CutPrefix(cursor, "after:"); !ok {
			return nil, Errorf(CodeInvalidParams, "%s: unknown cursor %q; start again without one", req.Method, clip(cursor))
		}
	}
	s.mu.Lock()
	lent := maps.Clone(s.lent)
	s.mu.Unlock()
	page := struct {
		Tasks []json.RawMessage `json:"tasks"`
		Next  string            `json:"nextCursor,omitempty"`
	}{Tasks: []json.RawMessage{}}
	for _, id := range slices.Sorted(maps.Keys(lent)) {
		if lent[id].owner != call.Peer.Principal || id <= after {
			continue
		}
		if len(page.Tasks) == lentPage {
			page.Next = "after:" + after
			break
		}
		after = id
		state, err := s.lentState(ctx, call, id, lent[id])
		var rpc *Error
		switch {
		case errors.As(err, &rpc):
			continue // the server has it no longer
		case err != nil:
			return nil, err
		}
		page.Tasks = append(page.Tasks, state)
	}
	return RawResult(encode(page)), nil
}

// lentAsk has a question of a task answered by the caller that the task was lent to; false if
// it was lent to none. Such a question may come on any stream (TASK-25-024).
func (s *Session) lentAsk(ctx context.Context, id, method string, params json.RawMessage) (json.RawMessage, bool, error) {
	s.mu.Lock()
	t := s.lent[id]
	s.mu.Unlock()
	if t == nil {
		return nil, false, nil
	}
	s.sawQuestion()
	s.clocks.pause() // of a call that waits for the result, too
	defer s.clocks.resume()
	if err := s.mayAsk(method, params); err != nil {
		return nil, true, err
	}
	answers, err := t.ask(ctx, []engine.Question{{Method: method, Params: s.rev.InnerQuestion(method, params)}})
	if err != nil {
		return nil, true, err
	}
	return tied(s.rev.Answer(method, answers[0]), params), true, nil
}

// mayBecome tells whether the tools of this server of 2026-07-28 are shown to a caller of
// 2025-11-25 as ones that may run as tasks: what it answers at once becomes one here (T-105).
func (s *Session) mayBecome(call *engine.Call) bool {
	return call != nil && !s.rev.Sessions && call.Peer.Revision.CoreTasks && call.Peer.MayTakeTask() && s.Server().Capabilities.Has("extensions", revision.Tasks)
}

// lendHere makes a task of a call to a server of 2026-07-28 for a caller of 2025-11-25, who
// gets one whatever the server answers with: a task, questions or a result (T-106, T-107).
func (s *Session) lendHere(call *engine.Call, x *outgoingCall) (Result, error) {
	if err := s.roomToLend(call.Peer.Principal); err != nil {
		return nil, err
	}
	d, ok := s.farewells.owe(context.Background())
	if !ok {
		return nil, ErrClosed
	}
	own := call.Detach(nil)
	ttl := lentTime
	if ms := call.TaskTTL(); ms > 0 && ms < ttl.Milliseconds() {
		ttl = time.Duration(ms) * time.Millisecond
	}
	at := now()
	state := taskState{ID: rand.Text(), Status: "working", Created: at, Updated: at, TTL: ttl.Milliseconds(), Poll: time.Second.Milliseconds()}
	t := &lentTask{Task: engine.NewTask(state.ID, func() {}, func(string) {}), owner: call.Peer.Principal, done: make(chan struct{}), here: &state}
	x.memo, x.caps, x.self = own, bytes.Clone(x.caps), bytes.Clone(x.self) // they are of the request, which is soon over
	x.clock.silent, x.clock.total = 0, 0                                   // a task may be silent; ttl bounds it
	x.ask = func(ctx context.Context, qs []engine.Question) ([]json.RawMessage, error) { return own.Ask(ctx, qs...) }
	x.note = func(method string, params json.RawMessage) { s.forwardNote(own, method, params) }
	ctx, cancel := context.WithCancelCause(context.Background())
	wanted, giveUp := context.WithCancelCause(ctx)
	t.stop = func() {
		giveUp(errTaskCancelled)
		// A server that is about to make a task has a moment to say so, or its task would go on
		// with nobody to cancel it.
		time.AfterFunc(cancelTime, func() { cancel(errTaskCancelled) })
	}
	x.onTask = func(_ context.Context, handle json.RawMessage) (json.RawMessage, error) {
		return x.finishTask(wanted, handle)
	}
	own.Become(t.Task)
	s.mu.Lock()
	s.lent[state.ID] = t
	s.mu.Unlock()
	attached := context.AfterFunc(d.ctx, t.stop)
	d.payBy(func() {
		defer close(t.done)
		defer attached()
		defer cancel(nil)
		t.raw, t.err = x.run(ctx)
		t.Close()
		s.endLent(t)
	})
	time.AfterFunc(ttl, func() {
		t.stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forgetLent(state.ID, t)
	})
	return &CreateTaskResult{Task: encode(state), drop: t.give}, nil
}

// give ends a task made here at once, unless it has ended.
func (t *lentTask) give() {
	select {
	case <-t.done:
	default:
		t.over.Store(true)
		t.stop()
	}
}

// hereState is the state of a task made here.
func (s *Session) hereState(call *engine.Call, t *lentTask) json.RawMessage {
	state := *t.here
	if t.over.Load() {
		state.Status, state.Message = "cancelled", "cancelled by request"
		return encode(state)
	}
	select {
	case <-t.done:
	default:
		if requests := t.InputRequests(); requests != nil {
			state.Status, state.Requests = "input_required", requests
		}
		return encode(state)
	}
	if t.err == nil {
		state.Status, state.Result = "completed", t.raw
		return encode(state)
	}
	err := s.forwardError(call, revision.MethodCall, publicError(t.err))
	state.Status = "failed"
	if !errors.As(err, &state.Error) {
		state.Error = Errorf(CodeInternal, "%s", clip(err.Error()))
	}
	state.Message = clip(state.Error.Message)
	return encode(state)
}
