package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// settle is how long a listener waits after a change for more of them, so that a
// burst becomes one notification.
const settle = 10 * time.Millisecond

// hub tells listeners of changes. A change is recorded with each listener that
// wants it and taken by the listener's own goroutine, so that nothing here ever
// waits and what is recorded is bounded by what was subscribed to.
type hub struct {
	mu        sync.Mutex
	listeners map[*listener]struct{} // guarded by mu
}

type listener struct {
	kinds map[Kind]bool   // list changes wanted
	uris  map[string]bool // updates wanted
	tasks map[string]bool // changes wanted

	wake chan struct{} // capacity 1

	mu      sync.Mutex
	changed map[Kind]bool   // guarded by mu
	updated map[string]bool // guarded by mu
	moved   map[string]bool // tasks; guarded by mu
}

func (h *hub) add(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == nil {
		h.listeners = map[*listener]struct{}{}
	}
	h.listeners[l] = struct{}{}
}

func (h *hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
}

// changed records that the list of a kind changed.
func (h *hub) changed(k Kind) {
	if k == KindResourceTemplate {
		k = KindResource // one notification stands for both lists
	}
	h.each(func(l *listener) bool {
		if l.kinds[k] {
			l.changed[k] = true
		}
		return l.kinds[k]
	})
}

// updated records that a resource changed.
func (h *hub) updated(uri string) {
	h.each(func(l *listener) bool {
		if l.uris[uri] {
			l.updated[uri] = true
		}
		return l.uris[uri]
	})
}

// taskChanged records that a task changed.
func (h *hub) taskChanged(id string) {
	h.each(func(l *listener) bool {
		if l.tasks[id] {
			l.moved[id] = true
		}
		return l.tasks[id]
	})
}

func (h *hub) each(record func(*listener) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		l.mu.Lock()
		hit := record(l)
		l.mu.Unlock()
		if hit {
			select {
			case l.wake <- struct{}{}:
			default:
			}
		}
	}
}

func (l *listener) take() (kinds map[Kind]bool, uris, tasks []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kinds, uris, tasks = l.changed, slices.Sorted(maps.Keys(l.updated)), slices.Sorted(maps.Keys(l.moved))
	l.changed, l.updated, l.moved = map[Kind]bool{}, map[string]bool{}, map[string]bool{}
	return kinds, uris, tasks
}

// ResourceUpdated tells subscribers that a resource has changed. It does not wait
// for them.
func (s *Server) ResourceUpdated(uri string) { s.hub.updated(uri) }

// filter is what a listener asks for, and what is honoured of it.
type filter struct {
	Tools     bool     `json:"toolsListChanged,omitzero"`
	Prompts   bool     `json:"promptsListChanged,omitzero"`
	Resources bool     `json:"resourcesListChanged,omitzero"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
	Tasks     []string `json:"taskIds,omitempty"` // extensions/tasks
}

// and returns what an acknowledgement leaves of a filter.
func (f filter) and(acknowledged json.RawMessage) filter {
	var w struct {
		Notifications filter `json:"notifications"`
	}
	if jsonx.Unmarshal(orObject(acknowledged), &w) != nil {
		return filter{}
	}
	a := w.Notifications
	both := func(asked, given []string) []string {
		return slices.DeleteFunc(slices.Clone(asked), func(s string) bool { return !slices.Contains(given, s) })
	}
	return filter{f.Tools && a.Tools, f.Prompts && a.Prompts, f.Resources && a.Resources, both(f.URIs, a.URIs), both(f.Tasks, a.Tasks)}
}

// without returns what another filter leaves out.
func (f filter) without(honoured filter) filter {
	return filter{Tools: f.Tools && !honoured.Tools, Prompts: f.Prompts && !honoured.Prompts, Resources: f.Resources && !honoured.Resources,
		URIs: slices.DeleteFunc(slices.Clone(f.URIs), func(u string) bool { return slices.Contains(honoured.URIs, u) })}
}

func (f filter) empty() bool {
	return !f.Tools && !f.Prompts && !f.Resources && len(f.URIs) == 0
}

// offered returns what a legacy server with these capabilities can honour of a filter.
func (f filter) offered(c Capabilities) filter {
	f.Tools = f.Tools && c.Has("tools", "listChanged")
	f.Prompts = f.Prompts && c.Has("prompts", "listChanged")
	f.Resources = f.Resources && c.Has("resources", "listChanged")
	if !c.Has("resources", "subscribe") {
		f.URIs = nil
	}
	f.Tasks = nil
	return f
}

var changeNotes = []struct {
	kind   Kind
	method string
}{
	{KindTool, revision.NoteToolsChanged},
	{KindPrompt, revision.NotePromptsChanged},
	{KindResource, revision.NoteResourcesChanged},
}

// listen answers subscriptions/listen: it acknowledges, then emits what changes
// until ctx ends (2026-07-28, basic/patterns/subscriptions).
func (s *Server) listen(ctx context.Context, req *Request) (Result, error) {
	call := engine.From(ctx)
	if call == nil {
		return nil, ErrNoCall
	}
	raw, err := rawObject(req, "notifications")
	if err != nil {
		return nil, err
	}
	var f filter
	if err := jsonx.Unmarshal(raw, &f); err != nil {
		return nil, Errorf(CodeInvalidParams, "%s: notifications: %v", req.Method, err)
	}
	const most = 10_000
	if len(f.URIs) > most || len(f.Tasks) > most {
		return nil, Errorf(CodeInvalidParams, "%s: %d resources and %d tasks at once, at most %d", req.Method, len(f.URIs), len(f.Tasks), most)
	}
	if f.Tasks != nil {
		if call.Peer.Revision.Modern && !call.TakesTask() {
			return nil, call.NeedsTask() // XTASK-26-035
		}
		f.Tasks = s.jobs.known(ctx, f.Tasks)
	}
	ack := func() error {
		return call.Emit(revision.NoteAcknowledged, encode(struct {
			Notifications filter `json:"notifications"`
		}{f}))
	}
	task := func(id string) json.RawMessage { return s.jobs.detailed(ctx, id) }
	if err := s.hub.listen(ctx, nil, f, ack, call.Emit, task); err != nil {
		return nil, err
	}
	return RawResult(`{}`), nil
}

// listen emits the changes that f asks for until ctx ends or over is closed (nil), or
// emitting fails. Ack is called first, when nothing can be missed any more. Task returns
// the state of a task, nil for none; it is not used if f names none.
func (h *hub) listen(ctx context.Context, over <-chan struct{}, f filter, ack func() error, emit func(method string, params json.RawMessage) error, task func(id string) json.RawMessage) error {
	l := &listener{
		kinds: map[Kind]bool{KindTool: f.Tools, KindPrompt: f.Prompts, KindResource: f.Resources},
		uris:  map[string]bool{}, tasks: map[string]bool{}, wake: make(chan struct{}, 1),
		changed: map[Kind]bool{}, updated: map[string]bool{}, moved: map[string]bool{},
	}
	for _, u := range f.URIs {
		l.uris[u] = true
	}
	for _, id := range f.Tasks {
		// What happened before is told too: a task may be over already.
		l.tasks[id], l.moved[id] = task != nil, task != nil
	}
	if len(f.Tasks) > 0 && task != nil {
		l.wake <- struct{}{}
	}
	h.add(l)
	defer h.remove(l)
	if err := ack(); err != nil {
		return err
	}
	timer := time.NewTimer(settle)
	defer timer.Stop()
	for {
		select {
		case <-l.wake:
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		}
		timer.Reset(settle)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		kinds, uris, tasks := l.take()
		for _, n := range changeNotes {
			if kinds[n.kind] {
				if err := emit(n.method, json.RawMessage(`{}`)); err != nil {
					return err
				}
			}
		}
		for _, u := range uris {
			params := append(jsonx.AppendString([]byte(`{"uri":`), u), '}')
			if err := emit(revision.NoteResourceUpdated, params); err != nil {
				return err
			}
		}
		for _, id := range tasks {
			if state := task(id); state != nil {
				if err := emit(revision.NoteTask, state); err != nil {
					return err
				}
			}
		}
	}
}
