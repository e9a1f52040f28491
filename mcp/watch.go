package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp/level"
)

// Watch yields the changes that the server announces: those of its lists and of the resources named
// by uris. The first event, notifications/subscriptions/acknowledged, means that no later change is
// missed; its Params name the changes that the server honours. A change that the server does not
// honour is logged if the server offers it or uris names it. The iteration ends with ctx, without
// an error, or with the error that ended it; if the server ends the subscription, that is such an
// error. Over HTTP a subscription of 2026-07-28 ends with its connection and cannot be resumed: watch
// again, and read again what may have changed meanwhile. Older revisions resume.
//
// Specification: 2026-07-28, basic/patterns/subscriptions; before it, resources/subscribe.
func (s *Session) Watch(ctx context.Context, uris ...string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		events := make(chan Event)
		ended := make(chan error, 1)
		var listening sync.WaitGroup
		defer listening.Wait()
		defer cancel()
		listening.Go(func() {
			emit := func(method string, params json.RawMessage) error {
				select {
				case events <- newEvent(method, params):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			asked := filter{Tools: true, Prompts: true, Resources: true, URIs: uris}
			ack := func(honoured filter) error {
				can := asked.offered(s.capabilities())
				can.URIs = asked.URIs
				if left := can.without(honoured); !left.empty() {
					s.log.Warn("subscription not honoured in full", "server", text.Short(s.Server().Name), "left_out", string(encode(left)))
				}
				return emit(revision.NoteAcknowledged, encode(map[string]filter{"notifications": honoured}))
			}
			ended <- s.listen(ctx, asked, nil, bridge.Envelope{Caps: s.remote.Caps}, ack, emit)
		})
		for {
			select {
			case e := <-events:
				if !yield(e, nil) {
					return
				}
			case err := <-ended:
				if ctx.Err() == nil {
					if err == nil {
						err = errors.New("the server ended the subscription")
					}
					yield(Event{}, fmt.Errorf("watch: %w", err))
				}
				return
			}
		}
	}
}

// traceOf returns the trace context of a request, as a _meta, or nil if it has none (SEP-414).
func traceOf(req *Request) (meta json.RawMessage) {
	from := req.Param("_meta")
	for _, name := range []string{"traceparent", "tracestate", "baggage"} {
		if v, ok := jsonx.Lookup(from, name); ok {
			meta = jsonx.With(nil, jsonx.OrObject(meta), name, v)
		}
	}
	return meta
}

func newEvent(method string, params json.RawMessage) Event {
	e := Event{Method: method, Params: params}
	switch method {
	case revision.NoteResourceUpdated:
		if raw, ok := jsonx.Lookup(params, "uri"); ok {
			e.URI, _ = jsonx.Unquote(raw)
		}
	case revision.NoteMessage:
		var w struct {
			Level  string          `json:"level"`
			Logger string          `json:"logger"`
			Data   json.RawMessage `json:"data"`
		}
		if jsonx.Unmarshal(params, &w) == nil {
			l, _ := level.Parse(w.Level) // of an unknown name: Info
			e.Log = &LogMessage{l, w.Logger, w.Data}
		}
	}
	return e
}

// listen runs one subscription until ctx ends (nil) or the server ends it. It calls ack with the
// part of f that the server honours. A modern server gets the client's description e, and the _meta,
// which may be nil.
func (s *Session) listen(ctx context.Context, f filter, meta json.RawMessage, e bridge.Envelope, ack func(filter) error, emit func(string, json.RawMessage) error) error {
	if !s.remote.Rev.Sessions {
		return s.listenModern(ctx, f, meta, e, ack, emit)
	}
	f = f.offered(s.Server().Capabilities) // T-51
	err := s.feed.listen(ctx, s.remote.Wire.Done(), f, func() error {
		for _, uri := range f.URIs {
			if err := s.subscribe(ctx, uri); err != nil {
				return err
			}
			context.AfterFunc(ctx, func() { s.unsubscribe(uri) })
		}
		return ack(f)
	}, emit, nil)
	if err == nil && ctx.Err() == nil {
		err = s.Err()
	}
	return err
}

func (s *Session) listenModern(ctx context.Context, f filter, meta json.RawMessage, e bridge.Envelope, ack func(filter) error, emit func(string, json.RawMessage) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	// On a pipe, some servers leave out the subscription's id. Such changes arrive outside of any
	// call, and those before the acknowledgement wait for it.
	var untagged sync.WaitGroup
	listens := make(chan struct{})
	unacked, acked := context.WithCancel(ctx)
	untagged.Go(func() {
		if err := s.feed.listen(ctx, nil, f, func() error { close(listens); <-unacked.Done(); return nil }, emit, nil); err != nil {
			cancel(err)
		}
	})
	defer untagged.Wait()
	defer acked()
	defer cancel(nil)
	<-listens // before the server can report a change
	params := encode(struct {
		Notifications filter          `json:"notifications"`
		Meta          json.RawMessage `json:"_meta,omitempty"`
	}{f, meta})
	_, err := s.remote.Wire.Call(ctx, &engine.Outgoing{
		Method: revision.MethodListen,
		Params: s.remote.ModernParams(params, e),
		Inbox: listenInbox(func(method string, params json.RawMessage) {
			var err error
			s.noteChange(method, params)
			switch method {
			case revision.NoteAcknowledged:
				err = ack(f.and(params))
				acked()
			case revision.NoteCancelled: // the listen's own end, told twice on pipes
			default:
				err = emit(method, params)
			}
			if err != nil {
				cancel(err)
			}
		}),
	})
	return publicError(err)
}

// listenInbox receives the notifications of a subscription.
type listenInbox func(method string, params json.RawMessage)

// Note implements engine.Inbox.
func (f listenInbox) Note(method string, params json.RawMessage) { f(method, params) }

// Question implements engine.Inbox. A modern server asks none.
func (f listenInbox) Question(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, ErrNoCall
}

// noteChange drops cached data that a notification invalidates.
func (s *Session) noteChange(method string, params json.RawMessage) {
	if s.face != nil {
		s.face.noteChange(method, params)
	}
	s.remote.Changed(method, params)
	s.changes.note(method)
	if method == revision.NoteToolsChanged {
		s.outputs.forget()
	}
}
