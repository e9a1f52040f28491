package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Gateway routes requests to upstreams. The zero value with a Name has none and
// works; upstreams are added and removed at any time. It may be used by several
// goroutines.
type Gateway struct {
	Name, Version string

	// ID tells the gateway from others in what it forwards, so that a request that comes back is
	// refused (see [Relay]). Empty: a random one. Gateways that are one to the outside, such as
	// those of two listeners of a program, have one ID.
	ID string

	// ListTimeout bounds how long an upstream may take to list. A caller's list waits for a
	// server of Run for a second; what comes later is told to have changed. Zero: 10 seconds.
	ListTimeout time.Duration

	// Logger gets what callers do not see, such as an upstream that is missing
	// from a list. Nil: it is discarded.
	Logger *slog.Logger

	// Middleware returns what stands between the callers and a server, in the server's own
	// terms: names without a prefix, and lists before they are merged. It is called once for
	// each server that comes, and may be put around several handlers for it. What the
	// gateway asks for itself, to route, passes it by. Lists are encoded once for all who are
	// shown the same if the middleware is that of package policy, and else for each caller.
	// Nil: nothing.
	Middleware func(server string) mcp.Middleware

	// OnStatus is told what becomes of a server of Run, in order for one server. It may
	// use the gateway and must not block for long. Nil: nobody is told.
	OnStatus func(Status)

	mu      sync.Mutex
	ups     []*upstream   // by name; guarded by mu
	changes [3]int        // times that the lists of listChanges have changed; guarded by mu
	changed chan struct{} // closed at the next change of what is offered; guarded by mu

	catalogue catalogue

	losses losses   // of all servers: one may have come back by the time that a client is told
	rooted sync.Map // names of servers that ask for roots
	asking sync.Map // names of servers that ask questions that name no call

	idOnce sync.Once
	ownID  string

	keyOnce sync.Once
	taskKey []byte // of the ids of tasks
}

var _ mcp.Handler = (*Gateway)(nil)

// Set adds a handler that is always there as an upstream, in the place of the one of that
// name, if any. It fails if the name is empty.
func (g *Gateway) Set(name string, h mcp.Handler) error {
	if name == "" {
		return errors.New("a server needs a name")
	}
	up := newUpstream(g, name)
	up.fixed = &conn{h: h}
	g.put(context.Background(), up)
	return nil
}

// Remove takes a handler of Set away. Its calls in progress go on.
func (g *Gateway) Remove(name string) {
	for _, up := range g.upstreams() {
		if up.name == name && up.fixed != nil {
			g.takeOut(up)
		}
	}
}

// put adds an upstream, in the place of the one of that name, unless ctx has ended: who ended it
// may have put another there.
func (g *Gateway) put(ctx context.Context, up *upstream) {
	for _, old := range g.place(ctx, up) {
		if old.pool != nil {
			old.pool.replaced()
		}
	}
}

// place is put but for what it means to the clients of those that give way, which it returns.
func (g *Gateway) place(ctx context.Context, up *upstream) (gone []*upstream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	// Lists are read without the lock, so a change makes a new one.
	ups := slices.DeleteFunc(slices.Clone(g.ups), func(old *upstream) bool {
		if old.name != up.name {
			return false
		}
		gone = append(gone, old)
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

// takeOut takes an upstream away, unless another has its place.
func (g *Gateway) takeOut(up *upstream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.ups, up); i >= 0 {
		g.ups = slices.Delete(slices.Clone(g.ups), i, i+1)
		g.wake(up.lists())
	}
}

// announceOf tells the listeners that lists of an upstream have changed, unless that was told when
// it was taken out.
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

// Changed tells the callers who listen that lists may have changed, for instance because
// Middleware leaves something else of them.
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

// upstreams returns the upstreams there are now.
func (g *Gateway) upstreams() []*upstream {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ups
}

// watch returns the upstreams, how often each of listChanges has changed, and a channel that
// is closed when that is no longer so.
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

// Handle routes a request. It refuses one that the gateway has forwarded already: a server of
// it leads back to it.
func (g *Gateway) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if err := g.refuseLoop(req); err != nil {
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
	return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "the gateway has no method %q", bounded(req.Method))
}

// refuseLoop returns an error for a request that goes in circles. Without it a gateway that is a
// server of its own would list all of its servers again.
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

// id is ID, or a random one.
func (g *Gateway) id() string {
	g.idOnce.Do(func() {
		if g.ownID = g.ID; g.ownID == "" {
			g.ownID = hop.New()
		}
	})
	return g.ownID
}

// discover says what the gateway offers. It is the same whatever upstreams there
// are at the moment, since a legacy client learns it once and upstreams come and go.
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

// bounded cuts text of a peer for use in an error.
func bounded(s string) string { return text.Clip(s, 200) }
