package chain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway/view"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/listen"
	steps "github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// maxLargest bounds the tools of a server in a report.
const maxLargest = 100

// sizes keeps the tokens of the last lists, because reports are asked for each second. The zero value is
// ready for use.
type sizes struct {
	mu      sync.Mutex
	all     json.RawMessage      // list that servers is of; guarded by mu
	servers map[string]*toolSize // by server; guarded by mu
	set     *viewSet             // that views is of; guarded by mu
	views   []health.View        // guarded by mu
}

// toolSize is what the tools of a server take.
type toolSize struct {
	bytes int
	tools []health.Tool // the largest first
}

// form returns a view of the tools that the gateway has seen, for everybody.
func (v *Views) form(of *view.View) mcp.Handler {
	own := view.View{Name: of.Name, Tools: of.Tools, Prompts: of.Prompts, Resources: of.Resources, Changes: of.Changes}
	return own.Middleware()(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return v.gateway.KeptTools(), nil }))
}

// report adds to a report what the tools of servers and views take of the window of a model.
func (v *Views) report(r *health.Report) {
	s, all, now := &v.sizes, v.gateway.KeptTools().JSON(), v.now.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers == nil || !bytes.Equal(s.all, all) {
		s.servers, s.set = v.ofServers(all), nil
	}
	if s.set != now {
		s.views = now.sizes(all, listen.Path)
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
		r.Views = slices.Clone(s.views)
		for i := range r.Views {
			r.Views[i].Path = ""
		}
	}
}

// Empty returns a warning about each view that has none of the tools that the servers list, with its place in
// the file.
func (v *Views) Empty() (warnings []string) {
	all, now := v.gateway.KeptTools().JSON(), v.now.Load()
	var total int
	for range tools(all) {
		total++
	}
	if total == 0 || now.of == nil {
		return nil
	}
	for i, row := range now.sizes(all, "") {
		one := &now.file[i]
		if row.Tools > 0 || one.Prompts != nil || one.Resources != nil {
			continue
		}
		text := fmt.Sprintf("view %q has none of the %d tools that the servers list now", one.Name, total)
		warnings = append(warnings, fmt.Sprint(now.of.Problem("views."+one.Name, text, "patchbay tools lists their names, which begin with that of the server")))
	}
	return warnings
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
func tools(list json.RawMessage) func(yield func(name string, bytes int) bool) {
	return func(yield func(string, int) bool) {
		entries, _ := jsonx.Lookup(list, "tools")
		for e := range jsonx.Elements(entries) {
			quoted, _ := jsonx.Lookup(e, "name")
			if name, err := jsonx.Unquote(quoted); err == nil && !yield(name, len(e)) {
				return
			}
		}
	}
}
