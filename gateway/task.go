package gateway

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// The gateway gives each task of an upstream an id of its own: the upstream, a seal, a tag of the
// connection, and the upstream's own id. All callers of the gateway may look alike to an upstream;
// the seal ties a task to its principal, for the lifetime of the key (T-112).

const extTasks = "io.modelcontextprotocol/tasks"

// tasks lists the caller's tasks at the upstreams that offer such a list to callers of the gateway:
// those within the process.
func (g *Gateway) tasks(ctx context.Context) (mcp.Result, error) {
	all := []byte{'['}
	for _, e := range g.entries(ctx, listTasks, (*upstream).shown) {
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, g.ofTask(ctx, e.up, e.raw)...)
	}
	return mcp.RawResult(append(append([]byte(`{"tasks":`), all...), `]}`...)), nil
}

// task routes a request about a task.
func (g *Gateway) task(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	id, err := member(req.Method, req.Params, "taskId")
	if err != nil {
		return nil, err
	}
	up, tag, own := g.ownerOfTask(ctx, id)
	if up == nil || up.lasts() && !g.begun.has(id) { // another process may have begun it
		kept, err := g.ofAnother(ctx, id)
		if err != nil {
			return nil, err
		}
		if kept != nil {
			ctx = asKept(ctx, kept)
			if up == nil && kept.State != nil { // sealed by a process that has ended
				up, _, tag, own = g.partsOf(id)
			}
		}
	}
	if up == nil {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "%s", node.UnknownTask(id))
	}
	if who := clientOf(ctx); who.can != tag && up.pool != nil && up.pool.ownerOf(who).session == nil {
		who.can = tag // the task is at the connection where it began
		ctx = who.as(ctx)
	}
	res, err := up.handle(g.naming(ctx, up, ""), req.Method, jsonx.With(nil, req.Params, "taskId", jsonx.AppendString(nil, own)))
	if err != nil {
		return nil, up.aboutTask(ctx, req.Method, err, id, own)
	}
	if req.Method != "tasks/get" {
		return res, nil
	}
	return mcp.RawResult(jsonx.With(nil, res.JSON(), "taskId", jsonx.AppendString(nil, id))), nil
}

// aboutTask words a server's refusal of a request about a task with the id that the caller knows. If the server does not
// know the task and has lost a connection, the error says so, because the task may have ended with it.
func (up *upstream) aboutTask(ctx context.Context, method string, err error, id, own string) error {
	var refused *mcp.Error
	if !errors.As(err, &refused) || refused.Code != jsonrpc.CodeInvalidParams || own == "" {
		return err
	}
	told := *refused
	told.Message = strings.ReplaceAll(told.Message, strconv.Quote(text.Short(own)), strconv.Quote(text.Short(id)))
	if at, _ := node.OfTask(id); at != "" && at != node.Name(ctx) {
		told.Message += fmt.Sprintf("; the node %s, which began it, has ended, and so have the tasks of servers that it had started", at)
	}
	if method == "tasks/get" && up.pool != nil {
		up.pool.mu.Lock()
		at := up.pool.lostAt
		up.pool.mu.Unlock()
		if !at.IsZero() {
			told.Message += fmt.Sprintf("; a connection to its server was lost %v ago, and the server may have lost its tasks then", max(time.Since(at).Round(time.Second), time.Second))
		}
	}
	return &taskError{&told, err}
}

// taskError is a refusal with other words. It wraps the refusal, because that may be one of the policy.
type taskError struct {
	told    *mcp.Error
	refusal error
}

func (e *taskError) Error() string { return e.told.Error() }

func (e *taskError) Unwrap() []error { return []error{e.told, e.refusal} }

// naming returns a context in which tasks of an upstream get ids from the gateway, which also
// decide who may ask for them. The tool is that of a call.
func (g *Gateway) naming(ctx context.Context, up *upstream, tool string) context.Context {
	tag := up.tagOf(ctx)
	name := func(principal, id string) string { return node.Task(ctx, g.taskID(principal, up, tag, id)) }
	if g.Tasks == nil {
		return forward.WithTaskID(ctx, up.lasts(), name, nil)
	}
	return forward.WithTaskID(ctx, up.lasts(), name, func(principal, id string, state json.RawMessage) { g.keep(principal, name(principal, id), tool, state) })
}

// ofTask replaces the id of a task of an upstream by the gateway's.
func (g *Gateway) ofTask(ctx context.Context, up *upstream, task json.RawMessage) json.RawMessage {
	raw, _ := jsonx.Lookup(task, "taskId")
	own, err := jsonx.Unquote(raw)
	if err != nil {
		return task // without an id, nobody can ask for it
	}
	return jsonx.With(nil, task, "taskId", jsonx.AppendString(nil, node.Task(ctx, g.taskID(principalOf(ctx), up, up.tagOf(ctx), own))))
}

// taskID returns the gateway's id for a principal's task at an upstream. The argument tag
// identifies the connection.
func (g *Gateway) taskID(principal string, up *upstream, tag, own string) string {
	return url.PathEscape(up.name) + "/" + sealWith(g.keys(up)[0], principal, up, tag, own) + "/" + tag + "/" + own
}

// ownerOfTask returns the upstream of a task of the caller, the tag of its connection, and the
// upstream's own id. The upstream is nil if the caller has no such task.
func (g *Gateway) ownerOfTask(ctx context.Context, id string) (up *upstream, tag, own string) {
	up, seal, tag, own := g.partsOf(id)
	if up == nil || !g.sealed(seal, principalOf(ctx), up, tag, own) {
		return nil, "", ""
	}
	return up, tag, own
}

// partsOf takes an id apart, whose seal may be wrong. The upstream is nil if the gateway has none of that name.
func (g *Gateway) partsOf(id string) (up *upstream, seal, tag, own string) {
	_, id = node.OfTask(id)
	name, rest, _ := strings.Cut(id, "/")
	seal, rest, _ = strings.Cut(rest, "/")
	tag, own, ok := strings.Cut(rest, "/")
	for _, up := range g.upstreams() {
		if ok && url.PathEscape(up.name) == name {
			return up, seal, tag, own
		}
	}
	return nil, "", "", ""
}

// principalOf returns the principal of the caller, or "".
func principalOf(ctx context.Context) string {
	if call := mcp.CallFrom(ctx); call != nil {
		return call.Principal
	}
	return ""
}

// lasts reports whether the tasks of a server outlive this gateway, and others with the same TaskKeys find them.
func (up *upstream) lasts() bool {
	return up.pool != nil && up.pool.src.Remote && len(up.g.TaskKeys) > 0
}

// keys returns the keys of the seals of a server.
func (g *Gateway) keys(up *upstream) [][]byte {
	g.keyOnce.Do(func() {
		for _, key := range g.TaskKeys {
			h := hmac.New(sha256.New, key) // which may have another use too
			h.Write([]byte("patchbay: ids of tasks"))
			g.seals = append(g.seals, h.Sum(nil))
		}
		g.ownSeal = make([]byte, 32)
		rand.Read(g.ownSeal) // never fails
	})
	if up.lasts() {
		return g.seals
	}
	return [][]byte{g.ownSeal}
}

// sealed reports whether a seal ties a task of an upstream to a principal.
func (g *Gateway) sealed(seal, principal string, up *upstream, tag, own string) bool {
	return slices.ContainsFunc(g.keys(up), func(key []byte) bool {
		return hmac.Equal([]byte(seal), []byte(sealWith(key, principal, up, tag, own)))
	})
}

// sealWith ties a task of an upstream to a principal.
func sealWith(key []byte, principal string, up *upstream, tag, own string) string {
	h := hmac.New(sha256.New, key)
	for _, s := range []string{up.name, principal, tag, own} {
		h.Write(jsonx.AppendString(nil, s))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}
