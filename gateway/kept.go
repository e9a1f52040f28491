package gateway

import (
	"bytes"
	"maps"
	"slices"
	"sync"
)

// kept are the lists of a server as clients last got them. They tell which feature a name
// or URI means, and are given instead of the server's own while it is not running. What
// one principal was given is never used for another. The zero value is ready for use.
type kept struct {
	mu    sync.Mutex
	lists map[keptKey]*keptList // guarded by mu
}

type keptKey struct {
	who    client
	method string
}

// keptList is not changed once made.
type keptList struct {
	entries []entry           // nil if long
	long    bool              // the entries are too long to be kept
	ids     map[string]bool   // of the entries
	matched []entry           // those that are templates
	names   map[string]string // ids of the entries whose name has a hash, by that name
}

// Bounds of what is kept of one server.
const (
	maxKept      = 400     // lists
	maxKeptBytes = 4 << 20 // of one list; of longer ones only the names are, and they are fetched each time
)

// has tells whether a URI is in the list, or a template of the list matches it.
func (l *keptList) has(uri string) bool {
	return l.ids[uri] || slices.ContainsFunc(l.matched, func(e entry) bool { return e.is(uri) })
}

// equal tells whether two lists are the same text. One that is not kept equals none.
func (l *keptList) equal(m *keptList) bool {
	return l != nil && m != nil && slices.EqualFunc(l.entries, m.entries, func(a, b entry) bool { return bytes.Equal(a.raw, b.raw) })
}

func (k *kept) list(who client, kind *listKind) *keptList {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lists[keptKey{who, kind.method}]
}

// get returns the entries of a list, in the order of the server.
func (k *kept) get(who client, kind *listKind) ([]entry, bool) {
	l := k.list(who, kind)
	if l == nil || l.long {
		return nil, false
	}
	return l.entries, true
}

// count returns the length of the list of those without a principal, -1 if it is not kept.
func (k *kept) count(kind *listKind) int {
	l := k.list(client{}, kind)
	if l == nil {
		return -1
	}
	if l.long {
		return len(l.ids)
	}
	return len(l.entries)
}

// put keeps a list.
func (k *kept) put(who client, kind *listKind, entries []entry) {
	l := &keptList{entries: make([]entry, len(entries)), ids: make(map[string]bool, len(entries))}
	size := 0
	for i, e := range entries {
		e.raw = bytes.Clone(e.raw)
		l.entries[i] = e
		l.ids[e.id] = true
		if e.template != nil {
			l.matched = append(l.matched, e)
		}
		size += len(e.raw)
		if kind.key != "name" {
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
	key := keptKey{who, kind.method}
	k.mu.Lock()
	defer k.mu.Unlock()
	if size > maxKeptBytes {
		l.entries, l.long = nil, true
		for i := range l.matched {
			l.matched[i].raw = nil
		}
	}
	if k.lists == nil {
		k.lists = map[keptKey]*keptList{}
	}
	if _, ok := k.lists[key]; !ok && len(k.lists) >= maxKept {
		for other := range k.lists { // any: it is fetched again when it is wanted
			delete(k.lists, other)
			break
		}
	}
	k.lists[key] = l
}

// forget drops the lists of a client.
func (k *kept) forget(who client) {
	k.dropIf(func(key keptKey) bool { return key.who == who })
}

// drop drops a list of all clients.
func (k *kept) drop(kind *listKind) {
	k.dropIf(func(key keptKey) bool { return key.method == kind.method })
}

func (k *kept) dropIf(gone func(keptKey) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.lists, func(key keptKey, _ *keptList) bool { return gone(key) })
}
