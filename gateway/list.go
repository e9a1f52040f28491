package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Bounds of what one upstream can put into a list.
const (
	maxPages   = 1000
	maxEntries = 100_000
)

// entry is one feature of an upstream.
type entry struct {
	up  *upstream
	id  string          // its name, URI or URI template at the upstream
	raw json.RawMessage // as the upstream sent it
}

// entries asks every upstream for a list, at once, and returns what there is, in the
// order of the upstreams.
func (g *Gateway) entries(ctx context.Context, method, member, key string) []entry {
	ups, _ := g.upstreams()
	found := make([][]entry, len(ups))
	var wg sync.WaitGroup
	for i, up := range ups {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, g.listTimeout())
			defer cancel()
			var err error
			found[i], err = up.list(ctx, method, member, key)
			var rpc *mcp.Error
			switch {
			case errors.As(err, &rpc) && rpc.Code == mcp.CodeMethodNotFound: // it has none of these
			case err != nil:
				g.log().Warn("server missing from a list", "server", up.name, "method", method, "err", err)
			}
		})
	}
	wg.Wait()
	var out []entry
	for _, es := range found {
		out = append(out, es...)
	}
	return out
}

// list gets all pages of a list of an upstream.
func (up *upstream) list(ctx context.Context, method, member, key string) ([]entry, error) {
	var out []entry
	params := json.RawMessage(`{}`)
	seen := map[string]bool{}
	for {
		res, err := up.handler.Handle(ctx, &mcp.Request{Method: method, Params: params})
		if err != nil {
			return out, err
		}
		raw := mcp.ResultJSON(res)
		list, _ := jsonx.Lookup(raw, member)
		if jsonx.KindOf(list) != '[' {
			return out, fmt.Errorf("the result has no array %q", member)
		}
		for e := range jsonx.Elements(list) {
			v, _ := jsonx.Lookup(e, key)
			id, err := jsonx.Unquote(v)
			if err != nil {
				continue // no caller could use what has no name
			}
			if out = append(out, entry{up, id, e}); len(out) > maxEntries {
				return out, fmt.Errorf("more than %d entries", maxEntries)
			}
		}
		next, ok := jsonx.Lookup(raw, "nextCursor")
		if !ok || string(next) == "null" {
			return out, nil
		}
		if seen[string(next)] || len(seen) >= maxPages {
			return out, errors.New("the pages have no end")
		}
		seen[string(next)] = true
		params = append(append([]byte(`{"cursor":`), next...), '}')
	}
}

// list merges the lists of the upstreams into one page. What two upstreams would
// offer under one name belongs to the first.
func (g *Gateway) list(ctx context.Context, method, member, key string) (mcp.Result, error) {
	out := jsonx.AppendString([]byte{'{'}, member)
	out = append(out, ':', '[')
	seen := map[string]bool{}
	for _, e := range g.entries(ctx, method, member, key) {
		id := e.id
		if key == "name" {
			id = e.up.prefix + id
		}
		if seen[id] {
			g.log().Warn("name taken by another server", "server", e.up.name, "name", id)
			continue
		}
		if len(seen) > 0 {
			out = append(out, ',')
		}
		seen[id] = true
		if id != e.id {
			e.raw = jsonx.With(nil, e.raw, key, jsonx.AppendString(nil, id))
		}
		out = append(out, e.raw...)
	}
	return mcp.RawResult(append(out, ']', '}')), nil
}
