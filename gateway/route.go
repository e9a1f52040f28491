package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// byName routes tools/call and prompts/get.
func (g *Gateway) byName(ctx context.Context, req *mcp.Request, k *listKind) (mcp.Result, error) {
	name, err := member(req.Method, req.Params, "name")
	if err != nil {
		return nil, err
	}
	up, own, err := g.feature(ctx, name, k)
	if err != nil {
		return nil, err
	}
	if up.pool != nil && up.pool.perClient() {
		ctx = clientOf(ctx).as(ctx) // computed once
	}
	inner := g.naming(ctx, up, own)
	var quoted [maxName + 2]byte
	params := jsonx.With(make([]byte, 0, len(req.Params)), req.Params, "name", jsonx.AppendString(quoted[:0], own))
	res, err := up.handle(inner, req.Method, params)
	if made, ok := res.(*mcp.CreateTaskResult); ok && err == nil {
		here := *made
		here.Task = g.ofTask(ctx, up, made.Task)
		if up.lasts() {
			id, _ := jsonx.Lookup(here.Task, "taskId")
			if id, err := jsonx.Unquote(id); err == nil && !g.begun.has(id) { // else it is kept with its state
				g.keep(principalOf(ctx), id, own, nil)
			}
		}
		return &here, nil
	}
	if err != nil {
		return nil, renamed(err, k, own, name)
	}
	return res, nil
}

// feature returns the upstream of a name, and its own name for the feature.
func (g *Gateway) feature(ctx context.Context, name string, k *listKind) (*upstream, string, error) {
	up := g.serverOf(name)
	if up == nil {
		return nil, "", mcp.Errorf(jsonrpc.CodeInvalidParams, "no server offers %q; names begin with the name of a server", text.Short(name))
	}
	if own, ok := up.plain(name); ok {
		return up, own, nil
	}
	unknown := absent(k, name)
	if len(name) > maxName || !isHashed(name) {
		return nil, "", unknown
	}
	// The list tells which feature a hash stands for.
	who := clientOf(ctx)
	for _, who := range up.views(who) {
		if l := up.cache.list(who, k); l != nil {
			if own, ok := l.names[name]; ok {
				return up, own, nil
			}
		}
	}
	for e := range up.listed(ctx, k).entries {
		if nameOf(up.prefix, up.name, e.id) == name {
			return up, e.id, nil
		}
	}
	if err := up.unavailable(); err != nil {
		return nil, "", err
	}
	return nil, "", unknown
}

// serverOf returns the upstream that a name belongs to, or nil. The longest matching prefix counts.
func (g *Gateway) serverOf(name string) *upstream {
	var best *upstream
	for _, up := range g.upstreams() {
		if strings.HasPrefix(name, up.prefix) && (best == nil || len(up.prefix) > len(best.prefix)) {
			best = up
		}
	}
	return best
}

// plain returns the feature of a name with this upstream's prefix, and whether the name contains it
// as it is.
func (up *upstream) plain(name string) (string, bool) {
	own := name[len(up.prefix):]
	return own, joins(up.prefix, own)
}

// byURI routes resources/read.
func (g *Gateway) byURI(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	uri, err := member(req.Method, req.Params, "uri")
	if err != nil {
		return nil, err
	}
	// The kept list may be out of date; the server then says that it does not have the resource.
	owner := g.keptOwner(clientOf(ctx), uri)
	if owner == nil {
		owner = g.formerOwner(clientOf(ctx), uri)
	}
	if owner != nil {
		if res, err := owner.handle(ctx, req.Method, req.Params); !hasNot(err) || denied(err) || begun(err) {
			return res, err
		}
	}
	if up := g.listedOwners(ctx, []string{uri})[uri]; up != nil && up != owner {
		return up.handle(ctx, req.Method, req.Params)
	}
	// A server may serve resources that it does not list, such as those that a tool result links
	// to. A read changes nothing, so the other servers are asked in turn.
	ctx = note.WithProbing(ctx)
	var refused error // by middleware in front of a server, which may say "not found"
	var failed error  // the first error other than "not found"
	for _, up := range g.upstreams() {
		if up == owner || up.unavailable() != nil {
			continue
		}
		res, err := up.handle(ctx, req.Method, req.Params)
		var rpc *mcp.Error
		if err == nil || !errors.As(err, &rpc) {
			return res, err
		}
		switch {
		case denied(err):
			refused = cmp.Or(refused, err)
		case !hasNot(err), begun(err):
			failed = cmp.Or(failed, err)
		}
	}
	if err := cmp.Or(failed, refused); err != nil {
		return nil, err
	}
	return nil, mcp.ResourceNotFound(uri)
}

// denied reports whether middleware, such as a policy, has refused a request.
func denied(err error) bool {
	var d mcp.Denial
	return errors.As(err, &d)
}

// begun reports whether a server has asked a question in a request that failed, so that it has what was requested.
func begun(err error) bool {
	var b mcp.BegunError
	return errors.As(err, &b) && b.Begun()
}

// hasNot reports whether a server says that it does not have what was requested.
func hasNot(err error) bool {
	var rpc *mcp.Error
	return errors.As(err, &rpc) && (rpc.Code == mcp.CodeResourceNotFound || rpc.Code == jsonrpc.CodeInvalidParams || rpc.Code == jsonrpc.CodeMethodNotFound)
}

// owners returns the upstreams of URIs: those that list the URI, or a template that equals or
// matches it.
func (g *Gateway) owners(ctx context.Context, uris []string) map[string]*upstream {
	found := make(map[string]*upstream, len(uris))
	var missing []string
	who := clientOf(ctx)
	for _, uri := range uris {
		if up := g.keptOwner(who, uri); up != nil {
			found[uri] = up
		} else {
			missing = append(missing, uri)
		}
	}
	maps.Copy(found, g.listedOwners(ctx, missing))
	for _, uri := range missing {
		if up := g.formerOwner(who, uri); found[uri] == nil && up != nil {
			found[uri] = up
		}
	}
	return found
}

// views returns the clients whose kept lists show what a caller has seen of the upstream.
func (up *upstream) views(who client) [2]client {
	if up.pool == nil {
		return [2]client{who.all(), who.all()}
	}
	return [2]client{up.pool.ownerOf(who), who.all()}
}

// keptOwner returns the upstream of a URI according to the lists that the caller received, or nil.
func (g *Gateway) keptOwner(who client, uri string) *upstream {
	ups := g.upstreams()
	for _, k := range []*listKind{listResources, listTemplates} {
		for _, up := range ups {
			for _, who := range up.views(who) {
				if l := up.cache.list(who, k); l != nil && l.has(uri) {
					return up
				}
			}
		}
	}
	return nil
}

// listedOwners returns the upstreams of URIs according to fresh lists.
func (g *Gateway) listedOwners(ctx context.Context, uris []string) map[string]*upstream {
	found := make(map[string]*upstream, len(uris))
	for _, k := range []*listKind{listResources, listTemplates} {
		if len(found) == len(uris) {
			break
		}
		for _, e := range g.entries(ctx, k, (*upstream).listed) {
			for _, uri := range uris {
				if found[uri] == nil && e.is(uri) {
					found[uri] = e.up
				}
			}
		}
	}
	return found
}

// complete routes completion/complete by its reference.
func (g *Gateway) complete(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	ref, _ := jsonx.Lookup(req.Params, "ref")
	kind, err := member(req.Method, ref, "type")
	if err != nil {
		return nil, err
	}
	if kind == "ref/prompt" {
		name, err := member(req.Method, ref, "name")
		if err != nil {
			return nil, err
		}
		up, own, err := g.feature(ctx, name, listPrompts)
		if err != nil {
			return nil, err
		}
		ref = jsonx.With(nil, ref, "name", jsonx.AppendString(nil, own))
		res, err := up.completion(ctx, jsonx.With(nil, req.Params, "ref", ref))
		if err != nil {
			return nil, renamed(err, listPrompts, own, name)
		}
		return res, nil
	}
	uri, err := member(req.Method, ref, "uri")
	if err != nil {
		return nil, err
	}
	up := g.owners(ctx, []string{uri})[uri]
	if up == nil {
		return nil, mcp.ResourceNotFound(uri)
	}
	return up.completion(ctx, req.Params)
}

// completion forwards completion/complete. The gateway offers it for all servers, and 2024-11-05
// cannot declare it, so a server without it yields no suggestions (T-14).
func (up *upstream) completion(ctx context.Context, params json.RawMessage) (mcp.Result, error) {
	res, err := up.handle(ctx, "completion/complete", params)
	var rpc *mcp.Error
	if errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound {
		return mcp.RawResult(`{"completion":{"values":[]}}`), nil
	}
	return res, err
}

// member returns a string member of an object.
func member(method string, obj json.RawMessage, name string) (string, error) {
	raw, _ := jsonx.Lookup(obj, name)
	s, err := jsonx.Unquote(raw)
	if err != nil {
		return "", mcp.Errorf(jsonrpc.CodeInvalidParams, "%s: %q must be a string", method, name)
	}
	return s, nil
}
