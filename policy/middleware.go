package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Middleware returns a middleware that passes on the requests that a policy allows: for the Use of
// an mcp.Server, or the Middleware of a gateway. The argument server is the name of the handler in
// the policy. Refusals of requests are logged at Info, and policies that fail at Warn; log may be
// nil.
//
// Annotations, such as that a tool is read-only, are trusted only for the program's own tools: in
// the Use of a server with a Handler, directly in front of an [mcp.Session], and as the
// Middleware of a gateway, the policy sees none. Use [Foreign] to override this, and for handlers
// behind other middleware.
//
// One Middleware may wrap several handlers if they are connections to one server. Middleware panics if
// the policy is nil.
func Middleware(server string, p Policy, log *slog.Logger) mcp.Middleware {
	return newGate(server, p, log).middleware
}

// Foreign is [Middleware] for a server that is not part of the program. The policy sees the
// server's annotations only if trusted is set.
func Foreign(server string, trusted bool, p Policy, log *slog.Logger) mcp.Middleware {
	g := newGate(server, p, log)
	g.trusted = &trusted
	return g.middleware
}

// gate is the policy in front of one server.
type gate struct {
	server  string
	policy  Policy
	decided []func(allow bool, rule string) // of Observe
	log     *slog.Logger
	trusted *bool       // nil: the annotations are trusted unless the server is foreign
	foreign atomic.Bool // the server is not part of the program
	known   known
	chosen  chosen
	tasks   taskTools
}

func newGate(server string, p Policy, log *slog.Logger) *gate {
	g := &gate{server: server}
	for o, ok := p.(*observed); ok; o, ok = p.(*observed) {
		g.decided = append(g.decided, o.decided)
		p = o.Policy
	}
	if v := reflect.ValueOf(p); !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
		panic(fmt.Errorf("policy: the Policy of server %q is nil (%T); give one, such as new(policy.Require)", server, p))
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if r, ok := p.(*Require); ok {
		r.unlisted.join()
	}
	g.policy, g.log = p, log
	return g
}

func (g *gate) middleware(next mcp.Handler) mcp.Handler {
	switch h := next.(type) {
	case *mcp.Session:
		g.foreign.Store(true)
	case interface{ Foreign() bool }: // a step of mcp.Server.Use, or of a gateway
		if h.Foreign() {
			g.foreign.Store(true)
		}
	}
	return &guarded{g, next}
}

// guarded is a handler behind a gate.
type guarded struct {
	gate *gate
	next mcp.Handler
}

// Handle passes on the requests that the policy allows.
func (h *guarded) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	return h.gate.handle(ctx, req, h.next)
}

// believed returns find, or a function that finds none if annotations are not trusted.
func (g *gate) believed(find func() *Annotations) func() *Annotations {
	trusted := !g.foreign.Load()
	if g.trusted != nil {
		trusted = *g.trusted
	}
	if !trusted {
		return func() *Annotations { return nil }
	}
	return find
}

func (g *gate) handle(ctx context.Context, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	switch req.Method {
	case "server/discover", "ping", "logging/setLevel":
		return next.Handle(ctx, req)
	case "tools/call":
		return g.named(ctx, req, next, mcp.KindTool)
	case "prompts/get":
		return g.named(ctx, req, next, mcp.KindPrompt)
	case "resources/read":
		return g.read(ctx, req, next)
	case "completion/complete":
		return g.complete(ctx, req, next)
	case "subscriptions/listen":
		return g.listen(ctx, req, next)
	case "tasks/get", "tasks/update", "tasks/cancel":
		return g.task(ctx, req, next)
	case "tasks/list":
		return g.taskList(ctx, req, next)
	}
	if l := listOf(req.Method); l != nil {
		return g.list(ctx, req, next, l)
	}
	if strings.HasPrefix(req.Method, "notifications/") {
		return next.Handle(ctx, req)
	}
	a := g.access(ctx, req.Method)
	a.Name, a.Arguments = req.Method, req.Params
	if err := g.admit(ctx, a); err != nil {
		return nil, err
	}
	return next.Handle(ctx, req)
}

// callerOf returns the principal that sessions and tasks belong to, with the scopes and roles of
// a Guard. A principal from another source, such as mcp.HTTPConfig.Principal, has only its ID.
func callerOf(ctx context.Context) *auth.Principal {
	p, id := auth.From(ctx), principal.From(ctx)
	switch {
	case id == "", p != nil && p.ID == id:
		return p
	case p == nil:
		return &auth.Principal{ID: id}
	}
	own := *p
	own.ID = id
	return &own
}

// access begins an Access.
func (g *gate) access(ctx context.Context, method string) *Access {
	return &Access{
		Principal: callerOf(ctx), Server: g.server, Method: method,
		Client: func() mcp.Implementation {
			if call := mcp.CallFrom(ctx); call != nil {
				return call.Client
			}
			return mcp.Implementation{}
		},
	}
}

// named decides tools/call and prompts/get.
func (g *gate) named(ctx context.Context, req *mcp.Request, next mcp.Handler, kind mcp.Kind) (mcp.Result, error) {
	name, err := stringParam(req, "name")
	if err != nil {
		return nil, err
	}
	a := g.access(ctx, req.Method)
	a.Kind, a.Name, a.Arguments = kind, name, req.Param("arguments")
	a.Annotations = g.believed(func() *Annotations { return g.known.find(ctx, next, a) })
	if err := g.admit(ctx, a); err != nil {
		return nil, err
	}
	res, err := next.Handle(ctx, req)
	if made, ok := res.(*mcp.CreateTaskResult); ok && err == nil {
		g.tasks.put(taskKey(a.Principal, made.Task), name)
	}
	return res, err
}

// read decides resources/read.
func (g *gate) read(ctx context.Context, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	uri, err := stringParam(req, "uri")
	if err != nil {
		return nil, err
	}
	if err := g.admitURI(ctx, g.resource(ctx, req.Method, uri, next)); err != nil {
		return nil, err
	}
	res, err := next.Handle(ctx, req)
	if err != nil {
		return nil, err
	}
	return private(res), nil
}

// resource returns an Access to a resource.
func (g *gate) resource(ctx context.Context, method, uri string, next mcp.Handler) *Access {
	a := g.access(ctx, method)
	a.Kind, a.Name = mcp.KindResource, uri
	a.Annotations = g.believed(func() *Annotations { return g.known.find(ctx, next, a) })
	return a
}

// private marks a result as private, so that shared caches do not serve it to other callers.
func private(res mcp.Result) mcp.Result {
	switch r := res.(type) {
	case *mcp.ReadResult:
		if r.Cache.Public {
			own := *r
			own.Cache.Public = false
			return &own
		}
	case mcp.RawResult:
		if scope, ok := jsonx.Lookup(r, "cacheScope"); ok && string(scope) != `"private"` {
			return mcp.RawResult(jsonx.With(nil, r, "cacheScope", []byte(`"private"`)))
		}
	}
	return res
}

// complete decides completion/complete: the prompt or template must not be refused for certain.
func (g *gate) complete(ctx context.Context, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	ref := &mcp.Request{Method: req.Method, Params: req.Param("ref")}
	kind, err := stringParam(ref, "type")
	if err != nil {
		return nil, err
	}
	a := g.access(ctx, req.Method)
	a.Partial = true
	member := "uri"
	if kind == "ref/prompt" {
		member = "name"
	}
	name, err := stringParam(ref, member)
	if err != nil {
		return nil, err
	}
	a.Kind, a.Name = mcp.KindPrompt, name
	if member == "uri" {
		a.Kind = mcp.KindResource
		if strings.Contains(name, "{") {
			a.Name, a.Template = "", name
		}
	}
	a.Annotations = g.believed(func() *Annotations { return g.known.find(ctx, next, a) })
	if err := g.admit(ctx, a); err != nil {
		return nil, err
	}
	return next.Handle(ctx, req)
}

// stringParam returns a member of the params that must be a string.
func stringParam(req *mcp.Request, member string) (string, error) {
	s, err := jsonx.Unquote(req.Param(member))
	if err != nil {
		return "", mcp.Errorf(jsonrpc.CodeInvalidParams, "%s: %q must be a string", req.Method, member)
	}
	return s, nil
}

// object returns a member of the params that must be an object, {} if there is none.
func object(req *mcp.Request, member string) (json.RawMessage, error) {
	raw := req.Param(member)
	switch {
	case raw == nil || string(raw) == "null":
		return json.RawMessage(`{}`), nil
	case jsonx.KindOf(raw) != '{':
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "%s: %q must be an object", req.Method, member)
	}
	return raw, nil
}
