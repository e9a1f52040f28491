package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/revision"
)

// settle is the delay between a change and the notification to a listener, so that a burst of
// changes becomes one notification.
const settle = 10 * time.Millisecond

// patience is how long a slow listener may hold up the others.
const patience = 10 * time.Millisecond

// changeFeed notifies listeners of changes. A change is recorded with each listener that wants it,
// so that recording never blocks and its memory is bounded by the subscriptions. Each listen takes
// its changes on its own goroutine. One goroutine notifies all watches; while a slow watch holds
// it, another goroutine goes on with the rest. The zero value is ready for use.
type changeFeed struct {
	mu    sync.Mutex
	lists map[*listener]struct{}            // those that want changes of lists; guarded by mu
	uris  map[string]map[*listener]struct{} // by resource; guarded by mu
	tasks map[string]map[*listener]struct{} // by task; guarded by mu
	queue []*listener                       // watches to notify in the next round; guarded by mu
}

// listener is a listen or a watch.
type listener struct {
	kinds       kindSet  // list changes wanted
	uris, tasks []string // changes wanted

	wake chan struct{}                                     // of a listen; capacity 1
	tell func(method string, params json.RawMessage) error // of a watch

	// Changes that are not sent yet; guarded by mu of the feed.
	changed kindSet
	updated map[string]bool
	moved   map[string]bool // tasks
	busy    bool            // a watch that is in the queue or being notified
	gone    bool
}

// kindSet is a set of kinds, as bits.
type kindSet uint8

// changeNotes are the notifications of list changes, in the order of the bits.
var changeNotes = [...]struct {
	kind   Kind
	method string
}{
	{KindTool, revision.NoteToolsChanged},
	{KindPrompt, revision.NotePromptsChanged},
	{KindResource, revision.NoteResourcesChanged},
}

const allKinds kindSet = 1<<len(changeNotes) - 1

// kindBit is the set of one kind, or the empty set if its list has no notification.
func kindBit(k Kind) kindSet {
	for i := range changeNotes {
		if changeNotes[i].kind == k {
			return 1 << i
		}
	}
	return 0
}

func (h *changeFeed) add(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.kinds != 0 {
		if h.lists == nil {
			h.lists = map[*listener]struct{}{}
		}
		h.lists[l] = struct{}{}
	}
	h.uris = enlist(h.uris, l.uris, l)
	h.tasks = enlist(h.tasks, l.tasks, l)
}

func (h *changeFeed) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.gone = true
	delete(h.lists, l)
	delist(h.uris, l.uris, l)
	delist(h.tasks, l.tasks, l)
}

func enlist(by map[string]map[*listener]struct{}, names []string, l *listener) map[string]map[*listener]struct{} {
	for _, name := range names {
		if by == nil {
			by = map[string]map[*listener]struct{}{}
		}
		if by[name] == nil {
			by[name] = map[*listener]struct{}{}
		}
		by[name][l] = struct{}{}
	}
	return by
}

func delist(by map[string]map[*listener]struct{}, names []string, l *listener) {
	for _, name := range names {
		if delete(by[name], l); len(by[name]) == 0 {
			delete(by, name)
		}
	}
}

// changed records that the list of a kind changed.
func (h *changeFeed) changed(k Kind) {
	if k == KindResourceTemplate {
		k = KindResource // one notification stands for both lists
	}
	bit := kindBit(k)
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.lists {
		if l.kinds&bit != 0 {
			l.changed |= bit
			h.rouse(l)
		}
	}
}

// updated records that a resource changed.
func (h *changeFeed) updated(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updatedFor(uri, uri)
}

// updatedWithin records a server's notification of an update. It may name a part of a resource that
// is listened to, such as a file in a folder (T-57).
func (h *changeFeed) updatedWithin(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updatedFor(uri, uri)
	for i := 1; i < len(uri); i++ {
		switch uri[i] {
		case '/':
			h.updatedFor(uri[:i], uri)
			if i+1 < len(uri) {
				h.updatedFor(uri[:i+1], uri)
			}
		case '?', '#':
			h.updatedFor(uri[:i], uri)
		}
	}
}

// updatedFor records an update of uri with the listeners of watched; mu is held.
func (h *changeFeed) updatedFor(watched, uri string) {
	for l := range h.uris[watched] {
		if l.updated == nil {
			l.updated = map[string]bool{}
		}
		changed := uri
		if len(l.updated) >= maxUpdated {
			changed = watched // there is room for those
		}
		l.updated[changed] = true
		h.rouse(l)
	}
}

// maxUpdated bounds the parts of resources that are recorded for one listener.
const maxUpdated = 1000

// taskChanged records that a task changed.
func (h *changeFeed) taskChanged(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.tasks[id] {
		if l.moved == nil {
			l.moved = map[string]bool{}
		}
		l.moved[id] = true
		h.rouse(l)
	}
}

// rouse wakes a listener for recorded changes; mu is held.
func (h *changeFeed) rouse(l *listener) {
	if l.wake != nil {
		select {
		case l.wake <- struct{}{}:
		default:
		}
		return
	}
	if l.busy {
		return // it checks again after being notified
	}
	l.busy = true
	if h.queue = append(h.queue, l); len(h.queue) == 1 {
		time.AfterFunc(settle, h.round) // ends when all are notified
	}
}

// pendingChanges are the changes that a listener takes at once.
type pendingChanges struct {
	kinds       kindSet
	uris, tasks []string
}

// take returns what was recorded for l.
func (h *changeFeed) take(l *listener) (n pendingChanges) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !l.gone {
		n.kinds = l.changed
		if l.updated != nil {
			n.uris = slices.Sorted(maps.Keys(l.updated))
		}
		if l.moved != nil {
			n.tasks = slices.Sorted(maps.Keys(l.moved))
		}
	}
	l.changed, l.updated, l.moved = 0, nil, nil
	return n
}

// send emits the changes, with the current state of each task.
func (n pendingChanges) send(emit func(method string, params json.RawMessage) error, task func(id string) json.RawMessage) error {
	for i, note := range changeNotes {
		if n.kinds&(1<<i) != 0 {
			if err := emit(note.method, json.RawMessage(`{}`)); err != nil {
				return err
			}
		}
	}
	for _, u := range n.uris {
		if err := emit(revision.NoteResourceUpdated, uriParams(u)); err != nil {
			return err
		}
	}
	for _, id := range n.tasks {
		if state := task(id); state != nil {
			if err := emit(revision.NoteTask, state); err != nil {
				return err
			}
		}
	}
	return nil
}

// watch calls tell with changes of all lists, or of the resource uri if that is not empty, until
// stop is called. Calls of tell do not overlap. One that is under way may still finish after stop.
func (h *changeFeed) watch(uri string, tell func(method string, params json.RawMessage) error) (stop func()) {
	l := &listener{tell: tell}
	if uri == "" {
		l.kinds = allKinds
	} else {
		l.uris = []string{uri}
	}
	h.add(l)
	return func() { h.remove(l) }
}

// round notifies the watches in the queue.
func (h *changeFeed) round() {
	h.mu.Lock()
	due := &watches{list: h.queue}
	h.queue = nil
	h.mu.Unlock()
	h.tellAll(due)
}

// watches are the watches of one round that are not notified yet.
type watches struct {
	mu   sync.Mutex
	list []*listener // guarded by mu
}

func (w *watches) next() *listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list) == 0 {
		return nil
	}
	l := w.list[0]
	w.list = w.list[1:]
	return l
}

// tellAll notifies one watch after the other. Each additional goroutine ends when the watch that
// holds it up has taken or refused its notifications.
func (h *changeFeed) tellAll(due *watches) {
	relief := time.AfterFunc(patience, func() { h.tellAll(due) })
	defer relief.Stop()
	for l := due.next(); l != nil; l = due.next() {
		relief.Reset(patience)
		_ = h.take(l).send(l.tell, nil) // a watch that fails goes on, until it is stopped
		h.told(l)
	}
}

// told lets a watch be notified again, at once if changes were recorded meanwhile.
func (h *changeFeed) told(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.busy = false
	if !l.gone && (l.changed != 0 || l.updated != nil) {
		h.rouse(l)
	}
}

// ResourceUpdated notifies subscribers that a resource has changed, with Shared also those of the other processes, which may miss it if
// they cannot be reached. It does not wait for them. Set Shared before the first call. If several processes see the same change, such as one
// of a file that all have, a call in one of them is enough; else subscribers may be notified once for each.
func (s *Server) ResourceUpdated(uri string) {
	s.feed.updated(uri)
	s.tell(uri)
}
