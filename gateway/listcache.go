package gateway

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/definition"
)

// listCache holds the lists of a server as clients last received them. They map names and URIs to
// features, and replace the server's own lists while it is not running. A list of one principal is
// never used for another. The zero value is ready for use.
type listCache struct {
	mu     sync.Mutex
	lists  map[keptKey]*keptList // guarded by mu
	former map[keptKey]*keptList // see formerOwner; guarded by mu
}

type keptKey struct {
	who    client
	method string
}

// keptList is one list of one server. Only its digests change once it is made.
type keptList struct {
	// serial is unique in the process: two lists with the same serial are equal. Zero: the list is
	// returned once and not kept.
	serial uint64

	entries []entry           // nil if the list is long and was kept without them
	long    bool              // too long to keep the entries
	size    int               // bytes of the entries
	ids     map[string]bool   // of the entries
	matched []entry           // templates among the entries
	names   map[string]string // for names with a hash: the id of the entry by that name

	digests *definition.Digests // of the definitions of tools that were called
}

var lastSerial atomic.Uint64

// each yields the entries in the form in which the server sent them.
func (l *keptList) each(yield func(json.RawMessage) bool) {
	for i := range l.entries {
		if !yield(l.entries[i].raw) {
			return
		}
	}
}

// Bounds of the lists kept for one server.
const (
	maxKept      = 400     // lists
	maxKeptBytes = 4 << 20 // of one list; of a longer one only the ids are kept, and it is fetched each time
)

// has reports whether a URI is in the list or matches one of its templates.
func (l *keptList) has(uri string) bool {
	return l.ids[uri] || slices.ContainsFunc(l.matched, func(e entry) bool { return e.is(uri) })
}

// equal reports whether two lists have the same text. A list that is not kept equals none.
func (l *keptList) equal(m *keptList) bool {
	return l != nil && m != nil && (l == m || slices.EqualFunc(l.entries, m.entries, sameText))
}

func sameText(a, b entry) bool { return bytes.Equal(a.raw, b.raw) }

func (k *listCache) list(who client, kind *listKind) *keptList {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lists[keptKey{who, kind.Method}]
}

// anyHas reports whether a list of any client has a feature.
func (k *listCache) anyHas(kind *listKind, id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, l := range k.lists {
		if key.method == kind.Method && l.ids[id] {
			return true
		}
	}
	return false
}

// lookup reports whether a list of any client is kept, and whether one has a feature, by its own name or by
// one with a hash.
func (k *listCache) lookup(kind *listKind, name string) (kept, has bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, l := range k.lists {
		if key.method != kind.Method {
			continue
		}
		if kept = true; l.ids[name] || l.names[name] != "" {
			return true, true
		}
	}
	return kept, false
}

// get returns a list, or nil if its entries are not kept.
func (k *listCache) get(who client, kind *listKind) *keptList {
	l := k.list(who, kind)
	if l == nil || l.long {
		return nil
	}
	return l
}

// count returns the length of the list for callers without a principal, or -1 if it is not kept.
func (k *listCache) count(kind *listKind) int {
	l := k.list(client{}, kind)
	if l == nil {
		return -1
	}
	if l.long {
		return len(l.ids)
	}
	return len(l.entries)
}

// put keeps a list and returns it. If an equal list is already kept, put returns that one, so that
// results derived from it can be reused.
func (k *listCache) put(who client, kind *listKind, entries []entry) *keptList {
	key := keptKey{who, kind.Method}
	k.mu.Lock()
	before := []*keptList{k.lists[key], k.lists[keptKey{client{}, kind.Method}]}
	k.mu.Unlock()
	for _, l := range before {
		if l.made(entries) {
			k.set(key, l)
			return l
		}
	}
	l := newKeptList(kind, entries)
	if !l.long {
		k.set(key, l)
		return l
	}
	short := *l
	short.entries = nil
	for i := range short.matched {
		short.matched[i].raw = nil
	}
	k.set(key, &short)
	return l
}

// made reports whether the list has exactly these entries.
func (l *keptList) made(entries []entry) bool {
	return l != nil && !l.long && slices.EqualFunc(l.entries, entries, sameText)
}

// newKeptList makes a list and copies the entries unless they are too long.
func newKeptList(kind *listKind, entries []entry) *keptList {
	l := &keptList{entries: entries, ids: make(map[string]bool, len(entries)), digests: new(definition.Digests)}
	for _, e := range entries {
		l.size += len(e.raw)
	}
	if l.long = l.size > maxKeptBytes; !l.long {
		l.serial = lastSerial.Add(1)
		l.entries = slices.Clone(entries)
	}
	for i := range l.entries {
		e := &l.entries[i]
		if !l.long {
			e.raw = bytes.Clone(e.raw)
		}
		l.ids[e.id] = true
		if e.template != nil {
			l.matched = append(l.matched, *e)
		}
		if kind.Key != "name" {
			continue
		}
		name := nameOf(e.up.prefix, e.up.name, e.id)
		if _, ok := e.up.plain(name); !ok {
			if l.names == nil {
				l.names = map[string]string{}
			}
			l.names[name] = e.id
		}
	}
	return l
}

func (k *listCache) set(key keptKey, l *keptList) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lists == nil {
		k.lists = map[keptKey]*keptList{}
	}
	if _, ok := k.lists[key]; !ok && len(k.lists) >= maxKept {
		for other := range k.lists { // any one: it is fetched again when needed
			delete(k.lists, other)
			break
		}
	}
	k.lists[key] = l
	delete(k.former, key)
}

// forget drops the lists of a client.
func (k *listCache) forget(who client) {
	k.dropIf(func(key keptKey) bool { return key.who == who })
}

// drop drops a list of all clients.
func (k *listCache) drop(kind *listKind) {
	k.mu.Lock()
	k.remember(k.lists, kind)
	k.mu.Unlock()
	k.dropIf(func(key keptKey) bool { return key.method == kind.Method })
}

func (k *listCache) dropIf(gone func(keptKey) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.lists, func(key keptKey, _ *keptList) bool { return gone(key) })
}
