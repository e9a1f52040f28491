package mcp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/mcp/level"
)

// owner is a Session as its remote end sees it.
type owner Session

// Server implements bridge.Owner.
func (o *owner) Server() (name string, capabilities map[string]json.RawMessage) {
	s := (*Session)(o)
	info := s.Server()
	if s.behind != nil {
		return info.Name, s.behind.forwardInfo().Capabilities
	}
	return info.Name, info.Capabilities
}

// Answer implements bridge.Owner.
func (o *owner) Answer(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return o.client.answer(ctx, method, params)
}

// Note implements bridge.Owner.
func (o *owner) Note(method string, params json.RawMessage) {
	s := (*Session)(o)
	s.noteChange(method, params)
	switch method {
	case revision.NoteToolsChanged:
		s.feed.changed(KindTool)
	case revision.NotePromptsChanged:
		s.feed.changed(KindPrompt)
	case revision.NoteResourcesChanged:
		s.feed.changed(KindResource)
	case revision.NoteResourceUpdated:
		s.feed.updatedWithin(newEvent(method, params).URI)
	}
	if s.client.OnEvent == nil {
		return
	}
	e := newEvent(method, params)
	for {
		select {
		case s.events <- e:
			return
		default:
		}
		select {
		case old := <-s.events: // the newest says most
			s.log.Warn("notifications dropped", "method", old.Method)
		default:
		}
	}
}

// ListTools implements bridge.Owner.
func (o *owner) ListTools(ctx context.Context) bool {
	for _, err := range (*Session)(o).Tools(ctx) {
		if err != nil {
			return false
		}
	}
	return true
}

// LogLevel implements bridge.Owner.
func (o *owner) LogLevel() string {
	if o.client.LogLevel == nil {
		return ""
	}
	return level.Name(o.client.LogLevel.Level())
}

// Public implements bridge.Owner.
func (o *owner) Public(err error) error { return publicError(err) }

// Exceeded implements bridge.Owner.
func (o *owner) Exceeded(limit time.Duration, total bool) error {
	return &LimitError{Limit: limit, Total: total}
}
