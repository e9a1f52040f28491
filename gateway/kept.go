package gateway

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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

// keptList is one list of one server. It is not changed once made.
type keptList struct {
	// serial is that of no other list in the process, so that two lists with one are the same.
	// Zero: the list is given once and not kept.
	serial uint64

	entries []entry           // nil in what is kept of one that is long
	long    bool              // the entries are too long to be kept
	size    int               // bytes of the entries
	ids     map[string]bool   // of the entries
	matched []entry           // those that are templates
	names   map[string]string // ids of the entries whose name has a hash, by that name
}

var lastSerial atomic.Uint64

// each yields the entries as the server sent them.
func (l *keptList) each(yield func(json.RawMessage) bool) {
	for i := range l.entries {
		if !yield(l.entries[i].raw) {
			return
		}
	}
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
	return l != nil && m != nil && (l == m || slices.EqualFunc(l.entries, m.entries, sameText))
}

func sameText(a, b entry) bool { return bytes.Equal(a.raw, b.raw) }

func (k *kept) list(who client, kind *listKind) *keptList {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lists[keptKey{who, kind.Method}]
}

// get returns a list, nil if its entries are not kept.
func (k *kept) get(who client, kind *listKind) *keptList {
	l := k.list(who, kind)
	if l == nil || l.long {
		return nil
	}
	return l
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

// put keeps a list, and returns it: the list that was kept before if that is the same, so that
// what was made of it is good for this one.
func (k *kept) put(who client, kind *listKind, entries []entry) *keptList {
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

// made tells whether the list is made of entries.
func (l *keptList) made(entries []entry) bool {
	return l != nil && !l.long && slices.EqualFunc(l.entries, entries, sameText)
}

// newKeptList makes a list of entries, which it copies unless they are too long.
func newKeptList(kind *listKind, entries []entry) *keptList {
	l := &keptList{entries: entries, ids: make(map[string]bool, len(entries))}
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

func (k *kept) set(key keptKey, l *keptList) {
	k.mu.Lock()
	defer k.mu.Unlock()
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
	k.dropIf(func(key keptKey) bool { return key.method == kind.Method })
}

func (k *kept) dropIf(gone func(keptKey) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.lists, func(key keptKey, _ *keptList) bool { return gone(key) })
}
