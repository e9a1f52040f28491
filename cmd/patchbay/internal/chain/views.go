package chain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway/view"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/principal"
	steps "github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// condition returns the condition of a view on its callers, written as in the rules of a policy.
func condition(text string) (func(ctx context.Context) bool, error) {
	if text == "" {
		return nil, nil
	}
	file, err := json.Marshal(map[string]any{"rules": []map[string]string{{"name": "for", "when": text, "effect": "allow"}}})
	if err != nil {
		return nil, err
	}
	set, err := rules.Parse("for", file)
	var faults rules.Problems
	if errors.As(err, &faults) && len(faults) > 0 {
		return nil, errors.New(faults[0].Text)
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) bool {
		p := auth.From(ctx)
		if id := principal.From(ctx); p == nil && id != "" {
			p = &auth.Principal{ID: id}
		}
		return set.Decide(ctx, &policy.Access{Principal: p, Method: "server/discover", Kind: "method", Name: "server/discover"}).Allow
	}, nil
}

// viewOf makes a view of the file.
func viewOf(v *deploy.View, p *Program) (*view.View, error) {
	admitted, err := condition(v.For)
	if err != nil {
		return nil, fmt.Errorf("for: %w", err)
	}
	out := &view.View{Name: v.Name, For: admitted, Tools: v.Tools, Prompts: v.Prompts, Resources: v.Resources, Instructions: v.Instructions, Logger: p.Logger}
	if len(v.Changes) > 0 {
		out.Changes = map[string]middleware.ToolChange{}
	}
	for _, c := range v.Changes {
		out.Changes[c.Tool] = middleware.ToolChange{Hidden: c.Hidden, Name: c.Name, Title: c.Title, Description: c.Description, Arguments: c.Arguments}
	}
	if len(v.PromptChanges) > 0 {
		out.PromptChanges = map[string]middleware.PromptChange{}
	}
	for _, c := range v.PromptChanges {
		out.PromptChanges[c.Prompt] = middleware.PromptChange{Hidden: c.Hidden, Name: c.Name, Title: c.Title, Description: c.Description, Arguments: c.Arguments}
	}
	if len(v.ResourceChanges) > 0 {
		out.ResourceChanges = map[string]middleware.ResourceChange{}
	}
	for _, c := range v.ResourceChanges {
		out.ResourceChanges[c.URI] = middleware.ResourceChange{Name: c.Name, Title: c.Title, Description: c.Description}
	}
	if v.Search {
		out.Search = &view.Search{Budget: int(v.Budget)}
	}
	return out, out.Check()
}

// Gateway is what views are made of: a gateway.Gateway.
type Gateway interface {
	mcp.Handler
	Direct(server string) mcp.Handler
	Has(server string) bool
	Owner(name string) (server, feature string)
	Unlisted(server, tool string) bool
	Kept(method string) mcp.Result
	ToolKey(ctx context.Context, server, tool string, req *mcp.Request) (key any, readOnly bool)
	CallerKey(ctx context.Context, server string, req *mcp.Request) any
	ReadKey(ctx context.Context, server string, req *mcp.Request) any
	Changed()
}

// Views serves the views of gateway.yaml, and single servers, below the endpoint of a gateway: VIEW at
// /mcp/v/VIEW and SERVER, without the prefix of its name, at /mcp/s/SERVER. With views in the file only
// those are served, and the one named [deploy.AllView] at the endpoint itself; single servers too if that
// view has everything, for the same callers. Limits of tools are behind the views and count calls under
// the names that the gateway has, however a view calls them.
type Views struct {
	chain   *Chain
	gateway Gateway
	limited mcp.Handler // the gateway, behind the limits of tools
	name    func(server, feature string) string
	front   func(path string, h mcp.Handler) *mcp.Server // makes the server of a path

	alone   string // the view of Alone; empty: none
	sizes   sizes
	told    told
	now     atomic.Pointer[viewSet]
	mu      sync.Mutex
	servers map[string]*mcp.Server // by path; guarded by mu
}

// viewSet is the views of one reading of the file.
type viewSet struct {
	of    *deploy.File // nil: there is none
	file  []deploy.View
	views map[string]*served // by name; nil: the file has none, and everything is served
	forms []mcp.Handler      // of the views of file
	all   *view.View         // for single servers; nil: they are not served
}

// served is what serves a view of the file.
type served struct {
	of      deploy.View
	view    *view.View
	handler mcp.Handler
	form    mcp.Handler // the view for everybody, with the lists of Gateway.Kept alone
}

// Views makes what is served at the endpoint of a gateway and below; it is called before Front. The
// function name gives the gateway's name of a feature of a server, and front makes the server of each
// path below the endpoint; the middlewares in front are added to it.
func (c *Chain) Views(gw Gateway, name func(server, feature string) string, front func(path string, h mcp.Handler) *mcp.Server) *Views {
	if c.limits != nil {
		c.limits.split()
	}
	v := &Views{chain: c, gateway: gw, limited: c.limitTools(gw), name: name, front: front, servers: map[string]*mcp.Server{}}
	c.views = v
	v.set(c.config.File)
	return v
}

// limitTools puts the limits of tools in front of a handler.
func (c *Chain) limitTools(h mcp.Handler) mcp.Handler {
	if c.limits == nil {
		return h
	}
	return c.limits.limitTools(h)
}

// set serves the views of a file from the next request on. A view that is as before goes on, and one that has
// changed remembers what was before, as [view.Memory] says.
func (v *Views) set(f *deploy.File) {
	before := v.now.Load()
	if before == nil {
		before = new(viewSet)
	}
	next := &viewSet{all: &view.View{Name: deploy.AllView}}
	if f != nil && f.Views != nil {
		next = &viewSet{of: f, file: f.Views, views: map[string]*served{}}
		for i := range f.Views {
			one := v.serve(&f.Views[i], before.views[f.Views[i].Name])
			if one == nil { // it was checked when the file was read
				continue
			}
			next.views[one.view.Name] = one
			next.forms = append(next.forms, one.form)
			if one.of.Everything() && !one.of.Search && one.view.Name == deploy.AllView && !one.of.Changed() {
				next.all = one.view
			}
		}
	}
	for name, last := range before.views {
		if next.views[name] == nil { // for its open subscriptions
			end := &view.View{Name: name, Memory: last.view.Memory}
			if next.views != nil || name != deploy.AllView {
				end.Tools = []string{}
			}
			end.Middleware()
		}
	}
	if before := v.now.Swap(next); before != nil && !reflect.DeepEqual(before.file, next.file) {
		v.gateway.Changed()
	}
}

// serve returns what serves a view in the place of last, which may be nil.
func (v *Views) serve(of *deploy.View, last *served) *served {
	if last != nil && reflect.DeepEqual(last.of, *of) {
		return last
	}
	made, err := viewOf(of, &v.chain.program)
	if err != nil {
		return nil
	}
	if made.Memory = new(view.Memory); last != nil {
		made.Memory = last.view.Memory
	}
	return &served{of: *of, view: made, handler: made.Middleware()(v.limited), form: v.form(made)}
}

// All is the handler of the endpoint itself.
func (v *Views) All() mcp.Handler { return v.handler(deploy.AllView) }

// Alone returns the handler for callers over stdio: that of a view or, if name is empty, of the one that is
// at the endpoint itself. Its errors are each an [*Error]. It is called before the first report.
func (v *Views) Alone(name string) (mcp.Handler, error) {
	now := v.now.Load()
	if now.views == nil {
		if name != "" {
			return nil, usage("write views: {"+name+": {}} into the file of --gateway", "--view %s: there are no views", name)
		}
		return v.All(), nil
	}
	v.alone = cmp.Or(name, deploy.AllView)
	var names []string
	var found *deploy.View
	for i := range now.file {
		if names = append(names, now.file[i].Name); now.file[i].Name == v.alone {
			found = &now.file[i]
		}
	}
	switch {
	case found == nil && name == "":
		return nil, usage("--view NAME, one of "+strings.Join(names, ", "), "%s has views and none of them is %s, which is served over stdio without --view", now.of.Path, deploy.AllView)
	case found == nil:
		return nil, usage("--view NAME, one of "+strings.Join(names, ", "), "%s has no view %q", now.of.Path, name)
	}
	if admitted, err := condition(found.For); err == nil && admitted != nil && !admitted(context.Background()) {
		at := "views." + found.Name + ".for"
		return nil, &Error{errors.New(now.of.Problem(at, at+" refuses callers over stdio, who have no principal", "").String()), "remove it, or choose another view with --view", true}
	}
	return v.handler(v.alone), nil
}

// URL returns the URL to give to hosts: that of the endpoint, or of the first view if nothing is served
// there.
func (v *Views) URL(endpoint string) string {
	now := v.now.Load()
	if now.views == nil || now.views[deploy.AllView] != nil || len(now.file) == 0 {
		return endpoint
	}
	return endpoint + "/v/" + now.file[0].Name
}

// Notes returns a line for people about each view.
func (v *Views) Notes(endpoint string) (lines []string) {
	for _, one := range v.now.Load().file {
		if one.Name != deploy.AllView {
			lines = append(lines, "view "+one.Name+": "+endpoint+"/v/"+one.Name)
		}
	}
	return lines
}

// Names returns the names of the views, in the order of the file, without the one that is at the endpoint itself.
func (v *Views) Names() (names []string) {
	for _, one := range v.now.Load().file {
		if one.Name != deploy.AllView {
			names = append(names, one.Name)
		}
	}
	return names
}

// handler returns the handler of a view, whatever the file says of it at each request.
func (v *Views) handler(name string) mcp.Handler {
	return forwarding(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		now := v.now.Load()
		if now.views == nil && name == deploy.AllView {
			return v.limited.Handle(ctx, req)
		}
		if one := now.views[name]; one != nil {
			if !strings.HasSuffix(req.Method, "/list") {
				return one.handler.Handle(ctx, req)
			}
			res, err := one.handler.Handle(steps.Quiet(ctx), req) // Warn says it with its place in the file
			v.Warn()
			return res, err
		}
		return nil, mcp.Errorf(jsonrpc.CodeInvalidRequest, "this server has no view %q; ask its operator for the URL", name)
	})
}

// forwarding is a handler whose results come from servers, which were checked when they arrived. A [mcp.HandlerFunc] would
// have each of them checked once more.
type forwarding func(ctx context.Context, req *mcp.Request) (mcp.Result, error)

func (f forwarding) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	return f(ctx, req)
}

// single returns the handler of one server. Limits see the names that the gateway has.
func (v *Views) single(name string) mcp.Handler {
	server := v.gateway.Direct(name)
	return forwarding(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		all := v.now.Load().all
		if all == nil {
			return nil, mcp.Errorf(jsonrpc.CodeInvalidRequest, "this server does not offer %q alone; ask its operator for the URL", name)
		}
		if err := all.Admit(ctx); err != nil {
			return nil, err
		}
		counted := req
		if own, err := jsonx.Unquote(req.Param("name")); err == nil && (req.Method == "tools/call" || req.Method == "prompts/get") {
			counted = &mcp.Request{Method: req.Method, Params: jsonx.With(nil, req.Params, "name", jsonx.AppendString(nil, v.name(name, own)))}
		}
		return v.chain.limitTools(mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			return server.Handle(ctx, req)
		})).Handle(ctx, counted)
	})
}

// Below returns the server of a path below the endpoint, such as "v/support" and "s/jira"; nil: there is
// none.
func (v *Views) Below(path string) *mcp.Server {
	kind, name, _ := strings.Cut(path, "/")
	now := v.now.Load()
	var h mcp.Handler
	switch {
	case kind == "v" && now.views[name] != nil:
		h = v.handler(name)
	case kind == "s" && now.all != nil && v.gateway.Has(name):
		h = v.single(name)
	default:
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.servers[path] == nil {
		srv := v.front(path, h)
		srv.Use(v.chain.front...)
		v.servers[path] = srv
	}
	return v.servers[path]
}
