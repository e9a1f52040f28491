package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Extension identifies the extension in the capabilities of both sides.
const Extension = "io.modelcontextprotocol/ui"

// MIMEType is that of views.
const MIMEType = "text/html;profile=mcp-app"

// metaKey is the extension's member of _meta; oldMetaKey is the deprecated one for a tool's view.
const (
	metaKey    = "ui"
	oldMetaKey = "ui/resourceUri"
)

// Apps holds the views of a server and the tools that use them. It is safe for concurrent use.
type Apps struct {
	srv *mcp.Server

	mu    sync.RWMutex
	views map[string]bool // by URI; guarded by mu
	links map[string]Link // by name of the tool; guarded by mu
}

// Enable declares the extension on a server. It must be called once, before the server
// serves; views and tools can be added at any time.
func Enable(s *mcp.Server) *Apps {
	a := &Apps{srv: s, views: map[string]bool{}, links: map[string]Link{}}
	if s.Extensions == nil {
		s.Extensions = map[string]json.RawMessage{}
	}
	s.Extensions[Extension] = json.RawMessage(`{}`)
	s.Use(a.negotiate)
	return a
}

// Settings returns the extension's settings for a client that renders views.
//
// Specification: extensions/apps, Client<>Server Capability Negotiation.
func Settings() json.RawMessage { return json.RawMessage(`{"mimeTypes":["` + MIMEType + `"]}`) }

// CanRender reports whether the caller of a handler's context declared that it renders views.
// Callers that speak a revision before 2025-06-18 cannot, because their tools have no _meta.
func CanRender(ctx context.Context) bool {
	call := mcp.CallFrom(ctx)
	if call == nil || call.Revision < mcp.V2025_06_18 {
		return false
	}
	raw, _ := jsonx.LookupPath(call.Capabilities["extensions"], Extension, "mimeTypes")
	for e := range jsonx.Elements(raw) {
		if text, err := jsonx.Unquote(e); err == nil && text == MIMEType {
			return true
		}
	}
	return false
}

// Audience is a group that may see and call a tool.
type Audience string

// The audiences of tools.
const (
	Model Audience = "model" // the model that the host runs
	App   Audience = "app"   // views of the same server
)

// Link connects a tool to a view.
type Link struct {
	// ResourceURI is the URI of the view that shows the tool's results. Empty means none.
	ResourceURI string `json:"resourceUri,omitempty"`

	// Visibility lists the audiences that may see and call the tool. Nil means the model and
	// views.
	Visibility []Audience `json:"visibility,omitempty"`
}

// For reports whether a tool is for an audience. A host gives a model only the tools for [Model],
// and refuses a view's calls of tools that are not for [App] or belong to another server.
func (l Link) For(a Audience) bool { return l.Visibility == nil || slices.Contains(l.Visibility, a) }

// LinkOf returns the link of a listed tool, the zero Link if it has none. An invalid link is an
// error, and the Link returned is for no audience.
func LinkOf(t *mcp.Tool) (Link, error) {
	var l Link
	if raw, ok := t.Meta[oldMetaKey]; ok {
		l.ResourceURI, _ = jsonx.Unquote(raw)
	}
	if raw, ok := t.Meta[metaKey]; ok {
		if err := jsonx.Unmarshal(raw, &l); err != nil {
			return Link{Visibility: []Audience{}}, fmt.Errorf("tool %q: _meta.ui: %w", t.Name, err)
		}
	}
	if l.ResourceURI != "" {
		if err := checkURI(l.ResourceURI); err != nil {
			return Link{Visibility: []Audience{}}, fmt.Errorf("tool %q: _meta.ui: resourceUri %q: %w", t.Name, l.ResourceURI, err)
		}
	}
	return l, nil
}

// NeedsOf returns the requirements of a view that was read, checked like those of a server's own
// views.
func NeedsOf(c mcp.ResourceContents) (Needs, error) {
	var n Needs
	if raw, ok := c.Meta[metaKey]; ok {
		if err := jsonx.Unmarshal(raw, &n); err != nil {
			return Needs{}, fmt.Errorf("view %q: _meta.ui: %w", c.URI, err)
		}
	}
	if err := n.check(); err != nil {
		return Needs{}, fmt.Errorf("view %q: %w", c.URI, err)
	}
	return n, nil
}

// AddTool adds a tool as [mcp.AddTool] does, and connects it to a view. Its result must have
// content that can be read without the view: a result without content is an internal error,
// unless it is structured; then its JSON becomes its text.
//
// AddTool panics where mcp.AddTool does, and if the link names a view that was not added or
// an audience that does not exist.
func AddTool[In, Out any](a *Apps, t mcp.Tool, l Link, h func(context.Context, In) (Out, error)) {
	meta, err := a.link(t, l)
	if err != nil {
		panic(fmt.Errorf("apps: AddTool %q: %w", t.Name, err))
	}
	t.Meta = meta
	a.keep(t.Name, l)
	mcp.AddTool(a.srv, t, h)
}

// HandleTool adds an untyped tool as [mcp.Server.HandleTool] does, and connects it to a view.
func (a *Apps) HandleTool(t mcp.Tool, l Link, h func(ctx context.Context, args json.RawMessage) (*mcp.ToolResult, error)) error {
	meta, err := a.link(t, l)
	if err != nil {
		return fmt.Errorf("apps: HandleTool %q: %w", t.Name, err)
	}
	t.Meta = meta
	a.keep(t.Name, l)
	return a.srv.HandleTool(t, h)
}

// link checks a link and returns the _meta of its tool.
func (a *Apps) link(t mcp.Tool, l Link) (mcp.Meta, error) {
	if l.ResourceURI != "" {
		a.mu.RLock()
		ok := a.views[l.ResourceURI]
		a.mu.RUnlock()
		if !ok {
			return nil, fmt.Errorf("no view %q: add it before the tool", l.ResourceURI)
		}
	}
	if l.Visibility != nil && len(l.Visibility) == 0 {
		return nil, errors.New("the tool is visible to no one: leave Visibility nil for the model and views")
	}
	for _, who := range l.Visibility {
		if who != Model && who != App {
			return nil, fmt.Errorf("unknown audience %q: use Model or App", who)
		}
	}
	meta := mcp.Meta{metaKey: encode(l)}
	for name, v := range t.Meta {
		if name == metaKey || name == oldMetaKey {
			return nil, fmt.Errorf("_meta.%s of the tool is set by the link", name)
		}
		meta[name] = v
	}
	return meta, nil
}

func (a *Apps) keep(tool string, l Link) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.links[tool] = l
}

// linkOf returns the link of a tool of the server.
func (a *Apps) linkOf(tool string) (Link, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	l, ok := a.links[tool]
	return l, ok
}

// negotiate is the middleware that lists only the tools and links that a caller can use, and
// refuses calls to other tools.
func (a *Apps) negotiate(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case "tools/list":
			res, err := next.Handle(ctx, req)
			if list, ok := res.(*mcp.List[mcp.Tool]); ok && err == nil && !CanRender(ctx) {
				return a.plain(list), nil
			}
			return res, err
		case "tools/call":
			name, _ := jsonx.Unquote(req.Param("name"))
			l, ok := a.linkOf(name)
			if !ok {
				break
			}
			if !l.For(Model) && !CanRender(ctx) {
				return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "no tool %q for a client that does not render views", name)
			}
			res, err := next.Handle(ctx, req)
			if out, ok := res.(*mcp.ToolResult); ok && err == nil {
				return readable(name, out)
			}
			return res, err
		}
		return next.Handle(ctx, req)
	})
}

// plain returns a list of tools for a caller that does not render views: without the tools only
// for views, and without the links of the others.
func (a *Apps) plain(list *mcp.List[mcp.Tool]) *mcp.List[mcp.Tool] {
	out := &mcp.List[mcp.Tool]{Items: make([]*mcp.Tool, 0, len(list.Items)), NextCursor: list.NextCursor, Meta: list.Meta}
	for _, t := range list.Items {
		l, ok := a.linkOf(t.Name)
		if !ok {
			out.Items = append(out.Items, t)
			continue
		}
		if !l.For(Model) {
			continue
		}
		bare := *t
		bare.Meta = nil
		for name, v := range t.Meta {
			if name == metaKey {
				continue
			}
			if bare.Meta == nil {
				bare.Meta = mcp.Meta{}
			}
			bare.Meta[name] = v
		}
		out.Items = append(out.Items, &bare)
	}
	return out
}

// readable returns a result with content that can be read without the view.
func readable(tool string, res *mcp.ToolResult) (mcp.Result, error) {
	if len(res.Content) > 0 {
		return res, nil
	}
	if res.Structured == nil {
		return nil, fmt.Errorf("tool %q returned no content: a tool with a view must also return text", tool)
	}
	out := *res
	out.Content = []mcp.Content{mcp.Text(string(res.Structured))}
	return &out, nil
}
