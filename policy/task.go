package policy

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// maxTasks bounds the tasks whose tools are known; the oldest are dropped.
const maxTasks = 10_000

// taskTools remembers the tools of tasks. The zero value is ready for use.
type taskTools struct {
	mu   sync.Mutex
	tool map[taskID]string // guarded by mu
	ring []taskID          // in the order of their beginning; guarded by mu
	next int               // in ring, when it is full; guarded by mu
}

// taskID identifies a task. Server processes for different clients may use the same ids.
type taskID struct{ principal, id string }

// taskKey returns the key of a principal's task; zero if there is no id.
func taskKey(p *auth.Principal, task json.RawMessage) (key taskID) {
	if key.id = nameOf(task, "taskId"); key.id != "" && p != nil {
		key.principal = p.ID
	}
	return key
}

func (t *taskTools) put(key taskID, tool string) {
	if key.id == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.tool[key]; ok {
		if old != tool {
			t.tool[key] = "" // two tasks with one id: it may be either tool
		}
		return
	}
	if t.tool == nil {
		t.tool = map[taskID]string{}
	}
	if len(t.ring) < maxTasks {
		t.ring = append(t.ring, key)
	} else {
		delete(t.tool, t.ring[t.next])
		t.ring[t.next] = key
		t.next = (t.next + 1) % maxTasks
	}
	t.tool[key] = tool
}

// get returns the tool of a task, or "" if it is not known.
func (t *taskTools) get(key taskID) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tool[key]
}

// ofTask returns the access to a task: to some call of its tool.
func (g *gate) ofTask(ctx context.Context, method string, task json.RawMessage, next mcp.Handler) *Access {
	a := g.access(ctx, method)
	a.Kind, a.Partial = mcp.KindTool, true
	if a.Name = g.tasks.get(taskKey(a.Principal, task)); a.Name == "" {
		a.Name = step.TaskTool(ctx)
	}
	if a.Name != "" {
		a.Annotations = g.believed(func() *Annotations { return g.known.find(ctx, next, a) })
	}
	return a
}

// task decides requests about one task.
func (g *gate) task(ctx context.Context, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	id, err := stringParam(req, "taskId")
	if err != nil {
		return nil, err
	}
	if err := g.admitTask(ctx, g.ofTask(ctx, req.Method, req.Params, next), id); err != nil {
		return nil, err
	}
	return next.Handle(ctx, req)
}

// admitTask is admit for a task. Its error reports a missing task, not a missing tool.
func (g *gate) admitTask(ctx context.Context, a *Access, id string) error {
	d := g.policy.Decide(ctx, a)
	if d.Allow {
		return nil
	}
	g.refused(ctx, a, &d)
	if d.Scopes != nil {
		return &auth.InsufficientScopeError{Scopes: d.Scopes}
	}
	return &refusal{mcp.Errorf(jsonrpc.CodeInvalidParams, "task %q does not exist or has expired", text.Short(id))}
}

// taskList lists the tasks of tools that the caller may still call.
func (g *gate) taskList(ctx context.Context, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	res, err := next.Handle(ctx, req)
	if err != nil {
		return nil, err
	}
	return mcp.RawResult(filter(res.JSON(), "tasks", func(task json.RawMessage) bool {
		d := g.policy.Decide(ctx, g.ofTask(ctx, "tasks/get", task, next))
		return d.Allow
	})), nil
}
