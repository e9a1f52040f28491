package middleware

import (
	"context"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/mcp"
)

// ResourceChange is other texts for a resource, or for a resource template. An empty text is as it is.
type ResourceChange struct{ Name, Title, Description string }

// Resources returns a middleware that changes the texts of resources and resource templates in the lists
// of the next Handler, by their URIs and URI templates, which stay the same.
func Resources(changes map[string]ResourceChange) mcp.Middleware {
	lists := map[string]*forms{}
	for _, f := range []*forms{newForms(feature.Resources, "Resources", "resource"), newForms(feature.Templates, "Resources", "template")} {
		lists[f.Method] = f
	}
	for uri, c := range changes {
		f := lists[feature.Resources.Method]
		if strings.Contains(uri, "{") {
			f = lists[feature.Templates.Method]
		}
		one := &form{name: uri}
		one.say("name", c.Name, "title", c.Title, "description", c.Description)
		f.by[uri], f.from[uri] = one, uri
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if f := lists[req.Method]; f != nil && len(f.by) > 0 {
				return f.change(ctx, req, next)
			}
			return next.Handle(ctx, req)
		})
	}
}
