package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Bounds of a listing, for servers that never stop sending pages.
const (
	maxPages = 10_000
	maxItems = 1_000_000
)

// A listing iterates over the pages of one list of a server.
type listing struct {
	s    *Session
	of   feature.List
	opts []CallOption

	cursor json.RawMessage // of the page to fetch, nil for the first
	pages  int             // fetched so far
	seen   map[mark]bool   // cursors
	items  int             // so far, on all pages

	cached bool          // a page came from the cache
	told   map[mark]bool // keys of entries yielded, if pages may come from the cache
	before map[mark]bool // keys not to yield again, after a restart
}

// mark is the hash of a value from a server. It is kept instead of the value, which may be long.
type mark [sha256.Size]byte

func markOf(raw json.RawMessage) mark { return sha256.Sum256(raw) }

// listOf iterates over all pages of a list. Each entry is an object.
func listOf[T any](ctx context.Context, s *Session, of feature.List, opts []CallOption) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		l := &listing{s: s, of: of, opts: opts, seen: map[mark]bool{}, told: map[mark]bool{}}
		for more := true; more; {
			page, err := l.page(ctx)
			if err != nil {
				yield(nil, fmt.Errorf("%s: %w", of.Method, err))
				return
			}
			list, _ := jsonx.Lookup(page, of.Member)
			for e := range jsonx.Elements(list) {
				if l.items++; l.items > maxItems {
					yield(nil, fmt.Errorf("%s: more than %d entries", of.Method, maxItems))
					return
				}
				item := new(T)
				if err := l.entry(e, item); err != nil {
					s.log.WarnContext(ctx, "list entry left out", "method", of.Method, "index", l.items-1, "err", err)
					continue
				}
				if l.again(e) {
					continue
				}
				if !yield(item, nil) {
					return
				}
			}
			if more, err = l.next(page); err != nil {
				yield(nil, fmt.Errorf("%s: %w", of.Method, err))
				return
			}
		}
	}
}

// page fetches the page of the cursor.
func (l *listing) page(ctx context.Context) (json.RawMessage, error) {
	for {
		params := json.RawMessage(`{}`)
		if l.cursor != nil {
			params = append(append([]byte(`{"cursor":`), l.cursor...), '}')
		}
		x := l.s.outgoing(l.opts)
		raw, err := x.send(ctx, l.s, l.of.Method, params)
		l.cached = l.cached || x.Cached()
		if err == nil {
			if list, _ := jsonx.Lookup(raw, l.of.Member); jsonx.KindOf(list) != '[' {
				return nil, fmt.Errorf("the result has no array %q", l.of.Member)
			}
			if x.opts.page != nil {
				var meta Meta
				if m, ok := jsonx.Lookup(raw, "_meta"); ok {
					_ = jsonx.Unmarshal(m, &meta) // a value that is not an object holds nothing
				}
				x.opts.page(meta)
			}
			return raw, nil
		}
		var rpc *Error
		if l.cursor == nil || !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
			return nil, err
		}
		l.s.remote.DropCached(l.of.Method)
		if !l.cached {
			return nil, fmt.Errorf("the server refuses the cursor it gave after page %d; the list may have changed, list again: %w", l.pages, err)
		}
		// A cached page named a cursor that is no longer valid (CACHE-26-017): restart once,
		// without the entries that were already yielded.
		l.before, l.told, l.cached = l.told, map[mark]bool{}, false
		l.cursor, l.pages, l.items, l.seen = nil, 0, 0, map[mark]bool{}
		l.opts = append(append([]CallOption(nil), l.opts...), WithoutCache())
	}
}

// entry decodes an entry of the list.
func (l *listing) entry(raw json.RawMessage, item any) error {
	if jsonx.KindOf(raw) != '{' { // null fits any type
		return errors.New("want an object")
	}
	if key, _ := jsonx.Lookup(raw, l.of.Key); jsonx.KindOf(key) != '"' {
		return fmt.Errorf("it has no %q", l.of.Key)
	}
	if u, ok := item.(json.Unmarshaler); ok { // at once, because the codec would look at it twice
		return u.UnmarshalJSON(raw)
	}
	return jsonx.Unmarshal(raw, item)
}

// again reports whether an entry was yielded before a restart.
func (l *listing) again(raw json.RawMessage) bool {
	if !l.s.remote.Rev.Cacheable(l.of.Method) {
		return false
	}
	key, _ := jsonx.Lookup(raw, l.of.Key)
	if l.before[markOf(key)] {
		return true
	}
	l.told[markOf(key)] = true
	return false
}

// next reads the cursor of the next page; false if there is none.
func (l *listing) next(page json.RawMessage) (bool, error) {
	next, ok := jsonx.Lookup(page, "nextCursor")
	if !ok || string(next) == "null" {
		return false, nil
	}
	if l.seen[markOf(next)] {
		return false, fmt.Errorf("the server's pages have no end: cursor %s comes again", text.Short(string(next)))
	}
	if l.pages++; l.pages >= maxPages {
		return false, fmt.Errorf("more than %d pages", maxPages)
	}
	l.seen[markOf(next)] = true
	l.cursor = append(json.RawMessage(nil), next...)
	return true, nil
}
