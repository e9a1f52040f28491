package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/urimatch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Bounds of what one upstream can put into a list.
const (
	maxPages   = 1000
	maxEntries = 100_000

	maxListBytes = 64 << 20
	maxTemplates = 200 // that URIs are held against
)

// listKind is one of the lists of a server.
type listKind struct {
	method     string
	member     string // of the result that holds the entries
	key        string // of an entry that tells it from others
	capability string // of servers that have some; empty: it is not known, and the list is not kept
	change     changeSet
}

var (
	listTools     = &listKind{"tools/list", "tools", "name", "tools", 1}
	listPrompts   = &listKind{"prompts/list", "prompts", "name", "prompts", 2}
	listResources = &listKind{"resources/list", "resources", "uri", "resources", 4}
	listTemplates = &listKind{"resources/templates/list", "resourceTemplates", "uriTemplate", "resources", 4}
	listTasks     = &listKind{method: "tasks/list", member: "tasks", key: "taskId"}
)

// listOf is the list of a method, nil if it asks for none.
func listOf(method string) *listKind {
	for _, k := range []*listKind{listTools, listPrompts, listResources, listTemplates, listTasks} {
		if k.method == method {
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

	template *urimatch.Template // of the id of a URI template, nil if it makes no sense
}

// is tells whether a URI is that of the entry, or its template, or matches that.
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

// entries asks every upstream for a list, at once, and returns what there is, in the
// order of the upstreams. Of is shown for what a caller is told, and listed for what has to
// be known to route.
func (g *Gateway) entries(ctx context.Context, k *listKind, of func(*upstream, context.Context, *listKind) []entry) []entry {
	ups := g.upstreams()
	found := make([][]entry, len(ups))
	var wg sync.WaitGroup
	for i, up := range ups {
		wg.Go(func() { found[i] = of(up, ctx, k) })
	}
	wg.Wait()
	var out []entry
	for _, es := range found {
		out = append(out, es...)
	}
	return out
}

// listed returns what the caller is to see of a list of the server, nothing if the server
// does not answer. It is asked once more if the connection is lost meanwhile.
func (up *upstream) listed(ctx context.Context, k *listKind) []entry {
	ctx, cancel := context.WithTimeoutCause(ctx, up.g.listTimeout(), errSlow)
	defer cancel()
	who := clientOf(ctx)
	if up.fixed != nil {
		entries, _ := up.fetch(ctx, up.fixed, who.all(), k)
		return entries
	}
	for again := false; ; again = true {
		c, kept, err := up.pool.forList(ctx, who, k)
		switch {
		case err != nil:
			if h := hurryOf(ctx); h != nil && errors.Is(err, errStarting) {
				h.misses(up.name)
			}
			up.g.log().Debug("server missing from a list", "server", up.name, "method", k.method, "err", err)
			return nil
		case c == nil:
			return kept
		}
		whose := who.all()
		if c.own {
			whose = up.pool.ownerOf(who)
		}
		entries, err := up.fetchSoon(ctx, c, whose, k)
		up.pool.release(c, nil, nil)
		if again || err == nil || !c.lost(ctx, err) { // T-29
			return entries
		}
		up.pool.lose(c, err)
	}
}

var errSlow = errors.New("no answer in time (Gateway.ListTimeout)")

// fetch gets a list from a connection and keeps it for a client. With an error it returns
// what came before that.
func (up *upstream) fetch(ctx context.Context, c *conn, who client, k *listKind) ([]entry, error) {
	if !c.offers(k) {
		return nil, nil
	}
	if _, reason := c.lists.silent(); reason != "" {
		c.lists.probe(
			func(ctx context.Context) error { _, err := c.list(ctx, up, k); return err },
			func() { up.listsChanged("") })
		return nil, nil
	}
	entries, err := c.list(ctx, up, k)
	var rpc *mcp.Error
	switch {
	case err == nil:
		if k.capability != "" {
			up.kept.put(who, k, entries)
		}
		return entries, nil
	case errors.As(err, &rpc) && rpc.Code == mcp.CodeMethodNotFound: // it has none of these
		return nil, nil
	case errors.Is(context.Cause(ctx), errSlow):
		reason := fmt.Sprintf("%s: no answer within %v", k.method, up.g.listTimeout())
		if c.lists.fell(reason) {
			up.listsChanged(reason)
		}
	case rpc != nil && hop.Loops(rpc.Message):
		if c.lists.fell(leadsBack) {
			up.listsChanged(leadsBack)
		}
	default:
		up.g.log().Warn("server missing from a list", "server", up.name, "method", k.method, "err", err)
	}
	return entries, err
}

// leadsBack is why a server is failing that forwards to this gateway.
const leadsBack = "it leads back here: remove it, or what leads back, from the configuration"

// listsChanged takes note that the server does not answer lists, or does again.
func (up *upstream) listsChanged(reason string) {
	if reason != "" {
		up.g.log().Warn("server missing from lists", "server", up.name, "err", reason)
	}
	up.g.announce(changedAll)
	if up.pool != nil {
		up.pool.tell()
	}
}

// refetch gets lists over the main connection: for names with a hash, for the time when the
// server is not running, and to find out whether it answers. What was kept of them is dropped. It
// returns which lists are others than were kept.
func (up *upstream) refetch(c *conn, set changeSet) (changed changeSet) {
	for _, k := range []*listKind{listTools, listPrompts, listResources, listTemplates} {
		if k.change&set == 0 {
			continue
		}
		before := up.kept.list(client{}, k)
		up.kept.drop(k)
		ctx, cancel := context.WithTimeoutCause(up.pool.ctx, up.g.listTimeout(), errSlow)
		up.fetch(ctx, c, client{}, k)
		cancel()
		after := up.kept.list(client{}, k)
		_, silent := c.lists.silent()
		switch {
		case after == nil && before == nil && (silent != "" || !c.offers(k)): // there was nothing, and is nothing
		case !after.equal(before):
			changed |= k.change
		}
	}
	up.pool.tell() // the counts
	return changed
}

// list gets all pages of a list.
func (c *conn) list(ctx context.Context, up *upstream, k *listKind) ([]entry, error) {
	var out []entry
	params := json.RawMessage(`{}`)
	seen, size := map[string]bool{}, 0
	for {
		res, err := c.h.Handle(ctx, &mcp.Request{Method: k.method, Params: params})
		if err != nil {
			return out, err
		}
		raw := mcp.ResultJSON(res)
		page, next, err := up.entriesOf(k, raw)
		if out = append(out, page...); len(out) > maxEntries {
			return out[:maxEntries], fmt.Errorf("more than %d entries", maxEntries)
		}
		for i := max(maxTemplates, len(out)-len(page)); i < len(out); i++ {
			out[i].template = nil
		}
		if size += len(raw); size > maxListBytes {
			return out, fmt.Errorf("more than %d bytes", maxListBytes)
		}
		if err != nil || next == nil {
			return out, err
		}
		if seen[string(next)] || len(seen) >= maxPages {
			return out, errors.New("the pages have no end")
		}
		seen[string(next)] = true
		params = append(append([]byte(`{"cursor":`), next...), '}')
	}
}

// entriesOf reads the entries of a page, and the cursor of the next; nil if it is the last.
func (up *upstream) entriesOf(k *listKind, page json.RawMessage) (out []entry, next json.RawMessage, err error) {
	list, _ := jsonx.Lookup(page, k.member)
	if jsonx.KindOf(list) != '[' {
		return nil, nil, fmt.Errorf("the result has no array %q", k.member)
	}
	for e := range jsonx.Elements(list) {
		v, _ := jsonx.Lookup(e, k.key)
		id, err := jsonx.Unquote(v)
		if err != nil || !up.offers(k, id) {
			continue // no caller could use what has no name
		}
		found := entry{up: up, id: id, raw: e}
		if k == listTemplates && len(out) < maxTemplates {
			found.template, _ = urimatch.New(id) // nil: it matches nothing
		}
		if out = append(out, found); len(out) > maxEntries {
			break // whoever asked says so
		}
	}
	if next, ok := jsonx.Lookup(page, "nextCursor"); ok && string(next) != "null" {
		return out, next, nil
	}
	return out, nil, nil
}

// encodeList makes one page of entries.
func encodeList(k *listKind, entries []entry) json.RawMessage {
	out := append(jsonx.AppendString([]byte{'{'}, k.member), `:[`...)
	for i, e := range entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e.raw...)
	}
	return append(out, "]}"...)
}

// list merges the lists of the upstreams into one page. What two upstreams would
// offer under one URI belongs to the first. What comes too late for it is told to have changed.
func (g *Gateway) list(ctx context.Context, k *listKind) (mcp.Result, error) {
	out := jsonx.AppendString([]byte{'{'}, k.member)
	out = append(out, ':', '[')
	seen := map[string]bool{}
	call := mcp.CallFrom(ctx)
	soon := &hurry{until: time.Now().Add(listPatience)}
	ctx = context.WithValue(ctx, hurryKey{}, soon)
	showsPages := call != nil && call.Capabilities.Has("extensions", extUI)
	for _, e := range g.entries(ctx, k, (*upstream).shown) {
		if k == listTools && !showsPages && forPages(e.raw) { // T-122
			continue
		}
		id := e.id
		if k.key == "name" {
			id = nameOf(e.up.prefix, e.up.name, id)
		}
		if seen[id] {
			g.log().Debug("taken by another feature", "server", e.up.name, "name", id)
			continue
		}
		if len(seen) > 0 {
			out = append(out, ',')
		}
		seen[id] = true
		if id != e.id {
			e.raw = jsonx.With(nil, e.raw, k.key, jsonx.AppendString(nil, id))
		}
		out = append(out, e.raw...)
	}
	out = append(out, ']')
	if g.Middleware != nil { // it may leave more to one than to another
		out = append(out, `,"ttlMs":0,"cacheScope":"private"`...)
	}
	return mcp.RawResult(append(soon.appendMeta(out, g.Middleware != nil), '}')), nil
}

// forPages tells whether a tool is for the pages of tools and not for models.
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
