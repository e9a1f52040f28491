package policy

import (
	"context"
	"encoding/json"
	"iter"
	"sync"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// featureList is one of the lists of a server, and the kind of its features.
type featureList struct {
	feature.List
	kind mcp.Kind
}

var (
	toolList     = &featureList{feature.Tools, mcp.KindTool}
	promptList   = &featureList{feature.Prompts, mcp.KindPrompt}
	resourceList = &featureList{feature.Resources, mcp.KindResource}
	templateList = &featureList{feature.Templates, mcp.KindResource}
)

func listOf(method string) *featureList {
	for _, l := range []*featureList{toolList, promptList, resourceList, templateList} {
		if l.Method == method {
			return l
		}
	}
	return nil
}

// list answers with the entries of a page that the caller may see. Pages keep their cursors, so a
// page before the last may be empty.
func (g *gate) list(ctx context.Context, req *mcp.Request, next mcp.Handler, l *featureList) (mcp.Result, error) {
	res, err := next.Handle(ctx, req)
	if err != nil {
		return nil, err
	}
	raw := res.JSON()
	entries, _ := jsonx.Lookup(raw, l.Member)
	cursor, more := jsonx.Lookup(raw, "nextCursor")
	g.census(l, jsonx.Elements(entries), more && string(cursor) != "null")
	shown := filter(raw, l.Member, func(entry json.RawMessage) bool { return g.shows(ctx, l, entry) })
	// The result is for this caller only, and the caller may soon see more.
	return mcp.RawResult(jsonx.With(nil, jsonx.With(nil, shown, "ttlMs", []byte("0")), "cacheScope", []byte(`"private"`))), nil
}

// shows reports whether the caller may see an entry of a list.
func (g *gate) shows(ctx context.Context, l *featureList, entry json.RawMessage) bool {
	a := g.entry(ctx, l, entry)
	if a == nil {
		return false // an entry without a name cannot be used
	}
	d := g.policy.Decide(ctx, a)
	if d.Err != nil {
		g.refused(ctx, a, &d)
	}
	return d.visible()
}

// census compares the names in a Require with a page of a list.
func (g *gate) census(l *featureList, entries iter.Seq[json.RawMessage], more bool) {
	if r, ok := g.policy.(*Require); ok {
		r.unlisted.page(g, l, entries, more, r.namesOf(l), g.log)
	}
}

// Leaves returns a bitmap of the entries of a whole list that the caller of ctx may see. A
// gateway uses it to encode a list once for all callers who see the same entries. Lists with the
// same serial, which is not zero, are equal.
func (h *guarded) Leaves(ctx context.Context, method string, serial uint64, entries iter.Seq[json.RawMessage]) (left string) {
	g := h.gate
	l := listOf(method)
	v, ok := g.policy.(Versioned)
	if l == nil {
		return ""
	}
	if !ok || serial == 0 {
		return g.leaves(ctx, l, entries)
	}
	key := chosenKey{serial: serial, version: v.Version(), caller: auth.From(ctx), id: principal.From(ctx), says: forward.CallerKey(ctx)}
	if left, ok := g.chosen.get(key); ok {
		return left
	}
	left = g.leaves(ctx, l, entries)
	g.chosen.put(key, left)
	return left
}

// leaves asks the policy about each entry.
func (g *gate) leaves(ctx context.Context, l *featureList, entries iter.Seq[json.RawMessage]) string {
	g.census(l, entries, false)
	var bits []byte
	i := 0
	for e := range entries {
		if i%8 == 0 {
			bits = append(bits, 0)
		}
		if g.shows(ctx, l, e) {
			bits[i/8] |= 1 << (i % 8)
		}
		i++
	}
	return string(bits)
}

// chosen caches the bitmaps of lists. The zero value is ready for use.
type chosen struct {
	mu   sync.Mutex
	left map[chosenKey]string // guarded by mu
}

// chosenKey holds everything that a decision about an entry may depend on.
type chosenKey struct {
	serial  uint64          // of the list
	version any             // of the policy
	caller  *auth.Principal // a Guard uses the same pointer for all requests with one credential
	id      string
	says    string // forward.CallerKey
}

// maxChosen bounds the cached bitmaps.
const maxChosen = 500

func (c *chosen) get(key chosenKey) (left string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left, ok = c.left[key]
	return left, ok
}

func (c *chosen) put(key chosenKey, left string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == nil || len(c.left) >= maxChosen {
		c.left = map[chosenKey]string{}
	}
	c.left[key] = left
}

// entry is the access to an entry of a list, or nil if it has no name.
func (g *gate) entry(ctx context.Context, l *featureList, raw json.RawMessage) *Access {
	name := nameOf(raw, l.Key)
	if name == "" {
		return nil
	}
	a := g.access(ctx, l.Use)
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

// filter returns obj with only the wanted elements in an array member.
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
