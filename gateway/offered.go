package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// offered forwards requests for what callers may use: a tool or prompt that the server lists, by
// its exact name. Any other name gets the answer that a policy gives when it refuses, without
// asking the server: the server's own answer would differ, and it may have hidden tools or accept
// other spellings.
func (up *upstream) offered(ctx context.Context, method string, params json.RawMessage) (mcp.Result, error) {
	if revision.OfTasks(method) {
		res, err := up.narrowed(ctx, &mcp.Request{Method: method, Params: params})
		return orKept(ctx, method, res, err)
	}
	req := &mcp.Request{Method: method, Params: params}
	if _, err := up.missing(ctx, req); err != nil {
		return nil, err
	}
	return up.narrowed(ctx, req)
}

// missing returns the error of a request for a tool or prompt that the server does not list, or whose list
// cannot be had; unlisted is true for the former.
func (up *upstream) missing(ctx context.Context, req *mcp.Request) (unlisted bool, err error) {
	k, name := named(req.Method, req.Params)
	if k == nil {
		return false, nil
	}
	if unlisted, err = up.mustList(ctx, k, name); err != nil {
		return unlisted, unsent{err}
	}
	return false, nil
}

// unsent is the error of a request that the gateway has not sent to the server.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

// Unsent returns true: package metrics does not count the request as one to the server.
func (unsent) Unsent() bool { return true }

// offers reports whether callers may see a feature (Source.Offers).
func (up *upstream) offers(k *listKind, id string) bool {
	return k != listTools || up.pool == nil || up.pool.src.Offers == nil || up.pool.src.Offers(id)
}

// Has reports whether the gateway has a server of that name.
func (g *Gateway) Has(server string) bool {
	return slices.ContainsFunc(g.upstreams(), func(up *upstream) bool { return up.name == server })
}

// Lists reports whether a server lists a tool, by the server's own name for it, as far as the gateway
// has seen: it does not ask the server. It is the Listed of package metrics.
func (g *Gateway) Lists(server, tool string) bool {
	for _, up := range g.upstreams() {
		if up.name == server {
			return up.cache.anyHas(listTools, tool)
		}
	}
	return false
}

// Owner returns the server of a tool or prompt, given the name that callers use, and the server's own
// name for it, or "" where the name has only a hash of that (see [Name]). The server is "" if there
// is none. It is the Owner of package metrics.
func (g *Gateway) Owner(name string) (server, feature string) {
	up := g.serverOf(name)
	if up == nil {
		return "", ""
	}
	own, ok := up.plain(name)
	if !ok {
		return up.name, ""
	}
	return up.name, own
}

// Unlisted reports whether no server lists a tool, by the name that callers use or by the server's own, as
// far as the gateway has seen: it asks no server. The argument server is the server's name, if it is known.
// Unlisted returns false while a server that the tool may belong to has not been asked for its tools. It is
// the Unlisted of an audit.Trail.
func (g *Gateway) Unlisted(server, tool string) bool {
	owner := g.serverOf(tool)
	for _, up := range g.upstreams() {
		seen, listed := up.cache.lookup(listTools, tool)
		if !listed && up == owner {
			own, _ := up.plain(tool)
			_, listed = up.cache.lookup(listTools, own)
		}
		if listed || !seen && (up == owner || up.name == server) {
			return false
		}
	}
	return true
}

// narrowed answers a request in the server's own terms, without the tools that Source.Offers leaves
// out. Pages keep their cursors, so a page that is not the last may be empty.
func (up *upstream) narrowed(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if up.pool == nil || up.pool.src.Offers == nil {
		return up.forward(ctx, req.Method, req.Params)
	}
	switch req.Method {
	case "tools/call":
		name, err := member(req.Method, req.Params, "name")
		if err != nil {
			return nil, err
		}
		if !up.offers(listTools, name) {
			return nil, unsent{absent(listTools, name)}
		}
	case listTools.Method:
		res, err := up.forward(ctx, req.Method, req.Params)
		if err != nil {
			return nil, err
		}
		page := res.JSON()
		entries, _, err := up.entriesOf(listTools, page)
		if err != nil {
			return nil, err
		}
		list, _ := jsonx.Lookup(encodeList(listTools, part{list: &keptList{entries: entries}}.entries), listTools.Member)
		return mcp.RawResult(jsonx.With(nil, page, listTools.Member, list)), nil
	}
	return up.forward(ctx, req.Method, req.Params)
}

// named returns the name, as JSON, of the tool or prompt that a request is about, and the list that
// must contain it, or nil if it is about neither.
func named(method string, params json.RawMessage) (k *listKind, name json.RawMessage) {
	switch method {
	case "tools/call":
		k = listTools
	case "prompts/get":
		k = listPrompts
	case "completion/complete":
		params, _ = jsonx.Lookup(params, "ref")
		if kind, _ := jsonx.Lookup(params, "type"); string(kind) != `"ref/prompt"` {
			return nil, nil
		}
		k = listPrompts
	default:
		return nil, nil
	}
	name, _ = jsonx.Lookup(params, "name")
	return k, name
}

// mustList returns no error if the server lists a feature. If no kept list has it, mustList asks the
// server for the list again, because the feature may be new. Unlisted is true if that list does not have it
// either.
func (up *upstream) mustList(ctx context.Context, k *listKind, quoted json.RawMessage) (unlisted bool, err error) {
	if up.cache.list(client{}, k).lists(quoted) { // most common: does not look at the caller
		return false, nil
	}
	for _, who := range up.views(clientOf(ctx)) {
		if up.cache.list(who, k).lists(quoted) {
			return false, nil
		}
	}
	name, err := jsonx.Unquote(quoted)
	if err != nil {
		return false, mcp.Errorf(jsonrpc.CodeInvalidParams, "%q must be a string", "name")
	}
	entries, err := up.relist(ctx, k)
	for i := range entries {
		if entries[i].id == name {
			return false, nil
		}
	}
	var rpc *mcp.Error
	switch {
	case err == nil:
		return true, absent(k, name)
	case errors.As(err, &rpc):
		return false, err
	}
	return false, mcp.Errorf(jsonrpc.CodeInternal, "server %q offers only what it lists, but %s failed: %v", text.Short(up.name), k.Method, err)
}

// lists reports whether a name, given as JSON, is in the list. It returns false for a nil list.
func (l *keptList) lists(quoted json.RawMessage) bool {
	if l == nil || len(quoted) < 2 {
		return false
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		return l.ids[string(quoted[1:len(quoted)-1])]
	}
	name, err := jsonx.Unquote(quoted)
	return err == nil && l.ids[name]
}

// absent returns the error for a name that is in no list. A policy refuses with the same error.
func absent(k *listKind, name string) error {
	return mcp.Errorf(jsonrpc.CodeInvalidParams, "no %s %q; see %s", k.Member[:len(k.Member)-1], text.Short(name), k.Method)
}

// renamed returns err. If err says that the server does not have its own name for a feature,
// renamed replaces that by the name that callers use, and keeps err as the cause: it may be a refusal.
func renamed(err error, k *listKind, own, name string) error {
	var rpc *mcp.Error
	if own != name && errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeInvalidParams && rpc.Error() == absent(k, own).Error() {
		return &reworded{absent(k, name), err}
	}
	return err
}

// relisting holds the list requests in progress after a name was missing, at most one of each kind.
// The zero value is ready for use.
type relisting struct {
	mu      sync.Mutex
	running map[keptKey]*relisted // guarded by mu
	since   time.Time             // beginning of the current relistTime; guarded by mu
	recent  map[keptKey]*relisted // the last ones of the current relistTime; guarded by mu
}

const (
	maxRelists = 10 // lists that unknown names may cause in relistTime; further names get the last list
	relistTime = 5 * time.Second
)

// spent returns the last list if unknown names have caused all lists of the current relistTime, and else
// nil; mu is held.
func (r *relisting) spent(key keptKey, now time.Time) *relisted {
	if now.Sub(r.since) >= relistTime {
		r.since, r.recent = now, nil
	}
	if last := r.recent[key]; last != nil && last.nth >= maxRelists && last.err == nil {
		return last
	}
	return nil
}

// keep keeps a list that is done; mu is held.
func (r *relisting) keep(key keptKey, done *relisted) {
	if before := r.recent[key]; before != nil {
		done.nth = before.nth
	}
	done.nth++
	if r.recent == nil {
		r.recent = map[keptKey]*relisted{}
	}
	r.recent[key] = done
}

// relisted is one such list request. Entries and err are read after done is closed.
type relisted struct {
	begun   time.Time
	done    chan struct{}
	entries []entry
	err     error
	nth     int // in its relistTime, from 1
}

// relist asks the server for a list, over the connection that the caller's own request would use.
// If a request for the list is in progress, relist waits for it. It shares the answer of a request
// that began after relist was called. A caller that guesses names causes at most maxRelists lists in
// relistTime.
func (up *upstream) relist(ctx context.Context, k *listKind) ([]entry, error) {
	arrived := time.Now()
	c, whose := up.fixed, clientOf(ctx).all()
	if c == nil {
		var err error
		if c, err = up.pool.take(ctx, k.Method); err != nil {
			if next := up.continued(err); next != nil {
				return next.relist(ctx, k)
			}
			return nil, err
		}
		defer up.pool.release(c, nil, nil)
		if c.own {
			whose = up.pool.ownerOf(clientOf(ctx))
		}
	}
	key := keptKey{whose, k.Method}
	r := &up.relisting
	for {
		r.mu.Lock()
		if last := r.spent(key, arrived); last != nil {
			r.mu.Unlock()
			return last.entries, nil
		}
		other := r.running[key]
		if other == nil {
			mine := &relisted{begun: time.Now(), done: make(chan struct{})}
			if r.running == nil {
				r.running = map[keptKey]*relisted{}
			}
			r.running[key] = mine
			r.mu.Unlock()
			bound, cancel := context.WithTimeoutCause(ctx, up.g.listTimeout(), errSlow)
			var list *keptList
			if list, _, mine.err = up.fetch(bound, c, whose, k); list != nil {
				mine.entries = list.entries
			}
			cancel()
			if _, reason := c.lists.silent(); reason != "" && mine.err == nil {
				mine.err = errors.New(reason)
			}
			r.mu.Lock()
			delete(r.running, key)
			r.keep(key, mine)
			r.mu.Unlock()
			close(mine.done)
			return mine.entries, mine.err
		}
		r.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if other.err == nil && !other.begun.Before(arrived) {
			return other.entries, nil
		}
	}
}
