package chain

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway/view"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/listen"
	steps "github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// maxLargest bounds the tools of a server in a report.
const maxLargest = 100

// sizes keeps what reports say of the last lists, because they are asked for each second. The zero value is
// ready for use.
type sizes struct {
	mu      sync.Mutex
	all     *kept                // lists that the rest is of; guarded by mu
	servers map[string]*toolSize // by server; guarded by mu
	set     *viewSet             // that views is of; guarded by mu
	views   []health.View        // guarded by mu
}

// toolSize is what the tools of a server take.
type toolSize struct {
	bytes int
	tools []health.Tool // the largest first
}

// form returns a view of the lists that the gateway has seen, for everybody.
func (v *Views) form(of *view.View) mcp.Handler {
	own := view.View{Name: of.Name, Tools: of.Tools, Prompts: of.Prompts, Resources: of.Resources, Changes: of.Changes}
	return own.Middleware()(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) { return v.gateway.Kept(req.Method), nil }))
}

// report adds to a report what the tools of servers and views take of the window of a model, and what is
// wrong with the views.
func (v *Views) report(r *health.Report) {
	s, now := &v.sizes, v.now.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := v.kept(s.all)
	if s.servers == nil || all != s.all {
		s.servers, s.set = v.ofServers(all[0]), nil
	}
	if s.set != now {
		s.views = now.sizes(all[0], listen.Path)
		for _, w := range v.warnings(now, all) {
			of := &s.views[w.view]
			of.Warnings = append(of.Warnings, w.Problem.String())
		}
	}
	s.all, s.set = all, now
	for i := range r.Servers {
		one := &r.Servers[i]
		if size := s.servers[one.Name]; size != nil && one.Tools >= 0 {
			one.Tokens, one.Largest = text.Tokens(size.bytes), size.tools
		}
	}
	r.Views = s.views
	if r.URL == "" { // over stdio there is one path
		r.Views = slices.DeleteFunc(slices.Clone(s.views), func(one health.View) bool { return v.alone != "" && one.Name != v.alone })
		for i := range r.Views {
			r.Views[i].Path = ""
		}
	}
}

// ofServers measures a list of tools by their servers.
func (v *Views) ofServers(list json.RawMessage) map[string]*toolSize {
	out := map[string]*toolSize{}
	for name, bytes := range tools(list) {
		server, own := v.gateway.Owner(name)
		size := out[server]
		if size == nil {
			size = &toolSize{}
			out[server] = size
		}
		size.bytes += bytes
		size.tools = append(size.tools, health.Tool{Name: cmp.Or(own, name), Tokens: text.Tokens(bytes)})
	}
	for _, size := range out {
		slices.SortStableFunc(size.tools, func(a, b health.Tool) int { return cmp.Compare(b.Tokens, a.Tokens) })
		size.tools = slices.Clone(size.tools[:min(len(size.tools), maxLargest)])
	}
	return out
}

// sizes measures the views, or everything if there are none.
func (set *viewSet) sizes(all json.RawMessage, path string) []health.View {
	measured := func(list json.RawMessage) (n, sum int) {
		for _, bytes := range tools(list) {
			n, sum = n+1, sum+bytes
		}
		return n, text.Tokens(sum)
	}
	if set.views == nil {
		n, tokens := measured(all)
		return []health.View{{Name: deploy.AllView, Path: path, Tools: n, Tokens: tokens}}
	}
	var out []health.View
	for i, form := range set.forms {
		row := health.View{Name: set.file[i].Name, Path: path, Search: set.file[i].Search}
		if row.Name != deploy.AllView {
			row.Path += "/v/" + row.Name
		}
		if list, err := form.Handle(steps.Quiet(context.Background()), &mcp.Request{Method: "tools/list"}); err == nil {
			row.Tools, row.Tokens = measured(list.JSON())
		}
		if row.Search {
			_, row.Tokens = measured(view.SearchTools().JSON())
		}
		out = append(out, row)
	}
	return out
}

// tools yields the names and the bytes of the tools of a list.
func tools(list json.RawMessage) iter.Seq2[string, int] { return entries(list, feature.Tools) }

// entries yields the names, or the URIs, and the bytes of the entries of a list.
func entries(raw json.RawMessage, list feature.List) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		all, _ := jsonx.Lookup(raw, list.Member)
		for e := range jsonx.Elements(all) {
			quoted, _ := jsonx.Lookup(e, list.Key)
			if name, err := jsonx.Unquote(quoted); err == nil && !yield(name, len(e)) {
				return
			}
		}
	}
}
