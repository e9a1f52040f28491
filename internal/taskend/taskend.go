// Package taskend finds the ends of tasks where a caller learns them: in the answers to tasks/get, to
// which requests of 2025-11-25 about tasks are translated, and in notifications/tasks. The audit log and the counters have a [Pending] each, so that a task that is
// asked about again after its end counts once.
package taskend

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// End describes how a task ended: extensions/tasks, DetailedTask.
type End struct {
	Cause  outcome.Cause   // Result, Tool, Server or Caller
	Code   int             // of the JSON-RPC error of a task that failed
	Result json.RawMessage // of a task that completed
	Took   time.Duration   // from its creation to its last change, as its server says; zero: it does not say
}

// Of returns the end of the task that an answer to tasks/get, or a notification, describes. It is false for a task that
// is not over.
func Of(res mcp.Result) (End, bool) {
	if res == nil {
		return End{}, false
	}
	state := res.JSON()
	status, _ := jsonx.Lookup(state, "status")
	e := End{}
	switch string(status) {
	case `"completed"`:
		e.Result, _ = jsonx.Lookup(state, "result")
		if flag, _ := jsonx.Lookup(e.Result, "isError"); string(flag) == "true" {
			e.Cause = outcome.Tool
		}
	case `"failed"`:
		e.Cause, e.Code = outcome.Server, jsonrpc.CodeInternal
		if code, ok := jsonx.LookupPath(state, "error", "code"); ok {
			if n, err := strconv.Atoi(string(code)); err == nil {
				e.Code = n
			}
		}
	case `"cancelled"`:
		e.Cause = outcome.Caller
	default:
		return End{}, false
	}
	e.Took = max(0, timeOf(state, "lastUpdatedAt").Sub(timeOf(state, "createdAt")))
	return e, true
}

// Listening returns the context for a subscriptions/listen that follows tasks; f gets the id and the
// state of each task that the caller is notified of. For other requests it returns ctx.
func Listening(ctx context.Context, req *mcp.Request, f func(id string, state mcp.Result)) context.Context {
	if req.Method != revision.MethodListen {
		return ctx
	}
	if ids, _ := jsonx.LookupPath(req.Params, "notifications", "taskIds"); jsonx.KindOf(ids) != '[' {
		return ctx
	}
	return forward.WithNotify(ctx, func(method string, params json.RawMessage) error {
		if method == "notifications/tasks" {
			raw, _ := jsonx.Lookup(params, "taskId")
			id, _ := jsonx.Unquote(raw)
			f(id, mcp.RawResult(params))
		}
		return forward.Notify(ctx, method, params)
	})
}

// timeOf returns a time of a task; zero: it has none.
func timeOf(state json.RawMessage, member string) (at time.Time) {
	raw, _ := jsonx.Lookup(state, member)
	_ = jsonx.Unmarshal(raw, &at)
	return at
}

// Made returns the id of the task that a call has become; empty: it has become none.
func Made(res mcp.Result) string {
	made, ok := res.(*mcp.CreateTaskResult)
	if !ok || made == nil {
		return ""
	}
	raw, _ := jsonx.Lookup(made.Task, "taskId")
	id, _ := jsonx.Unquote(raw)
	return id
}

// Bounds of the tasks whose end is awaited. Nobody may ever ask for the end of a task, so the oldest
// make room.
const (
	maxTasks = 10_000
	maxID    = 4096 // bytes; a longer id is not awaited
)

// Pending are tasks whose end is not known yet, with what is known about each. The zero value is
// empty. It is safe for concurrent use.
type Pending[V any] struct {
	mu     sync.Mutex
	tasks  map[string]*waiting[V] // guarded by mu
	oldest *waiting[V]            // guarded by mu
	newest *waiting[V]            // guarded by mu
}

// waiting is a task in a list by age.
type waiting[V any] struct {
	id            string
	about         V
	before, after *waiting[V]
}

// Add adds a task. It replaces one with the same id, because servers choose ids.
func (p *Pending[V]) Add(id string, about V) {
	if id == "" || len(id) > maxID {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tasks == nil {
		p.tasks = map[string]*waiting[V]{}
	}
	if old := p.tasks[id]; old != nil {
		p.remove(old)
	}
	for len(p.tasks) >= maxTasks {
		p.remove(p.oldest)
	}
	w := &waiting[V]{id: id, about: about, before: p.newest}
	if p.newest != nil {
		p.newest.after = w
	} else {
		p.oldest = w
	}
	p.newest = w
	p.tasks[id] = w
}

// Take removes a task and returns what Add got. It is false for a task that was not added, or was
// taken before.
func (p *Pending[V]) Take(id string) (about V, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.tasks[id]
	if w == nil {
		return about, false
	}
	p.remove(w)
	return w.about, true
}

// remove removes a task; mu is held.
func (p *Pending[V]) remove(w *waiting[V]) {
	delete(p.tasks, w.id)
	if w.before != nil {
		w.before.after = w.after
	} else {
		p.oldest = w.after
	}
	if w.after != nil {
		w.after.before = w.before
	} else {
		p.newest = w.before
	}
}
