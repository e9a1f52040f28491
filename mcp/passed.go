package mcp

import (
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// passed keeps whose the tasks of a server of 2026-07-28 are that callers in front were given.
// To the server all of them are this session's (T-112). A handler in front that gives tasks
// names of its own, as a gateway does, knows that itself. The zero value is ready for use.
type passed struct {
	mu     sync.Mutex
	owners map[string]string // principals, by id; guarded by mu
	ids    []string          // oldest first; guarded by mu
	named  bool              // some principal was not empty; guarded by mu
}

// maxPassed bounds the tasks whose owners are known.
const maxPassed = 10_000

// give notes who was given a task.
func (p *passed) give(call *engine.Call, id string) {
	if call.TasksNamed() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owners == nil {
		p.owners = map[string]string{}
	}
	if _, known := p.owners[id]; !known {
		if len(p.ids) >= maxPassed {
			delete(p.owners, p.ids[0])
			p.ids = slices.Delete(p.ids, 0, 1)
		}
		p.ids = append(p.ids, id)
	}
	p.owners[id] = call.Peer.Principal
	p.named = p.named || call.Peer.Principal != ""
}

// may tells whether a task may be the caller's. Where nobody was ever authenticated the id is
// all that protects a task, also one that an earlier session was given.
func (p *passed) may(call *engine.Call, id string) bool {
	if call.TasksNamed() {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	owner, known := p.owners[id]
	if !known {
		return call.Peer.Principal == "" && !p.named
	}
	return owner == call.Peer.Principal
}

// mayPass tells whether a request to a server of 2026-07-28 may be forwarded: one about a task
// if that is the caller's.
func (s *Session) mayPass(call *engine.Call, req *Request) error {
	if call == nil || !revision.OfTasks(req.Method) {
		return nil
	}
	if !call.TakesTask() {
		return call.NeedsTask()
	}
	id, err := req.paramString("taskId")
	if err == nil && !s.passed.may(call, id) {
		err = unknownTask(id)
	}
	return err
}
