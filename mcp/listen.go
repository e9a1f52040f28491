package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// filter is the set of changes that a listener asks for, or the part of it that is honoured.
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
	if jsonx.Unmarshal(jsonx.OrObject(acknowledged), &w) != nil {
		return filter{}
	}
	a := w.Notifications
	both := func(asked, given []string) []string {
		return slices.DeleteFunc(slices.Clone(asked), func(s string) bool { return !slices.Contains(given, s) })
	}
	return filter{f.Tools && a.Tools, f.Prompts && a.Prompts, f.Resources && a.Resources, both(f.URIs, a.URIs), both(f.Tasks, a.Tasks)}
}

// without returns the part of f that another filter leaves out.
func (f filter) without(honoured filter) filter {
	return filter{Tools: f.Tools && !honoured.Tools, Prompts: f.Prompts && !honoured.Prompts, Resources: f.Resources && !honoured.Resources,
		URIs: slices.DeleteFunc(slices.Clone(f.URIs), func(u string) bool { return slices.Contains(honoured.URIs, u) })}
}

// kinds are the list changes that f asks for.
func (f filter) kinds() (set kindSet) {
	if f.Tools {
		set |= kindBit(KindTool)
	}
	if f.Prompts {
		set |= kindBit(KindPrompt)
	}
	if f.Resources {
		set |= kindBit(KindResource)
	}
	return set
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

// filterOf reads the filter of a subscriptions/listen request.
func filterOf(req *Request) (f filter, err error) {
	raw, err := rawObject(req, "notifications")
	if err != nil {
		return f, err
	}
	if err := jsonx.Unmarshal(raw, &f); err != nil {
		return f, Errorf(jsonrpc.CodeInvalidParams, "%s: notifications: %v", req.Method, err)
	}
	const most = 10_000
	if len(f.URIs) > most || len(f.Tasks) > most {
		return f, Errorf(jsonrpc.CodeInvalidParams, "%s: %d resources and %d tasks at once, at most %d", req.Method, len(f.URIs), len(f.Tasks), most)
	}
	return f, nil
}

// listen answers subscriptions/listen: it acknowledges, then emits what changes
// until ctx ends (2026-07-28, basic/patterns/subscriptions).
func (s *Server) listen(ctx context.Context, req *Request) (Result, error) {
	call := engine.From(ctx)
	if call == nil {
		return nil, ErrNoCall
	}
	f, err := filterOf(req)
	if err != nil {
		return nil, err
	}
	if f.Tasks != nil {
		if !call.Peer.Revision.Sessions && !call.TakesTask() {
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
	if err := s.feed.listen(ctx, nil, f, ack, call.Emit, task); err != nil {
		return nil, err
	}
	return RawResult(`{}`), nil
}

// listen emits the changes that f asks for until ctx ends or over is closed (nil error), or
// emitting fails. It calls ack first, when no later change can be missed. The function task returns
// the state of a task, nil for none; it is not used if f names no task.
func (h *changeFeed) listen(ctx context.Context, over <-chan struct{}, f filter, ack func() error, emit func(method string, params json.RawMessage) error, task func(id string) json.RawMessage) error {
	l := &listener{kinds: f.kinds(), uris: f.URIs, wake: make(chan struct{}, 1)}
	if len(f.Tasks) > 0 && task != nil {
		// Earlier changes are sent too, because a task may already be over.
		l.tasks, l.moved = f.Tasks, map[string]bool{}
		for _, id := range f.Tasks {
			l.moved[id] = true
		}
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
		if err := h.take(l).send(emit, task); err != nil {
			return err
		}
	}
}
