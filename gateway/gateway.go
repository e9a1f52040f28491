package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/stack"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store"
)

// Gateway routes requests to upstreams. The zero value with a Name works and has none. Upstreams
// can be added and removed at any time. A Gateway may be used by several goroutines at once.
type Gateway struct {
	Name, Version string

	// ID identifies the gateway in requests that it forwards, so that it can refuse a request that
	// comes back (see [Relay]). Empty: a random ID. Gateways that appear as one, such as those of
	// two listeners of a program, need the same ID.
	ID string

	// TaskKeys seal the ids of tasks of servers with [Source.Remote], each to the principal that made its task: the first key seals,
	// all open. Gateways that appear as one need the same, of 32 random bytes each: one of them then answers for a task that another
	// one has begun, which may have ended. Nil: a random key. Set it before the first request.
	TaskKeys [][]byte

	// Tasks keeps tasks for an hour: the tools of all, and the states of those that end with this process, which are those of servers that it has
	// started and those that it makes itself for clients of 2025-11-25. Of gateways that appear as one and share it, one answers for such a task of another
	// one that has ended: with its result, or that its outcome is not known. Such a store has to say which tasks are at work elsewhere
	// ([store.Task.Elsewhere]), as that of a cluster.Node does. Nil: tasks end with their gateway. Set it before the first request.
	Tasks store.Tasks

	// Lock takes a server of class [Exclusive] for the one of its callers here that has it, so that of all gateways that appear as
	// one only one uses it. It waits until ctx ends; the error then wraps [ErrInUse] if another gateway has the server. If nil, no
	// other gateway uses the server.
	Lock func(ctx context.Context, server string) (Lock, error)

	// Owned is asked right before a request of a session goes to a server, each time that it is sent, but not for one that only reads. If
	// it returns an error, nothing is sent: of gateways that appear as one, another one may have the session by now. It is asked first with a
	// context that has ended, and then must not wait, also for requests without a session; after an error again, with that of the request. Own of a
	// cluster.Node is one. Nil: no other one can have it.
	Owned func(ctx context.Context) error

	// ListTimeout bounds how long an upstream may take to list. A caller's list waits a second for
	// a server of Run, or up to 3 seconds for its start; later answers are announced as a change.
	// Zero: 10 seconds.
	ListTimeout time.Duration

	// Logger receives what callers do not see, such as an upstream that is missing from a list.
	// If nil, it is discarded.
	Logger *slog.Logger

	// Middleware returns the middleware between the callers and a server. It sees the server's own
	// terms: names without a prefix, and lists before they are merged. It is called once for each
	// server that is added, and its result may wrap several handlers. Requests that the gateway
	// makes itself, to route, bypass it. With the middleware of package policy, a list is encoded
	// once for all callers who see the same entries, and lists bypass that of package metrics; with
	// any other, a list is encoded for each caller. Nil: none.
	//
	// Set it before the first Set or Run, and do not change it: the servers that were added before
	// would be reached without it. The gateway therefore refuses all requests after a change that
	// it sees, to nil, from nil or to another function in the source.
	Middleware func(server string) mcp.Middleware

	// OnStatus is called when the status of a server of Run changes, in order for each server. It
	// may use the gateway and must not block for long. If nil, changes are not reported.
	OnStatus func(Status)

	// OnWait is called at the end of a request that has waited for the start of its server, for a
	// place among the connections (see [Source.Queue]) or for its turn (see [Status.Asks]), and
	// OnClose when a connection to a server of Run has ended, with the times. If nil, nothing is
	// called.
	OnWait, OnClose func(server string, d time.Duration)

	mu      sync.Mutex
	ups     []*upstream   // by name; guarded by mu
	changes [3]int        // how many times each of listChanges has changed; guarded by mu
	changed chan struct{} // closed at the next change of what is offered; guarded by mu

	around atomic.Uintptr // wrapper of the first server, zero before it

	catalogue catalogue

	losses losses   // of all servers; a server may be back before its client learns of the loss
	rooted sync.Map // names of servers that ask for roots
	asking sync.Map // names of servers whose questions do not name a call

	idOnce sync.Once
	ownID  string

	keyOnce sync.Once
	seals   [][]byte // keys, made of TaskKeys
	begun   begunTasks
	ownSeal []byte // a key for the tasks that end with this gateway
}

var _ mcp.Handler = (*Gateway)(nil)

// Set adds a handler as an upstream that is always available, and replaces the upstream of the same
// name. It fails if the name is empty, the handler is nil, or Middleware was changed.
func (g *Gateway) Set(name string, h mcp.Handler) error {
	if name == "" {
		return errors.New("a server needs a name")
	}
	if v := reflect.ValueOf(h); !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
		return fmt.Errorf("server %q: the Handler is nil (%T); give a Server, a Session or a function", text.Short(name), h)
	}
	if err := g.unchanged(); err != nil {
		return err
	}
	up := newUpstream(g, name)
	up.fixed = &conn{h: h}
	g.put(context.Background(), up)
	return nil
}

// wrapper identifies Middleware, as far as functions can be compared: by their code. It is not zero.
func (g *Gateway) wrapper() uintptr {
	if g.Middleware == nil {
		return 1
	}
	return reflect.ValueOf(g.Middleware).Pointer()
}

// unchanged returns an error if Middleware has changed after a server was added.
func (g *Gateway) unchanged() error {
	if first := g.around.Load(); first == 0 || first == g.wrapper() {
		return nil
	}
	return mcp.Errorf(jsonrpc.CodeInternal, "Gateway.Middleware was changed after a server was added, and requests to that server would bypass it; set it before the first Set or Run")
}

// Remove removes a handler of Set. Its calls in progress continue.
func (g *Gateway) Remove(name string) {
	for _, up := range g.upstreams() {
		if up.name == name && up.fixed != nil {
			g.takeOut(up)
		}
	}
}

// put adds an upstream and replaces the one of the same name. It does nothing if ctx has ended,
// because a newer upstream may already have the name.
func (g *Gateway) put(ctx context.Context, up *upstream) {
	for _, old := range g.place(ctx, up) {
		if old.pool != nil {
			old.pool.replaced()
		}
	}
}

// place is put, except that it leaves the clients of the replaced upstreams alone. It returns those
// upstreams.
func (g *Gateway) place(ctx context.Context, up *upstream) (gone []*upstream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	// The slice is read without the lock, so a change makes a new one.
	ups := slices.DeleteFunc(slices.Clone(g.ups), func(old *upstream) bool {
		if old.name != up.name {
			return false
		}
		gone = append(gone, old)
		up.cache.inherit(&old.cache)
		if up.pool != nil && up.pool.src.Continues {
			old.next.Store(up)
		}
		return true
	})
	ups = append(ups, up)
	slices.SortFunc(ups, func(a, b *upstream) int { return strings.Compare(a.name, b.name) })
	g.ups = ups
	set := up.lists()
	for _, old := range gone {
		set |= old.lists()
	}
	g.wake(set)
	return gone
}

// takeOut removes an upstream, unless it was replaced.
func (g *Gateway) takeOut(up *upstream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.ups, up); i >= 0 {
		g.ups = slices.Delete(slices.Clone(g.ups), i, i+1)
		g.wake(up.lists())
	}
}

// announceOf announces that lists of an upstream have changed, unless the upstream was removed,
// because the removal was announced.
func (g *Gateway) announceOf(up *upstream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(g.ups, up) {
		g.wake(up.lists())
	}
}

// changeSet is a set of lists, a bit for each of listChanges.
type changeSet int

const changedAll changeSet = 1<<len(listChanges) - 1

// Changed announces to listening callers that lists may have changed, for instance because
// Middleware now filters them differently.
func (g *Gateway) Changed() { g.announce(changedAll) }

// announce tells the listeners that lists have changed.
func (g *Gateway) announce(set changeSet) {
	if set == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wake(set)
}

// wake wakes the listeners; mu is held.
func (g *Gateway) wake(set changeSet) {
	for i := range g.changes {
		if set&(1<<i) != 0 {
			g.changes[i]++
		}
	}
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// upstreams returns the current upstreams.
func (g *Gateway) upstreams() []*upstream {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ups
}

// watch returns the upstreams, how many times each of listChanges has changed, and a channel that
// is closed at the next change.
func (g *Gateway) watch() ([]*upstream, [3]int, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.ups, g.changes, g.changed
}

func (g *Gateway) log() *slog.Logger {
	if g.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return g.Logger
}

func (g *Gateway) listTimeout() time.Duration {
	if g.ListTimeout == 0 {
		return 10 * time.Second
	}
	return g.ListTimeout
}

// Handle routes a request. It refuses a request that this gateway has already forwarded, because
// then one of its servers leads back to it.
func (g *Gateway) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	stack.Grow()
	if err := g.accepts(req); err != nil {
		return nil, err
	}
	switch req.Method {
	case "server/discover":
		return g.discover(ctx), nil
	case listTools.Method:
		return g.list(ctx, req, listTools)
	case listPrompts.Method:
		return g.list(ctx, req, listPrompts)
	case listResources.Method:
		return g.list(ctx, req, listResources)
	case listTemplates.Method:
		return g.list(ctx, req, listTemplates)
	case "tools/call":
		return g.byName(ctx, req, listTools)
	case "prompts/get":
		return g.byName(ctx, req, listPrompts)
	case "resources/read":
		return g.byURI(ctx, req)
	case "completion/complete":
		return g.complete(ctx, req)
	case "subscriptions/listen":
		return g.listen(ctx, req)
	case "tasks/get", "tasks/update", "tasks/cancel":
		return g.task(ctx, req)
	case "tasks/list":
		return g.tasks(ctx)
	case "notifications/roots/list_changed":
		ups := g.upstreams()
		g.atOnce(ctx, req.Method, indexes(ups), func(i int) { ups[i].rootsChanged(ctx, req) })
		return mcp.RawResult(`{}`), nil
	}
	return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "the gateway has no method %q", text.Short(req.Method))
}

// accepts returns an error for a request that no server may get.
func (g *Gateway) accepts(req *mcp.Request) error {
	if err := g.unchanged(); err != nil {
		return err
	}
	return g.refuseLoop(req)
}

// refuseLoop returns an error for a request that runs in a circle. Without it, a gateway that is
// its own server would list its servers without end.
func (g *Gateway) refuseLoop(req *mcp.Request) error {
	hops, _ := jsonx.Lookup(req.Param("_meta"), hop.Meta)
	if len(hops) == 0 {
		return nil
	}
	if err := hop.Check(hops, g.id()); err != nil {
		return mcp.Errorf(jsonrpc.CodeInternal, "%v", err)
	}
	return nil
}

// id returns ID, or a random one.
func (g *Gateway) id() string {
	g.idOnce.Do(func() {
		if g.ownID = g.ID; g.ownID == "" {
			g.ownID = hop.New()
		}
	})
	return g.ownID
}

// discover returns what the gateway offers. The capabilities of the protocol itself are always the
// same, because a legacy client reads them only once and upstreams come and go. The tasks extension
// and the instructions are those of the upstreams that answer now.
func (g *Gateway) discover(ctx context.Context) *mcp.ServerInfo {
	info := &mcp.ServerInfo{
		Implementation: mcp.Implementation{Name: g.Name, Version: g.Version},
		Capabilities: mcp.Capabilities{
			"tools":       json.RawMessage(`{"listChanged":true}`),
			"prompts":     json.RawMessage(`{"listChanged":true}`),
			"resources":   json.RawMessage(`{"listChanged":true,"subscribe":true}`),
			"completions": json.RawMessage(`{}`),
			"logging":     json.RawMessage(`{}`),
		},
		Revisions: mcp.Revisions(),
	}
	ups := g.upstreams()
	said := make([]json.RawMessage, len(ups))
	g.atOnce(ctx, "server/discover", indexes(ups), func(i int) { said[i] = ups[i].discover(ctx) })
	var parts []string
	for i, up := range ups {
		if _, ok := jsonx.LookupPath(said[i], "capabilities", "extensions", extTasks); ok {
			info.Capabilities["extensions"] = json.RawMessage(`{"` + extTasks + `":{}}`)
		}
		raw, _ := jsonx.Lookup(said[i], "instructions")
		if text, err := jsonx.Unquote(raw); err == nil && text != "" {
			parts = append(parts, fmt.Sprintf("# %s (tools and prompts named %s…)\n\n%s", up.name, up.prefix, text))
		}
	}
	info.Instructions = strings.Join(parts, "\n\n")
	return info
}
