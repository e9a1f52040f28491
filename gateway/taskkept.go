package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store"
)

// The state of a task that ends with its gateway is kept in Gateway.Tasks. Another gateway answers with it, behind the middleware of the server, when
// the one that had the task has ended.

// keptTaskKey is the context key for the id of a task whose state is that in Gateway.Tasks.
type keptTaskKey struct{}

const (
	keptTime     = time.Hour       // for which the state of a task is kept
	keptPatience = 3 * time.Second // for the store
)

// keep keeps the state of a task.
func (g *Gateway) keep(principal, id string, state json.RawMessage) {
	ttl := keptTime
	raw, _ := jsonx.Lookup(state, "ttlMs")
	if ms, err := strconv.ParseInt(string(raw), 10, 64); err == nil && ms > 0 && ms < ttl.Milliseconds() {
		ttl = time.Duration(ms) * time.Millisecond
	}
	ctx, stop := context.WithTimeout(context.Background(), keptPatience)
	defer stop()
	if err := g.Tasks.PutTask(ctx, store.Task{ID: id, Owner: principal, Expires: time.Now().Add(ttl), Over: over(state), Data: state}); err != nil {
		g.log().Warn("the state of a task is not kept for the time after this gateway", "err", err)
	}
}

// keptTask returns where a task of the caller was that another gateway had. The error says that there is none.
func (g *Gateway) keptTask(ctx context.Context, id string) (up *upstream, tag, own string, err error) {
	if _, err := g.keptState(ctx, id); err != nil {
		return nil, "", "", err
	}
	if up, _, tag, own = g.partsOf(id); up == nil {
		return nil, "", "", mcp.Errorf(jsonrpc.CodeInvalidParams, "%s", node.UnknownTask(id))
	}
	return up, tag, own, nil
}

// unknown reports whether an error says that a server does not know a task of the caller whose state is kept.
func (g *Gateway) unknown(ctx context.Context, err error, id string) bool {
	var refused *mcp.Error
	if !errors.As(err, &refused) || refused.Code != jsonrpc.CodeInvalidParams || ctx.Value(keptTaskKey{}) != nil {
		return false
	}
	_, err = g.keptState(ctx, id)
	return err == nil
}

// keptState returns the state of a task of the caller that another gateway had.
func (g *Gateway) keptState(ctx context.Context, id string) (json.RawMessage, error) {
	if g.Tasks == nil {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "%s", node.UnknownTask(id))
	}
	ctx, stop := context.WithTimeout(ctx, keptPatience)
	defer stop()
	kept, ok, err := g.Tasks.GetTask(ctx, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("task %q: %w", text.Short(id), err)
	case !ok || kept.Owner != principalOf(ctx):
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "%s", node.UnknownTask(id))
	}
	if !over(kept.Data) && !kept.Elsewhere {
		why := "the gateway that had the task has ended; whether the task has done what was asked is not known"
		if at, _ := node.OfTask(id); at != "" {
			why = "the node " + at + ", which had the task, has ended; whether the task has done what was asked is not known"
		}
		words := jsonx.AppendString(nil, why)
		kept.Data = jsonx.With(nil, jsonx.Without(nil, kept.Data, "inputRequests"), "status", json.RawMessage(`"failed"`))
		kept.Data = jsonx.With(nil, kept.Data, "statusMessage", words)
		kept.Data = jsonx.With(nil, kept.Data, "error", fmt.Appendf(nil, `{"code":%d,"message":%s}`, jsonrpc.CodeInternal, words))
	}
	return kept.Data, nil
}

// over reports whether the state of a task is final.
func over(state json.RawMessage) bool {
	raw, _ := jsonx.Lookup(state, "status")
	status, _ := jsonx.Unquote(raw)
	return status == "completed" || status == "failed" || status == "cancelled"
}

// aboutKept answers a request about a task that another gateway had.
func (g *Gateway) aboutKept(ctx context.Context, id, method string) (mcp.Result, error) {
	state, err := g.keptState(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case method == "tasks/get":
		return mcp.RawResult(state), nil
	case !over(state):
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "task %q is at work at another node: ask in the session that began it", text.Short(id))
	}
	return mcp.RawResult(`{}`), nil // it is over: nothing is to be cancelled or answered
}
