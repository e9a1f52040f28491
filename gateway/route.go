package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// byName routes tools/call and prompts/get by the prefix of the name.
func (g *Gateway) byName(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	name, err := member(req.Method, req.Params, "name")
	if err != nil {
		return nil, err
	}
	up, own := g.owner(name)
	if up == nil {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "no server offers %q; the names start with that of a server", bounded(name))
	}
	inner := mcp.WithTaskID(ctx, func(principal, id string) string { return g.taskID(principal, up, id) })
	params := jsonx.With(make([]byte, 0, len(req.Params)), req.Params, "name", jsonx.AppendString(nil, own))
	res, err := up.forward(inner, req.Method, params)
	if made, ok := res.(*mcp.CreateTaskResult); ok && err == nil {
		return &mcp.CreateTaskResult{Task: g.ofTask(ctx, up, made.Task)}, nil
	}
	return res, err
}

// owner finds the upstream whose prefix a name has, and the name without it. Of
// two prefixes the longer counts.
func (g *Gateway) owner(name string) (*upstream, string) {
	ups, _ := g.upstreams()
	var best *upstream
	for _, up := range ups {
		if strings.HasPrefix(name, up.prefix) && (best == nil || len(up.prefix) > len(best.prefix)) {
			best = up
		}
	}
	if best == nil {
		return nil, ""
	}
	return best, name[len(best.prefix):]
}

func (up *upstream) forward(ctx context.Context, method string, params json.RawMessage) (mcp.Result, error) {
	return up.handler.Handle(ctx, &mcp.Request{Method: method, Params: params})
}

// byURI routes resources/read.
func (g *Gateway) byURI(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	uri, err := member(req.Method, req.Params, "uri")
	if err != nil {
		return nil, err
	}
	if up := g.ownerOfURI(ctx, uri); up != nil {
		return up.forward(ctx, req.Method, req.Params)
	}
	// A server may read what it does not list. Reading changes nothing, so those
	// that have resources are asked in turn.
	ups, _ := g.upstreams()
	for _, up := range ups {
		res, err := up.forward(ctx, req.Method, req.Params)
		var rpc *mcp.Error
		if errors.As(err, &rpc) && (rpc.Code == mcp.CodeResourceNotFound || rpc.Code == mcp.CodeInvalidParams || rpc.Code == mcp.CodeMethodNotFound) {
			continue
		}
		return res, err
	}
	return nil, mcp.ResourceNotFound(uri)
}

// ownerOfURI finds the upstream that lists a URI, or a template that matches it or
// is it; nil if there is none.
func (g *Gateway) ownerOfURI(ctx context.Context, uri string) *upstream {
	return g.owners(ctx, []string{uri})[uri]
}

// owners finds the upstreams of several URIs, with one look at the lists.
func (g *Gateway) owners(ctx context.Context, uris []string) map[string]*upstream {
	found := make(map[string]*upstream, len(uris))
	if len(uris) == 0 {
		return found
	}
	listed := map[string]*upstream{}
	for _, e := range g.entries(ctx, "resources/list", "resources", "uri") {
		if listed[e.id] == nil {
			listed[e.id] = e.up
		}
	}
	missing := false
	for _, uri := range uris {
		if found[uri] = listed[uri]; found[uri] == nil {
			missing = true
		}
	}
	if !missing {
		return found
	}
	for _, e := range g.entries(ctx, "resources/templates/list", "resourceTemplates", "uriTemplate") {
		t, err := uritemplate.New(e.id)
		for _, uri := range uris {
			if found[uri] == nil && (e.id == uri || err == nil && t.Match(uri) != nil) {
				found[uri] = e.up
			}
		}
	}
	return found
}

// complete routes completion/complete by what it refers to.
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
		up, own := g.owner(name)
		if up == nil {
			return nil, mcp.Errorf(mcp.CodeInvalidParams, "no server offers the prompt %q", bounded(name))
		}
		ref = jsonx.With(nil, ref, "name", jsonx.AppendString(nil, own))
		return up.forward(ctx, req.Method, jsonx.With(nil, req.Params, "ref", ref))
	}
	uri, err := member(req.Method, ref, "uri")
	if err != nil {
		return nil, err
	}
	up := g.ownerOfURI(ctx, uri)
	if up == nil {
		return nil, mcp.ResourceNotFound(uri)
	}
	return up.forward(ctx, req.Method, req.Params)
}

// member returns a member of an object that must be a string.
func member(method string, obj json.RawMessage, name string) (string, error) {
	raw, _ := jsonx.Lookup(obj, name)
	s, err := jsonx.Unquote(raw)
	if err != nil {
		return "", mcp.Errorf(mcp.CodeInvalidParams, "%s: %q must be a string", method, name)
	}
	return s, nil
}
