package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// subscription is one resource of a legacy server that has listeners. All listeners of the session
// share it.
type subscription struct {
	listeners int           // guarded by mu of the session
	turn      chan struct{} // capacity 1; held during a request to the server, so that requests keep their order
	active    bool          // the server is subscribed; guarded by mu of the session
}

// unsubscribeTime bounds the request to unsubscribe; the session may be closing.
const unsubscribeTime = 2 * time.Second

// subscribe subscribes to a resource unless another listener already has. Each subscribe that
// succeeds must be followed by an unsubscribe.
func (s *Session) subscribe(ctx context.Context, uri string) error {
	s.mu.Lock()
	sub := s.subscribed[uri]
	if sub == nil {
		sub = &subscription{turn: make(chan struct{}, 1)}
		s.subscribed[uri] = sub
	}
	sub.listeners++
	s.mu.Unlock()
	select {
	case sub.turn <- struct{}{}:
	case <-ctx.Done():
		s.leave(sub)
		s.forget(uri, sub)
		return context.Cause(ctx)
	}
	defer func() { <-sub.turn }()
	// It counts from here on, so that a session that is opened again meanwhile restores it.
	if s.activate(sub, true) {
		return nil
	}
	if err := s.tell(ctx, revision.MethodSubscribe, uri); err != nil {
		s.activate(sub, false)
		s.leave(sub)
		s.forget(uri, sub)
		return err
	}
	return nil
}

// activate records whether the server is subscribed and reports whether it was before.
func (s *Session) activate(sub *subscription, active bool) (before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, sub.active = sub.active, active
	return before
}

// resubscribe restores the subscriptions in a session that was opened again.
func (s *Session) resubscribe(ctx context.Context) {
	s.mu.Lock()
	var uris []string
	for uri, sub := range s.subscribed {
		if sub.active {
			uris = append(uris, uri)
		}
	}
	s.mu.Unlock()
	slices.Sort(uris)
	for _, uri := range uris {
		if _, err := s.remote.Wire.Call(ctx, &engine.Outgoing{Method: revision.MethodSubscribe, Params: uriParams(uri)}); err != nil {
			s.log.Warn("subscription lost with the session", "uri", text.Short(uri), "err", err)
		}
		s.feed.updated(uri)
	}
}

// unsubscribe undoes one subscribe.
func (s *Session) unsubscribe(uri string) {
	ctx, cancel := context.WithTimeout(context.Background(), unsubscribeTime)
	defer cancel()
	s.mu.Lock()
	sub := s.subscribed[uri]
	s.mu.Unlock()
	select {
	case sub.turn <- struct{}{}:
	case <-ctx.Done():
		s.leave(sub) // the server does not answer the holder of the turn and keeps the subscription
		return
	}
	defer func() { <-sub.turn }()
	if s.leave(sub) > 0 {
		return
	}
	if s.activate(sub, false) && !s.remote.Ended() {
		if err := s.tell(ctx, revision.MethodUnsubscribe, uri); err != nil {
			s.log.Debug("unsubscribe", "uri", uri, "err", err)
		}
	}
	s.forget(uri, sub)
}

func (s *Session) tell(ctx context.Context, method, uri string) error {
	_, err := s.request(ctx, method, uriParams(uri), nil)
	return err
}

// uriParams makes the params of a request that names a resource.
func uriParams(uri string) json.RawMessage {
	return append(jsonx.AppendString([]byte(`{"uri":`), uri), '}')
}

// leave removes one listener and returns how many are left.
func (s *Session) leave(sub *subscription) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub.listeners--
	return sub.listeners
}

// forget drops a subscription unless it has a new listener.
func (s *Session) forget(uri string, sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub.listeners == 0 && s.subscribed[uri] == sub {
		delete(s.subscribed, uri)
	}
}
