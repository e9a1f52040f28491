package spread

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// pins remembers the replicas of tasks. The zero value is ready for use.
type pins struct {
	mu    sync.Mutex
	tasks map[string]*replica // by ID; guarded by mu
	order []string            // of the IDs, oldest first; guarded by mu
}

// maxPins bounds the tasks whose replica is remembered.
const maxPins = 10_000

// memo is the key under which a call with an open question remembers its replica.
func (g *Group) memo() string { return "spread/" + g.Name }

// pinnedFor returns the replica that holds what a request is about, or nil.
func (g *Group) pinnedFor(ctx context.Context, req *mcp.Request) *replica {
	if call := engine.From(ctx); call != nil && call.Round() > 0 {
		if raw, ok := call.Recall(g.memo()); ok {
			name, _ := jsonx.Unquote(raw)
			for _, r := range g.replicas {
				if r.Name == name {
					return r
				}
			}
		}
	}
	if strings.HasPrefix(req.Method, "tasks/") {
		g.pinned.mu.Lock()
		defer g.pinned.mu.Unlock()
		return g.pinned.tasks[string(req.Param("taskId"))]
	}
	return nil
}

// note remembers the replica of a task, and of a call with an open question.
func (g *Group) note(ctx context.Context, r *replica, res mcp.Result, err error) {
	if errors.Is(err, mcp.ErrPending) {
		if call := engine.From(ctx); call != nil {
			call.Remember(g.memo(), json.RawMessage(jsonx.AppendString(nil, r.Name)))
		}
		return
	}
	made, ok := res.(*mcp.CreateTaskResult)
	if !ok {
		return
	}
	raw, _ := jsonx.Lookup(made.Task, "taskId")
	id := string(raw)
	p := &g.pinned
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tasks == nil {
		p.tasks = map[string]*replica{}
	}
	if p.tasks[id] == nil {
		p.order = append(p.order, id)
	}
	p.tasks[id] = r
	if len(p.order) > maxPins {
		delete(p.tasks, p.order[0])
		p.order = p.order[1:]
	}
}
