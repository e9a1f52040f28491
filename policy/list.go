package policy

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// featureList is one of the lists of a server.
type featureList struct {
	method string
	member string // of the result, that has the entries
	key    string // of an entry, that names it
	kind   mcp.Kind
	use    string // the method that entries are used with
}

var (
	toolList     = &featureList{"tools/list", "tools", "name", mcp.KindTool, "tools/call"}
	promptList   = &featureList{"prompts/list", "prompts", "name", mcp.KindPrompt, "prompts/get"}
	resourceList = &featureList{"resources/list", "resources", "uri", mcp.KindResource, "resources/read"}
	templateList = &featureList{"resources/templates/list", "resourceTemplates", "uriTemplate", mcp.KindResource, "resources/read"}
)

func listOf(method string) *featureList {
	for _, l := range []*featureList{toolList, promptList, resourceList, templateList} {
		if l.method == method {
			return l
		}
	}
	return nil
}

// list answers with the entries of a page that the caller may see. Pages keep their cursors,
// so one may be empty that is not the last.
func (g *gate) list(ctx context.Context, req *mcp.Request, next mcp.Handler, l *featureList) (mcp.Result, error) {
	res, err := next.Handle(ctx, req)
	if err != nil {
		return nil, err
	}
	raw := mcp.ResultJSON(res)
	if r, ok := g.policy.(*Require); ok {
		r.unlisted.page(g, l, raw, r.namesOf(l), g.log)
	}
	shown := filter(raw, l.member, func(entry json.RawMessage) bool {
		a := g.entry(ctx, l, entry)
		if a == nil {
			return false // nobody could use it
		}
		d := g.policy.Decide(ctx, a)
		if d.Err != nil {
			g.refused(ctx, a, &d)
		}
		return d.visible()
	})
	// Nobody else may be given this, and the caller soon may see more.
	return mcp.RawResult(jsonx.With(nil, jsonx.With(nil, shown, "ttlMs", []byte("0")), "cacheScope", []byte(`"private"`))), nil
}

// entry is the access to an entry of a list, nil if it has no name.
func (g *gate) entry(ctx context.Context, l *featureList, raw json.RawMessage) *Access {
	name := nameOf(raw, l.key)
	if name == "" {
		return nil
	}
	a := g.access(ctx, l.use)
	a.Kind, a.Name, a.Partial = l.kind, name, true
	if l == templateList {
		a.Name, a.Template = "", name
	}
	a.Annotations = g.believed(func() *Annotations { return annotationsOf(raw) })
	return a
}

func nameOf(entry json.RawMessage, key string) string {
	v, _ := jsonx.Lookup(entry, key)
	name, err := jsonx.Unquote(v)
	if err != nil {
		return ""
	}
	return name
}

// filter returns an object whose array has only what is wanted of it.
func filter(obj json.RawMessage, member string, wanted func(json.RawMessage) bool) json.RawMessage {
	all, _ := jsonx.Lookup(obj, member)
	out := make([]byte, 1, len(all)+1)
	out[0] = '['
	for e := range jsonx.Elements(all) {
		if !wanted(e) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return jsonx.With(nil, obj, member, append(out, ']'))
}
