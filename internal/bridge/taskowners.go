package bridge

import (
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// taskOwners keeps the principals of callers in front that were given tasks of a server of 2026-07-28.
// To the server all of them are this session's (T-112). A handler in front that gives tasks
// names of its own, as a gateway does, knows that itself. The zero value is ready for use.
type taskOwners struct {
	mu     sync.Mutex
	owners map[string]string // principals, by id; guarded by mu
	ids    []string          // oldest first; guarded by mu
	named  bool              // some principal was not empty; guarded by mu
}

// maxPassed bounds the tasks whose owners are known.
const maxPassed = 10_000

// give notes who was given a task.
func (o *taskOwners) give(call *engine.Call, id string) {
	if call.TasksNamed() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.owners == nil {
		o.owners = map[string]string{}
	}
	if _, known := o.owners[id]; !known {
		if len(o.ids) >= maxPassed {
			delete(o.owners, o.ids[0])
			o.ids = slices.Delete(o.ids, 0, 1)
		}
		o.ids = append(o.ids, id)
	}
	o.owners[id] = call.Peer.Principal
	o.named = o.named || call.Peer.Principal != ""
}

// may tells whether a task may be the caller's. Where nobody was ever authenticated the id is
// all that protects a task, also one that an earlier session was given.
func (o *taskOwners) may(call *engine.Call, id string) bool {
	if call.TasksNamed() {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	owner, known := o.owners[id]
	if !known {
		return call.Peer.Principal == "" && !o.named
	}
	return owner == call.Peer.Principal
}

// mayPass tells whether a request to a server of 2026-07-28 may be forwarded: one about a task
// if that is the caller's.
func (r *Remote) mayPass(call *engine.Call, req Request) error {
	if call == nil || !revision.OfTasks(req.Method) {
		return nil
	}
	if !call.TakesTask() {
		return call.NeedsTask()
	}
	id, err := req.text("taskId")
	if err == nil && !r.owners.may(call, id) {
		err = engine.UnknownTask(id)
	}
	return err
}

// MayWatch tells whether a caller in front may be told of a task of a server of 2026-07-28.
func (r *Remote) MayWatch(call *engine.Call, task string) bool { return r.owners.may(call, task) }
