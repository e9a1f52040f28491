package policy

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// listen decides subscriptions/listen, and then each of its notifications, because the policy may
// have changed since, and a subscribed resource may have others below it.
func (g *gate) listen(ctx context.Context, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	wanted, err := object(req, "notifications")
	if err != nil {
		return nil, err
	}
	uris, err := texts(req.Method, wanted, "resourceSubscriptions")
	if err != nil {
		return nil, err
	}
	for _, uri := range uris {
		if err := g.admitURI(ctx, g.resource(ctx, req.Method, uri, next)); err != nil {
			return nil, err
		}
	}
	tasks, err := texts(req.Method, wanted, "taskIds")
	if err != nil {
		return nil, err
	}
	for _, id := range tasks {
		task := append(jsonx.AppendString([]byte(`{"taskId":`), id), '}')
		if err := g.admitTask(ctx, g.ofTask(ctx, req.Method, task, next), id); err != nil {
			return nil, err
		}
	}
	if len(uris) == 0 && len(tasks) == 0 {
		return next.Handle(ctx, req)
	}
	return next.Handle(forward.WithNotify(ctx, func(method string, params json.RawMessage) error {
		switch method {
		case "notifications/resources/updated":
			a := g.resource(ctx, req.Method, nameOf(params, "uri"), next)
			if d := g.policy.Decide(ctx, a); !d.Allow {
				return nil
			}
		case "notifications/tasks":
			a := g.ofTask(ctx, req.Method, params, next)
			if d := g.policy.Decide(ctx, a); !d.Allow {
				return nil
			}
		}
		return forward.Notify(ctx, method, params)
	}), req)
}

// maxListened bounds the resources, and the tasks, of one subscription.
const maxListened = 10_000

// texts reads a member that is a list of strings, if it is there.
func texts(method string, obj json.RawMessage, member string) ([]string, error) {
	raw, ok := jsonx.Lookup(obj, member)
	if !ok || string(raw) == "null" {
		return nil, nil
	}
	var list []string
	if err := jsonx.Unmarshal(raw, &list); err != nil || len(list) > maxListened {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "%s: %q must be a list of at most %d strings", method, member, maxListened)
	}
	return list, nil
}
