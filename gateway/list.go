package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/urimatch"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Bounds of the part of one upstream in a list.
const (
	maxPages   = 1000
	maxEntries = 100_000

	maxListBytes = 64 << 20
	maxRefetches = 3   // of a list that changes during its request
	maxTemplates = 200 // that URIs are matched against
)

// listKind is one of the lists of a server. A list without a capability is not cached.
type listKind struct {
	feature.List
	change changeSet
}

var (
	listTools     = &listKind{feature.Tools, 1}
	listPrompts   = &listKind{feature.Prompts, 2}
	listResources = &listKind{feature.Resources, 4}
	listTemplates = &listKind{feature.Templates, 4}
	listTasks     = &listKind{List: feature.Tasks}
)

// listOf returns the list of a method, or nil.
func listOf(method string) *listKind {
	for _, k := range []*listKind{listTools, listPrompts, listResources, listTemplates, listTasks} {
		if k.Method == method {
			return k
		}
	}
	return nil
}

// entry is one feature of an upstream.
type entry struct {
	up  *upstream
	id  string          // its name, URI or URI template at the upstream
	raw json.RawMessage // as the upstream sent it

	template *urimatch.Template // of the id of a URI template; nil if it is not valid
}

// is reports whether a URI is the entry's, or is or matches its template.
func (e *entry) is(uri string) bool {
	if e.id == uri {
		return true
	}
	if e.template == nil {
		return false
	}
	values, err := e.template.Match(uri)
	return values != nil && err == nil
}

// entries asks every upstream for a list in parallel, and returns the entries in the order of the
// upstreams. The function of is shown for what a caller sees, and listed for routing.
func (g *Gateway) entries(ctx context.Context, k *listKind, of func(*upstream, context.Context, *listKind) part) []entry {
	ups := g.upstreams()
	found := make([]part, len(ups))
	g.atOnce(ctx, k.Method, indexes(ups), func(i int) { found[i] = of(ups[i], ctx, k) })
	var out []entry
	for i := range found {
		for e := range found[i].entries {
			out = append(out, *e)
		}
	}
	return out
}

// listed returns a list of the server, or nothing if it does not answer. It asks once more if the
// connection is lost.
func (up *upstream) listed(ctx context.Context, k *listKind) part {
	ctx, cancel := context.WithTimeoutCause(ctx, up.g.listTimeout(), errSlow)
	defer cancel()
	who := clientOf(ctx)
	if up.fixed != nil {
		list, _, _ := up.fetch(ctx, up.fixed, who.all(), k)
		return part{list: list}
	}
	h := hurryOf(ctx)
	for again := false; ; again = true {
		c, kept, err := up.pool.forList(ctx, who, k)
		switch {
		case err != nil:
			if h != nil && errors.Is(err, errStarting) {
				h.misses(up.name)
			}
			up.g.log().DebugContext(ctx, "server missing from a list", "server", up.name, "method", k.Method, "err", err)
			return part{}
		case c == nil:
			return part{list: kept}
		}
		whose := who.all()
		if c.own {
			whose = up.pool.ownerOf(who)
		}
		var list *keptList
		if h != nil {
			list, err = up.listNow(ctx, c, whose, k, h)
		} else {
			list, _, err = up.fetch(ctx, c, whose, k)
		}
		up.pool.release(c, nil, nil)
		if again || err == nil || !c.lost(ctx, err) { // T-29
			return part{list: list}
		}
		up.pool.lose(c, err)
	}
}

var errSlow = errors.New("no answer in time (Gateway.ListTimeout)")

// fetch gets a list from a connection and keeps it for a client, unless it changed in the meantime.
// It also returns how long anyone may cache it, as the server says. With an error it returns the
// entries received before.
func (up *upstream) fetch(ctx context.Context, c *conn, who client, k *listKind) (*keptList, time.Duration, error) {
	if !c.offers(k) {
		return nil, 0, nil
	}
	if _, reason := c.lists.silent(); reason != "" {
		c.lists.probe(
			func(ctx context.Context) error { _, _, err := c.list(ctx, up, k); return err },
			func() { up.listsChanged("") })
		return nil, 0, nil
	}
	forwarded := false
	if h := hurryOf(ctx); h != nil {
		forwarded = h.audience.hops != ""
	}
	version, _ := c.version(k)
	entries, ttl, err := c.list(ctx, up, k)
	var rpc *mcp.Error
	switch {
	case err == nil:
		if now, _ := c.version(k); k.Capability == "" || now != version {
			return &keptList{entries: entries}, 0, nil
		}
		if forwarded { // without the hops, a list may have more entries
			return newKeptList(k, entries), ttl, nil
		}
		return up.cache.put(who, k, entries), ttl, nil
	case errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound: // it does not support the method
		return nothing, 0, nil
	case errors.Is(context.Cause(ctx), errSlow):
		reason := fmt.Sprintf("%s: no answer within %v", k.Method, up.g.listTimeout())
		if c.lists.fell(reason) {
			up.listsChanged(reason)
		}
	case ctx.Err() != nil: // the caller has left, or the gateway shuts down
	case forwarded && rpc != nil && hop.Loops(rpc.Message): // it leads back to the gateway that asks
		return nothing, 0, nil
	case rpc != nil && hop.Loops(rpc.Message):
		if c.lists.fell(leadsBack) {
			up.listsChanged(leadsBack)
		}
	default:
		up.g.log().WarnContext(ctx, "server missing from a list", "server", up.name, "method", k.Method, "err", err)
	}
	return &keptList{entries: entries}, 0, err
}

// leadsBack is the reason for the state of a server that forwards to this gateway.
const leadsBack = "it leads back to this gateway: remove it, or the server that leads back, from the configuration"

// listsChanged records that the server stopped answering list requests, or answers them again.
func (up *upstream) listsChanged(reason string) {
	if reason != "" {
		up.g.log().Warn("server missing from lists", "server", up.name, "err", reason)
	}
	up.g.announceOf(up)
	if up.pool != nil {
		up.pool.tell()
	}
}

// refetch gets lists over the main connection: to resolve names with a hash, to have them while the
// server is not running, and to check that the server answers. It first drops the kept lists. It
// returns which lists have changed.
//
// A list that changes during its request is not cached, so it is requested again. That happens without
// a change too, when the stream of notifications opens meanwhile.
func (up *upstream) refetch(c *conn, set changeSet) (changed changeSet) {
	for _, k := range []*listKind{listTools, listPrompts, listResources, listTemplates} {
		if k.change&set == 0 {
			continue
		}
		before := up.cache.list(client{}, k)
		up.cache.drop(k)
		for range maxRefetches {
			version, _ := c.version(k)
			ctx, cancel := context.WithTimeoutCause(up.pool.ctx, up.g.listTimeout(), errSlow)
			up.fetch(ctx, c, client{}, k)
			cancel()
			if now, _ := c.version(k); now == version {
				break
			}
		}
		after := up.cache.list(client{}, k)
		_, silent := c.lists.silent()
		switch {
		case after == nil && before == nil && (silent != "" || !c.offers(k)): // still nothing
		case !after.equal(before):
			changed |= k.change
		}
	}
	up.pool.tell() // for the counts
	return changed
}

// list gets all pages of a list, and how long anyone may cache them, as the server says.
func (c *conn) list(ctx context.Context, up *upstream, k *listKind) (out []entry, ttl time.Duration, err error) {
	params := json.RawMessage(`{}`)
	seen, size := map[string]bool{}, 0
	for {
		var res mcp.Result
		err := up.g.user().Run(ctx, k.Method, func() (err error) {
			res, err = c.h.Handle(ctx, &mcp.Request{Method: k.Method, Params: params})
			return err
		})
		if err != nil {
			return out, 0, err
		}
		raw := res.JSON()
		if age := ttlOf(raw); len(seen) == 0 || age < ttl {
			ttl = age
		}
		page, next, err := up.entriesOf(k, raw)
		if out = append(out, page...); len(out) > maxEntries {
			return out[:maxEntries], 0, fmt.Errorf("more than %d entries", maxEntries)
		}
		for i := max(maxTemplates, len(out)-len(page)); i < len(out); i++ {
			out[i].template = nil
		}
		if size += len(raw); size > maxListBytes {
			return out, 0, fmt.Errorf("more than %d bytes", maxListBytes)
		}
		if err != nil || next == nil {
			return out, ttl, err
		}
		if seen[string(next)] || len(seen) >= maxPages {
			return out, 0, errors.New("the pages have no end")
		}
		seen[string(next)] = true
		params = append(append([]byte(`{"cursor":`), next...), '}')
	}
}

// maxTTL bounds ttlMs.
const maxTTL = time.Hour

// ttlOf returns how long anyone may cache a page (CACHE-26-006), or zero.
func ttlOf(page json.RawMessage) time.Duration {
	scope, _ := jsonx.Lookup(page, "cacheScope")
	if string(scope) != `"public"` {
		return 0
	}
	raw, _ := jsonx.Lookup(page, "ttlMs")
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(ms > 0) {
		return 0
	}
	return time.Duration(min(ms, float64(maxTTL.Milliseconds()))) * time.Millisecond
}

// entriesOf returns the entries of a page and the cursor of the next page, nil for the last.
func (up *upstream) entriesOf(k *listKind, page json.RawMessage) (out []entry, next json.RawMessage, err error) {
	list, _ := jsonx.Lookup(page, k.Member)
	if jsonx.KindOf(list) != '[' {
		return nil, nil, fmt.Errorf("the result has no array %q", k.Member)
	}
	for e := range jsonx.Elements(list) {
		v, _ := jsonx.Lookup(e, k.Key)
		id, err := jsonx.Unquote(v)
		if err != nil || !up.offers(k, id) {
			continue // without a name, no caller could use it
		}
		found := entry{up: up, id: id, raw: e}
		if k == listTemplates && len(out) < maxTemplates {
			found.template, _ = urimatch.New(id) // nil: matches nothing
		}
		if out = append(out, found); len(out) > maxEntries {
			break // the caller reports it
		}
	}
	if next, ok := jsonx.Lookup(page, "nextCursor"); ok && string(next) != "null" {
		return out, next, nil
	}
	return out, nil, nil
}

// encodeList encodes entries as one page.
func encodeList(k *listKind, entries iter.Seq[*entry]) json.RawMessage {
	out := append(jsonx.AppendString([]byte{'{'}, k.Member), `:[`...)
	first := true
	for e := range entries {
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(out, e.raw...)
	}
	return append(out, "]}"...)
}

// forPages reports whether a tool is only for the pages of tools, not for models.
func forPages(tool json.RawMessage) bool {
	raw, _ := jsonx.LookupPath(tool, "_meta", "ui", "visibility")
	if jsonx.KindOf(raw) != '[' {
		return false
	}
	pages := false
	for e := range jsonx.Elements(raw) {
		if string(e) == `"model"` {
			return false
		}
		pages = true
	}
	return pages
}
