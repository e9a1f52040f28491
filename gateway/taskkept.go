package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store"
)

// Gateway.Tasks has what other gateways need to know of a task: its tool, for their policies, and if the task ends with its gateway, its
// state. Another gateway answers with that, behind the middleware of the server, when the one that had the task has ended.

// keptTask is a task in Gateway.Tasks.
type keptTask struct {
	Tool  string          `json:"tool"`
	State json.RawMessage `json:"state,omitempty"` // a DetailedTask; empty: the server keeps it

	elsewhere bool   // its process lives
	id        string // that the caller knows
}

const (
	keptTime     = time.Hour   // for which a task is kept
	keptPatience = time.Second // for the store
)

// keep keeps a task. A state that the store does not take is replaced by one without the result.
func (g *Gateway) keep(principal, id, tool string, state json.RawMessage) {
	if g.Tasks == nil {
		return
	}
	g.begun.put(id)
	expires := time.Now().Add(keptTime)
	var told struct {
		Created time.Time `json:"createdAt"`
		TTL     int64     `json:"ttlMs"`
	}
	if json.Unmarshal(state, &told) == nil && told.TTL > 0 {
		if end := told.Created.Add(time.Duration(told.TTL) * time.Millisecond); end.Before(expires) {
			expires = end
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), keptPatience)
	defer stop()
	put := func(state json.RawMessage) error {
		data, err := json.Marshal(keptTask{Tool: tool, State: state})
		if err == nil {
			err = g.Tasks.PutTask(ctx, store.Task{ID: id, Owner: principal, Expires: expires, Over: over(state), Data: data})
		}
		return err
	}
	err := put(state)
	if err != nil && over(state) && ctx.Err() == nil {
		err = errors.Join(err, put(failedTask(jsonx.Without(nil, state, "result", "error"), "the task has ended, and its result was not kept for other gateways")))
	}
	if err != nil {
		g.log().Warn("a task is not kept for the time after this gateway", "err", err)
	}
}

// over reports whether the state of a task is final.
func over(state json.RawMessage) bool {
	raw, _ := jsonx.Lookup(state, "status")
	status, _ := jsonx.Unquote(raw)
	return status == "completed" || status == "failed" || status == "cancelled"
}

// failedTask returns the state of a task that has failed.
func failedTask(state json.RawMessage, why string) json.RawMessage {
	words := jsonx.AppendString(nil, why)
	state = jsonx.With(nil, jsonx.Without(nil, state, "inputRequests"), "status", json.RawMessage(`"failed"`))
	state = jsonx.With(nil, state, "statusMessage", words)
	return jsonx.With(nil, state, "error", fmt.Appendf(nil, `{"code":%d,"message":%s}`, jsonrpc.CodeInternal, words))
}

// ofAnother returns a task of the caller that another gateway had; nil: none is known. The error is one for the caller.
func (g *Gateway) ofAnother(ctx context.Context, id string) (*keptTask, error) {
	if g.Tasks == nil {
		return nil, nil
	}
	ctx, stop := context.WithTimeout(ctx, node.Wait(ctx, keptPatience))
	defer stop()
	record, ok, err := g.Tasks.GetTask(ctx, id)
	if err == nil && (!ok || record.Owner != principalOf(ctx)) {
		return nil, nil
	}
	task := keptTask{elsewhere: record.Elsewhere, id: id}
	if err == nil {
		err = json.Unmarshal(record.Data, &task)
	}
	if err != nil {
		g.log().Warn("a task of another gateway is not found", "err", err)
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "task %q: tasks of other gateways are not found at the moment; try again", text.Short(id))
	}
	return &task, nil
}

// begunTasks are the newest tasks of this process that are kept. The zero value is ready for use.
type begunTasks struct {
	mu   sync.Mutex
	ids  map[string]bool // guarded by mu
	ring []string        // in the order of their beginning; guarded by mu
	next int             // in ring, when it is full; guarded by mu
}

// maxBegun bounds them.
const maxBegun = 10_000

func (b *begunTasks) put(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ids[id] {
		return
	}
	if b.ids == nil {
		b.ids = map[string]bool{}
	}
	if len(b.ring) < maxBegun {
		b.ring = append(b.ring, id)
	} else {
		delete(b.ids, b.ring[b.next])
		b.ring[b.next] = id
		b.next = (b.next + 1) % maxBegun
	}
	b.ids[id] = true
}

func (b *begunTasks) has(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ids[id]
}

// keptTaskKey is the context key for a [keptTask] whose state is told if the server does not know it.
type keptTaskKey struct{}

// asKept returns a context for requests about a task that another gateway had.
func asKept(ctx context.Context, task *keptTask) context.Context {
	return context.WithValue(step.WithTaskTool(ctx, task.Tool), keptTaskKey{}, task)
}

// orKept returns what a server has answered to a request about a task, or what is known of a task that it does not know.
func orKept(ctx context.Context, method string, res mcp.Result, err error) (mcp.Result, error) {
	task, _ := ctx.Value(keptTaskKey{}).(*keptTask)
	var refused *mcp.Error
	if task == nil || task.State == nil || !errors.As(err, &refused) || refused.Code != jsonrpc.CodeInvalidParams {
		return res, err
	}
	state := task.State
	switch {
	case over(state):
	case task.elsewhere && method != "tasks/get":
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "task %q is at work at another node: ask in the session that began it", text.Short(task.id))
	case !task.elsewhere:
		state = failedTask(state, "the gateway that had the task has ended; whether the task has done what was asked is not known")
	}
	if method == "tasks/get" {
		return mcp.RawResult(state), nil
	}
	return mcp.RawResult(`{}`), nil // it is over: nothing is to be cancelled or answered
}
