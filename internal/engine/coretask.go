package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// coreTask is one request about a task in the form of 2025-11-25, served by a handler that uses
// the form of the extension (T-105 to T-107, T-110).
type coreTask struct {
	e       *Engine
	session *Session
	id      jsonrpc.ID
	header  http.Header
	ex      Exchange
	task    json.RawMessage // its id, as JSON
	name    string          // its id

	// Of tasks/result:
	ctx     context.Context         // of the request
	end     context.CancelCauseFunc // of ctx
	changed chan struct{}           // capacity 1

	mu     sync.Mutex
	asking context.Context // of the questions asked by this request; nil while another asks; guarded by mu
	stop   func()          // ends asking; guarded by mu
	put    map[string]bool // questions asked by this request; guarded by mu
}

// A task whose changes are not announced is polled, at the interval that the task gives within
// these bounds.
const (
	minTaskPoll = 50 * time.Millisecond
	maxTaskPoll = 2 * time.Second
)

func taskPoll(task json.RawMessage) time.Duration {
	raw, _ := jsonx.Lookup(task, "pollIntervalMs")
	ms, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil {
		return maxTaskPoll
	}
	return min(max(time.Duration(ms)*time.Millisecond, minTaskPoll), maxTaskPoll)
}

func (e *Engine) coreTask(ctx context.Context, s *Session, msg *jsonrpc.Message, header http.Header, ex Exchange) Reply {
	x := &coreTask{e: e, session: s, id: msg.ID, header: header, ex: ex}
	var res json.RawMessage
	err := e.User.Run(ctx, msg.Method, func() (err error) { // converts the handler's result
		res, err = x.serve(ctx, msg)
		return err
	})
	if err != nil {
		return e.failure(ctx, &Call{Method: msg.Method, Peer: s.Peer}, msg.ID, err)
	}
	return Reply{ID: msg.ID, Result: res}
}

func (x *coreTask) serve(ctx context.Context, msg *jsonrpc.Message) (res json.RawMessage, err error) {
	if msg.Method == revision.MethodTasks {
		return x.list(ctx, msg)
	}
	x.task, _ = msg.Param("taskId") // TASK-25-036, -038: the id in _meta does not count
	if x.name, err = jsonx.Unquote(x.task); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: msg.Method + `: missing "taskId", a string`}
	}
	switch msg.Method {
	case revision.MethodTask:
		if res, err = x.get(ctx); err == nil {
			res = revision.CoreTask(res)
		}
		return res, err
	case revision.MethodTaskCancel:
		return x.cancel(ctx)
	}
	return x.result(ctx)
}

// call calls the handler.
func (x *coreTask) call(ctx context.Context, method string, params json.RawMessage, ex Exchange, faults map[string]error) (json.RawMessage, error) {
	c := &Call{Method: method, Params: params, Msg: &jsonrpc.Message{ID: x.id, Method: method, Params: params},
		Peer: x.session.Peer, Header: x.header, ex: ex, session: x.session}
	if faults != nil {
		c.rare = &rare{faults: faults}
	}
	res, err := x.e.run(ctx, c)
	if err != nil {
		return nil, err
	}
	return res.JSON, nil
}

func (x *coreTask) params(more string) json.RawMessage {
	return append(append(append([]byte(`{"taskId":`), x.task...), more...), '}')
}

func (x *coreTask) get(ctx context.Context) (json.RawMessage, error) {
	return x.call(ctx, revision.MethodTask, x.params(""), nil, nil)
}

func (x *coreTask) list(ctx context.Context, msg *jsonrpc.Message) (json.RawMessage, error) {
	if !x.session.Peer.Identified() {
		// TASK-25-059: callers without an identity would see the tasks of all others.
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "tasks/list needs an authenticated caller"}
	}
	params := []byte(`{}`)
	if cursor, ok := msg.Param("cursor"); ok {
		params = jsonx.With(nil, params, "cursor", cursor)
	}
	raw, err := x.call(ctx, revision.MethodTasks, params, nil, nil)
	if err != nil {
		return nil, err
	}
	tasks, _ := jsonx.Lookup(raw, "tasks")
	out := []byte{'['}
	for t := range jsonx.Elements(tasks) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, revision.CoreTask(t)...)
	}
	return jsonx.With(nil, raw, "tasks", append(out, ']')), nil
}

// cancel answers when the task is cancelled (TASK-25-046 to -048).
func (x *coreTask) cancel(ctx context.Context) (json.RawMessage, error) {
	task, err := x.get(ctx)
	if err != nil {
		return nil, err
	}
	if status := taskStatus(task); terminal(status) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the task is " + status + " already and cannot be cancelled"}
	}
	if _, err := x.call(ctx, revision.MethodTaskCancel, x.params(""), nil, nil); err != nil {
		return nil, err
	}
	if task, err = x.get(ctx); err != nil {
		return nil, err
	}
	if status := taskStatus(task); terminal(status) && status != "cancelled" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the task became " + status + " before it could be cancelled"}
	}
	return revision.CoreTask(task), nil
}

// result answers when the task is over, and asks the client its questions meanwhile (TASK-25-031
// to -035, T-107).
func (x *coreTask) result(ctx context.Context) (json.RawMessage, error) {
	ctx, stop := context.WithCancelCause(ctx)
	x.ctx, x.end, x.changed = ctx, stop, make(chan struct{}, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop(nil)
	x.session.ask(x)
	defer x.session.askNoMore(x)
	wg.Go(func() {
		filter := append(append([]byte(`{"notifications":{"taskIds":[`), x.task...), `]}}`...)
		// A handler that announces nothing is polled.
		_, _ = x.call(ctx, revision.MethodListen, filter, wakes(x.changed), nil)
	})
	timer := time.NewTimer(maxTaskPoll)
	defer timer.Stop()
	for {
		task, err := x.get(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		}
		status := taskStatus(task)
		if terminal(status) {
			return x.outcome(status, task)
		}
		if requests, ok := jsonx.Lookup(task, "inputRequests"); ok {
			for key, q := range jsonx.Members(requests) {
				x.question(&wg, string(key), append(json.RawMessage(nil), q...))
			}
		}
		timer.Reset(taskPoll(task))
		select {
		case <-x.changed:
		case <-timer.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// question asks the client a question, if it is this request's turn to ask.
func (x *coreTask) question(wg *sync.WaitGroup, key string, q json.RawMessage) {
	x.mu.Lock()
	ctx := x.asking
	known := ctx == nil || x.put[key]
	if !known {
		x.put[key] = true
	}
	x.mu.Unlock()
	if known {
		return
	}
	wg.Go(func() {
		// The handler's description of its task is converted.
		_ = x.e.User.Run(ctx, revision.MethodTaskResult, func() error { x.pose(ctx, key, q); return nil })
	})
}

// pose asks the client a question and gives the handler the answer.
func (x *coreTask) pose(ctx context.Context, key string, q json.RawMessage) {
	raw, _ := jsonx.Lookup(q, "method")
	method, _ := jsonx.Unquote(raw)
	params, _ := jsonx.Lookup(q, "params")
	params, err := x.session.Peer.Revision.Question(method, jsonx.OrObject(params))
	var answer json.RawMessage
	if err == nil {
		answer, err = x.ex.Request(ctx, method, revision.WithRelatedTask(params, x.name)) // TASK-25-021
	}
	var rpc *jsonrpc.Error
	var lack *revision.Lack
	if ctx.Err() != nil || err != nil && !errors.As(err, &rpc) && !errors.As(err, &lack) {
		return // not answered; the request that asks next asks again
	}
	responses := []byte(`,"inputResponses":{`)
	faults := map[string]error{}
	if err != nil {
		faults[key] = err
	} else {
		responses = append(append(jsonx.AppendString(responses, key), ':'), jsonx.OrObject(answer)...)
	}
	// The handler is asked again soon, so an error shows there.
	_, _ = x.call(x.ctx, revision.MethodTaskUpdate, x.params(string(append(responses, '}'))), nil, faults)
}

// outcome returns the answer that the request would have had if it had not become a task.
func (x *coreTask) outcome(status string, task json.RawMessage) (json.RawMessage, error) {
	if result, ok := jsonx.Lookup(task, "result"); ok {
		result = x.session.Peer.Revision.Result(revision.MethodCall, result, revision.Unknown)
		return revision.WithRelatedTask(result, x.name), nil // TASK-25-040
	}
	if raw, ok := jsonx.Lookup(task, "error"); ok {
		var e jsonrpc.Error
		if err := jsonx.Unmarshal(raw, &e); err == nil {
			return nil, &e // TASK-25-054
		}
	}
	if status == "cancelled" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the task was cancelled"}
	}
	return nil, errors.New("the task is " + status + " and has no result")
}

// Faults returns the errors with which a client answered questions of a task, by key; the form of
// the extension cannot carry them.
func (c *Call) Faults() map[string]error {
	if c.rare == nil {
		return nil
	}
	return c.rare.faults
}

func taskStatus(task json.RawMessage) string {
	raw, _ := jsonx.Lookup(task, "status")
	status, _ := jsonx.Unquote(raw)
	return status
}

func terminal(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

// maxWaiting bounds the requests of a session that wait for the result of one task.
const maxWaiting = 16

var errTooManyWait = fmt.Errorf("%d later requests wait for the result of this task, which is the limit", maxWaiting)

// ask lets a request for the result of a task ask the task's questions. The latest request asks,
// because the client may have lost the streams of earlier ones; when it ends, the one before it
// asks again. If too many wait, the oldest fails.
func (s *Session) ask(x *coreTask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.askers == nil {
		s.askers = map[string][]*coreTask{}
	}
	waiting := s.askers[x.name]
	if n := len(waiting); n > 0 {
		waiting[n-1].pause()
	}
	if over := len(waiting) - maxWaiting; over >= 0 {
		waiting[over].end(errTooManyWait) // earlier ones are ending
	}
	s.askers[x.name] = append(waiting, x)
	x.resume()
}

func (s *Session) askNoMore(x *coreTask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.pause()
	waiting := s.askers[x.name]
	last := waiting[len(waiting)-1] == x
	waiting = slices.DeleteFunc(waiting, func(o *coreTask) bool { return o == x })
	if len(waiting) == 0 {
		delete(s.askers, x.name)
		return
	}
	s.askers[x.name] = waiting
	if last {
		waiting[len(waiting)-1].resume()
	}
}

func (x *coreTask) pause() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asking != nil {
		x.stop()
		x.asking = nil
	}
}

func (x *coreTask) resume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asking, x.stop = context.WithCancel(x.ctx)
	x.put = map[string]bool{}
	select {
	case x.changed <- struct{}{}:
	default:
	}
}

// wakes is an Exchange that signals that a notification came.
type wakes chan struct{}

func (w wakes) Notify(string, json.RawMessage) error {
	select {
	case w <- struct{}{}:
	default:
	}
	return nil
}

func (w wakes) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("a subscription asks nothing")
}
