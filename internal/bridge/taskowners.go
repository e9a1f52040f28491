package bridge

import (
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// taskOwners records which principals in front own tasks at a server that speaks 2026-07-28. For
// the server, all the tasks belong to this session (T-112). A handler in front that gives tasks its
// own ids, as a gateway does, tracks their owners itself. The zero value is ready for use.
type taskOwners struct {
	mu     sync.Mutex
	owners map[string]string // principals, by id; guarded by mu
	ids    []string          // oldest first; guarded by mu
	named  bool              // some recorded principal is not empty; guarded by mu
}

// maxPassed bounds the tasks with recorded owners.
const maxPassed = 10_000

// give records the owner of a task.
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

// may reports whether a task may belong to the caller. If no owner was authenticated, the id is the
// only protection of a task, also of one from an earlier session.
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

// mayPass reports whether a request to a server that speaks 2026-07-28 may be forwarded: a request
// about a task only if the task may be the caller's.
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

// MayWatch reports whether a caller in front may be notified when a task changes at a server that
// speaks 2026-07-28.
func (r *Remote) MayWatch(call *engine.Call, task string) bool { return r.owners.may(call, task) }
