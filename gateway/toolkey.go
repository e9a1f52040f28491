package gateway

import (
	"context"
	"weak"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// toolKey identifies a connection, the tools that its server lists, and the callers who are the same to it.
type toolKey struct {
	conn     weak.Pointer[conn]
	tools    uint64 // serial of the list
	version  listVersion
	audience audience
	can      string // the questions that the caller can answer
}

// ToolKey returns a key for the result of a call of a tool, by the names that a server has for itself and
// the tool, and whether the server lists the tool as read-only. Calls with equal keys reach the same
// connection, come from callers that the server cannot tell apart (one principal and credential, and
// equal HTTP headers), and no change of the tools was seen between them. The key is comparable. It is nil
// if the result must not be used for another call: the server is not connected, does not list the tool,
// or cannot announce changes. ToolKey asks no server.
func (g *Gateway) ToolKey(ctx context.Context, server, tool string, req *mcp.Request) (key any, readOnly bool) {
	for _, up := range g.upstreams() {
		if up.name == server && up.pool != nil {
			return up.toolKey(ctx, tool, req)
		}
	}
	return nil, false
}

func (up *upstream) toolKey(ctx context.Context, tool string, req *mcp.Request) (key any, readOnly bool) {
	who := clientOf(ctx)
	c := up.pool.listConn(who)
	if c == nil || c.lister == nil || up.pool.perClient() && up.pool.ofClient(who) == nil {
		return nil, false
	}
	views := up.views(who)
	for _, whose := range []client{views[0], views[1], {}} {
		l := up.cache.get(whose, listTools)
		if l == nil || !l.ids[tool] {
			continue
		}
		version, _ := c.version(listTools)
		return toolKey{weak.Make(c), l.serial, version, audienceOf(ctx, mcp.CallFrom(ctx), req).to(c), who.can}, l.hints(tool, "readOnlyHint")
	}
	return nil, false
}

// hints reports whether the server declares a tool to have a property, in the list that the caller was shown last.
func (up *upstream) hints(who client, tool, hint string) bool {
	views := up.views(who)
	for _, whose := range []client{views[0], views[1], {}} {
		if l := up.cache.get(whose, listTools); l != nil && l.ids[tool] {
			return l.hints(tool, hint)
		}
	}
	return false
}

// hints reports whether a tool of the list has an annotation that is true.
func (l *keptList) hints(tool, hint string) bool {
	for i := range l.entries {
		if l.entries[i].id == tool {
			value, _ := jsonx.LookupPath(l.entries[i].raw, "annotations", hint)
			return string(value) == "true"
		}
	}
	return false
}

// callerKey identifies the callers who are the same to a server.
type callerKey struct {
	audience audience
	can      string // the questions that the caller can answer
	owner    client // of the connection; zero: all callers share one
}

// CallerKey returns a key for the caller of a request, by the name of a server: callers with equal keys cannot be told apart by
// the server (one principal and credential, equal HTTP headers, client and capabilities), and use the same connection. The
// key is comparable. It is nil if there is no such server. CallerKey asks no server.
func (g *Gateway) CallerKey(ctx context.Context, server string, req *mcp.Request) any {
	for _, up := range g.upstreams() {
		if up.name != server || up.pool == nil {
			continue
		}
		who := clientOf(ctx)
		key := callerKey{audience: audienceOf(ctx, mcp.CallFrom(ctx), req), can: who.can}
		if up.pool.perClient() {
			key.owner = up.pool.ownerOf(who)
		}
		return key
	}
	return nil
}

// readKey identifies a connection, the list of resources of its server, and the callers who are the same to it.
type readKey struct {
	conn     weak.Pointer[conn]
	version  listVersion
	audience audience
	can      string // the questions that the caller can answer
}

// ReadKey returns a key for the contents of a resource, by the name that a server has for itself. Reads with equal
// keys reach the same connection, come from callers that the server cannot tell apart, and no change of the list of
// resources was seen between them. The key is comparable. It is nil if the contents must not be used for another
// read: the server is not connected, or is older than 2026-07-28 and so does not say how long they may be used.
// ReadKey asks no server.
func (g *Gateway) ReadKey(ctx context.Context, server string, req *mcp.Request) any {
	for _, up := range g.upstreams() {
		if up.name == server && up.pool != nil {
			return up.readKey(ctx, req)
		}
	}
	return nil
}

func (up *upstream) readKey(ctx context.Context, req *mcp.Request) any {
	who := clientOf(ctx)
	c := up.pool.listConn(who)
	if c == nil || c.lister == nil || !c.modern || up.pool.perClient() && up.pool.ofClient(who) == nil {
		return nil
	}
	version, _ := c.version(listResources)
	return readKey{weak.Make(c), version, audienceOf(ctx, mcp.CallFrom(ctx), req).to(c), who.can}
}
