package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Gateway routes requests to upstreams. The zero value with a Name has none and
// works; upstreams are added and removed at any time. It may be used by several
// goroutines.
type Gateway struct {
	Name, Version string

	// ListTimeout bounds how long a list waits for one upstream. Zero: 10 seconds.
	ListTimeout time.Duration

	// Logger gets what callers do not see, such as an upstream that is missing
	// from a list. Nil: it is discarded.
	Logger *slog.Logger

	mu      sync.Mutex
	ups     []*upstream   // in the order they were added; guarded by mu
	changed chan struct{} // closed at the next change of ups; guarded by mu

	keyOnce sync.Once
	taskKey []byte // of the ids of tasks
}

var _ mcp.Handler = (*Gateway)(nil)

// upstream is one server behind the gateway.
type upstream struct {
	name    string
	prefix  string
	handler mcp.Handler
}

// Set adds an upstream, or puts another handler in the place of the one of that
// name. It fails if the name leaves nothing for a prefix, or the prefix is that of
// another upstream.
func (g *Gateway) Set(name string, h mcp.Handler) error {
	up := &upstream{name, prefixOf(name), h}
	if up.prefix == "_" {
		return fmt.Errorf("server name %q has no letter or digit; rename it", name)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Lists are read without the lock, so a change makes a new one.
	ups := make([]*upstream, 0, len(g.ups)+1)
	replaced := false
	for _, old := range g.ups {
		switch {
		case old.name == name:
			old, replaced = up, true
		case old.prefix == up.prefix:
			return fmt.Errorf("servers %q and %q would both name their tools %s…; rename one", old.name, name, up.prefix)
		}
		ups = append(ups, old)
	}
	if !replaced {
		ups = append(ups, up)
	}
	g.ups = ups
	g.announce()
	return nil
}

// Remove takes an upstream away. Its calls in progress go on.
func (g *Gateway) Remove(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ups []*upstream
	for _, old := range g.ups {
		if old.name != name {
			ups = append(ups, old)
		}
	}
	if len(ups) != len(g.ups) {
		g.ups = ups
		g.announce()
	}
}

// announce wakes the listeners; mu is held.
func (g *Gateway) announce() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// upstreams returns the upstreams and a channel that is closed when they change.
func (g *Gateway) upstreams() ([]*upstream, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.ups, g.changed
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

// prefixOf is what the names of a server's tools and prompts start with. Characters
// that tool names may not have become hyphens.
func prefixOf(server string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '-'
	}, server)
	return strings.Trim(clean, "-._") + "_"
}

// Handle routes a request.
func (g *Gateway) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case "server/discover":
		return g.discover(ctx), nil
	case "tools/list":
		return g.list(ctx, req.Method, "tools", "name")
	case "prompts/list":
		return g.list(ctx, req.Method, "prompts", "name")
	case "resources/list":
		return g.list(ctx, req.Method, "resources", "uri")
	case "resources/templates/list":
		return g.list(ctx, req.Method, "resourceTemplates", "uriTemplate")
	case "tools/call", "prompts/get":
		return g.byName(ctx, req)
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
	}
	return nil, mcp.Errorf(mcp.CodeMethodNotFound, "the gateway has no method %q", bounded(req.Method))
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
	ups, _ := g.upstreams()
	var parts []string
	for _, up := range ups {
		res, err := up.handler.Handle(ctx, &mcp.Request{Method: "server/discover"})
		if err != nil {
			continue
		}
		own := mcp.ResultJSON(res)
		if _, ok := jsonx.LookupPath(own, "capabilities", "extensions", extTasks); ok {
			info.Capabilities["extensions"] = json.RawMessage(`{"` + extTasks + `":{}}`)
		}
		raw, _ := jsonx.Lookup(own, "instructions")
		if text, err := jsonx.Unquote(raw); err == nil && text != "" {
			parts = append(parts, fmt.Sprintf("# %s (tools and prompts named %s…)\n\n%s", up.name, up.prefix, text))
		}
	}
	info.Instructions = strings.Join(parts, "\n\n")
	return info
}

// bounded cuts text of a peer for use in an error.
func bounded(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
