package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// entry is a registered feature.
type entry interface {
	name() string
	json() json.RawMessage // as it is listed
}

// encoding is the JSON of a feature, made when it is first listed. The zero value is ready
// for use.
type encoding struct {
	made atomic.Pointer[json.RawMessage]
}

func (e *encoding) of(def any) json.RawMessage {
	if raw := e.made.Load(); raw != nil {
		return *raw
	}
	raw := encode(def)
	e.made.Store(&raw)
	return raw
}

// set holds the features of one kind in the order of their registration. Readers get an immutable
// snapshot, made on the first read after a change. The zero value is empty.
type set[E entry] struct {
	mu  sync.RWMutex
	seq uint64              // of the last entry; guarded by mu
	all map[string]place[E] // guarded by mu

	snap atomic.Pointer[snapshot[E]] // nil after a change; changed under mu
}

type place[E entry] struct {
	seq uint64
	e   E
}

// snapshot is a set at one moment.
type snapshot[E entry] struct {
	order []place[E]
	by    map[string]E

	mu    sync.Mutex
	pages map[uint64]Result // encoded pages by the place they start after; guarded by mu
	paged int               // entries on pages; guarded by mu
}

// put adds an entry, or puts it in the place of the one with the same name.
func (s *set[E]) put(e E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]place[E]{}
	}
	p, ok := s.all[e.name()]
	if !ok {
		s.seq++
		p.seq = s.seq
	}
	p.e = e
	s.all[e.name()] = p
	s.snap.Store(nil)
}

// remove deletes an entry and reports whether there was one.
func (s *set[E]) remove(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.all[name]; !ok {
		return false
	}
	delete(s.all, name)
	s.snap.Store(nil)
	return true
}

// used reports whether the set has, or ever had, an entry.
func (s *set[E]) used() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.seq > 0
}

// has reports whether the set has an entry of a name. It makes no snapshot, so that asking between additions
// does not cost the size of the set.
func (s *set[E]) has(name string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.all[name]
	return ok
}

func (s *set[E]) snapshot() *snapshot[E] {
	if snap := s.snap.Load(); snap != nil {
		return snap
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.snap.Load()
	if snap == nil {
		snap = &snapshot[E]{by: make(map[string]E, len(s.all)), pages: map[uint64]Result{}}
		for name, p := range s.all {
			snap.order = append(snap.order, p)
			snap.by[name] = p.e
		}
		slices.SortFunc(snap.order, func(a, b place[E]) int { return cmp.Compare(a.seq, b.seq) })
		s.snap.Store(snap)
	}
	return snap
}

// named finds an entry by its name in JSON.
func (s *snapshot[E]) named(raw json.RawMessage) (e E, ok bool) {
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		e, ok = s.by[string(raw[1:len(raw)-1])]
		return e, ok
	}
	name, err := jsonx.Unquote(raw)
	if err != nil {
		return e, false
	}
	e, ok = s.by[name]
	return e, ok
}

// listPage returns the page of a list that the cursor of the request selects. Entries are in the order
// of their registration, and adding or removing one does not move another to a different page
// (PAGE-26).
//
// If all callers see the same list, the page and its encoded forms are kept until the list changes.
func listPage[E entry, T Tool | Prompt | Resource | ResourceTemplate](ctx context.Context, s *Server, set *set[E], kind Kind, req *Request, def func(E) *T) (Result, error) {
	if !set.used() && kind != KindResourceTemplate && kind != KindResource {
		return nil, Errorf(jsonrpc.CodeMethodNotFound, "%s: this server has no %ss", req.Method, kind)
	}
	after, err := parseCursor(req)
	if err != nil {
		return nil, err
	}
	build := func(entries []E, next string) *List[T] {
		l := &List[T]{Items: make([]*T, len(entries)), NextCursor: next}
		for i, e := range entries {
			l.Items[i] = def(e)
		}
		return l
	}
	snap := set.snapshot()
	if s.Visible != nil {
		return build(snap.after(after, s.limits.PageSize, func(e E) bool { return s.visible(ctx, kind, e.name()) })), nil
	}
	snap.mu.Lock()
	defer snap.mu.Unlock()
	if l, ok := snap.pages[after]; ok {
		return l, nil
	}
	entries, next := snap.after(after, s.limits.PageSize, func(E) bool { return true })
	l := build(entries, next)
	l.memo = engine.NewMemo(l, encodePage(kind, entries, next))
	// A client can make up cursors, so the kept pages together have at most as many entries as the
	// list.
	if n := snap.paged + max(len(entries), 1); n <= max(len(snap.order), 1) {
		snap.pages[after], snap.paged = l, n
	}
	return l, nil
}

// encodePage builds the JSON of a page from the JSON of its entries.
func encodePage[E entry](kind Kind, entries []E, next string) json.RawMessage {
	raws := make([]json.RawMessage, len(entries))
	size := 100
	for i, e := range entries {
		raws[i] = e.json()
		size += len(raws[i]) + 1
	}
	out := append(append(append(make([]byte, 0, size), `{"`...), lists[kind].Member...), `":[`...)
	for i, raw := range raws {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	out = append(out, ']')
	if next != "" {
		out = jsonx.AppendString(append(out, `,"nextCursor":`...), next)
	}
	return append(out, '}')
}

// lists are the lists for each kind of entry.
var lists = map[Kind]feature.List{KindTool: feature.Tools, KindPrompt: feature.Prompts, KindResource: feature.Resources, KindResourceTemplate: feature.Templates}

// maxPageBytes bounds the entries of a page, because clients bound what they read, at 4 MiB in this
// package.
const maxPageBytes = 1 << 20

// after returns at most size visible entries after a place, and the cursor after them, or "" if
// they are the last.
func (s *snapshot[E]) after(seq uint64, size int, visible func(E) bool) (entries []E, next string) {
	start := sort.Search(len(s.order), func(i int) bool { return s.order[i].seq > seq })
	bytes := 0
	for _, p := range s.order[start:] {
		if !visible(p.e) {
			continue
		}
		bytes += len(p.e.json())
		if len(entries) == size || len(entries) > 0 && bytes > maxPageBytes {
			return entries, cursor(seq)
		}
		entries, seq = append(entries, p.e), p.seq
	}
	return entries, ""
}

// cursor names the place to continue after. Cursors are opaque to clients and stay valid across
// changes of the list.
func cursor(after uint64) string {
	return base64.RawURLEncoding.EncodeToString([]byte("p1." + strconv.FormatUint(after, 36)))
}

func parseCursor(req *Request) (uint64, error) {
	raw := req.Param("cursor")
	if raw == nil || string(raw) == "null" {
		return 0, nil
	}
	text, err := jsonx.Unquote(raw)
	if err == nil {
		var b []byte
		if b, err = base64.RawURLEncoding.DecodeString(text); err == nil {
			if seq, ok := strings.CutPrefix(string(b), "p1."); ok {
				if n, err := strconv.ParseUint(seq, 36, 64); err == nil {
					return n, nil
				}
			}
		}
	}
	return 0, Errorf(jsonrpc.CodeInvalidParams, "%s: the cursor is not one of this server; start without a cursor", req.Method)
}

// Remove removes features. Unknown features are ignored.
func (s *Server) Remove(features ...Feature) {
	for _, f := range features {
		gone := false
		switch f.Kind {
		case KindTool:
			gone = s.tools.remove(f.Name)
		case KindPrompt:
			gone = s.prompts.remove(f.Name)
		case KindResource:
			gone = s.resources.remove(f.Name)
		case KindResourceTemplate:
			gone = s.templates.remove(f.Name)
		}
		if gone {
			s.feed.changed(f.Kind)
		}
	}
}

// rawObject returns params' member that must be an object, {} if it is absent.
func rawObject(req *Request, name string) (json.RawMessage, error) {
	raw := req.Param(name)
	if raw == nil || string(raw) == "null" {
		return json.RawMessage(`{}`), nil
	}
	if jsonx.KindOf(raw) != '{' {
		return nil, Errorf(jsonrpc.CodeInvalidParams, "%s: %q must be an object", req.Method, name)
	}
	return raw, nil
}
