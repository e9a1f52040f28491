package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Messages between a legacy session and a handler outside of any call of the client:
//
//   - The handler may send notifications, and ask for the roots, which belong to the session.
//     Other questions belong to calls (T-09), except those of a server behind the handler that
//     name no call (insession.go).
//   - The client may announce that its roots have changed. Handlers that stand for other servers
//     are notified ([Engine.TellRoots]).

// sessionContext is the context of a session.
type sessionContext struct {
	context.Context
	s *Session
}

func (c *sessionContext) Value(key any) any {
	switch key.(type) {
	case callKey:
		call := c.s.pushCall("")
		if c.Err() != nil {
			call.ex = endedSession{context.Cause(c)}
		}
		return call
	case principal.Key:
		return &c.s.Peer.Principal
	case note.ContinuableKey:
		return c.s.continuable()
	}
	return c.Context.Value(key)
}

// pushCall is a call of the session that its client did not make.
func (s *Session) pushCall(method string) *Call {
	c := &Call{Method: method, Params: json.RawMessage(`{}`), Peer: s.Peer, ex: s.Events, session: s, logLevel: s.LogLevel()}
	c.Msg = &jsonrpc.Message{Method: method, Params: c.Params}
	if !s.NoAsking && !s.loose {
		c.asker = &rootsAsker{}
	}
	return c
}

// endedSession is the Exchange of a session that is over.
type endedSession struct{ cause error }

func (x endedSession) err() error { return fmt.Errorf("the session has ended: %w", x.cause) }

// Notify implements [Exchange].
func (x endedSession) Notify(string, json.RawMessage) error { return x.err() }

// Request implements [Exchange].
func (x endedSession) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, x.err()
}

// rootsAsker asks for roots and nothing else.
type rootsAsker struct{ live }

func (a *rootsAsker) ask(ctx context.Context, c *Call, qs []Question) ([]json.RawMessage, error) {
	if c.session.opening.Load() {
		return nil, &LacksError{What: "way to be asked before OnSession returns; ask in the first call of the session"}
	}
	for _, q := range qs {
		if q.Method != revision.MethodRoots {
			return nil, &LacksError{What: "way to be asked outside of a call"}
		}
	}
	return a.live.ask(ctx, c, qs)
}

// rootsNews coalesces changes of the roots: one goroutine notifies the handler, and once more if
// they have changed in the meantime.
type rootsNews struct{ telling, again bool }

// RootsChanged handles the client's notification that its roots have changed. It does not wait.
func (s *Session) RootsChanged(e *Engine) {
	if !e.TellRoots || s.loose {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roots.telling || s.closed != nil {
		s.roots.again = true
		return
	}
	s.roots.telling = true
	ctx := s.context()
	s.wg.Go(func() { // it ends when the handler returns, whose context ends with the session
		returned := false
		defer func() {
			if !returned { // the handler has ended the goroutine
				s.mu.Lock()
				defer s.mu.Unlock()
				s.roots.telling = false
			}
		}()
		for {
			_, _ = e.run(ctx, s.pushCall(revision.NoteRootsChanged)) // a notification has no answer
			s.mu.Lock()
			again := s.roots.again && s.closed == nil
			s.roots = rootsNews{telling: again}
			s.mu.Unlock()
			if !again {
				returned = true
				return
			}
		}
	})
}
