package engine

import (
	"context"
	"encoding/json"
)

// Questions from a server behind a handler that may belong to any of several calls of one legacy
// session, or to none: the session is asked, on its stream for messages outside of calls.

// InSession returns a call like c whose questions and notifications use the session's stream for
// messages outside of calls, so that they outlast c. It returns nil if there is no such stream at
// present, as in a session over HTTP whose client has no GET stream open, and for calls without a
// session.
//
// Specification: 2025-11-25, basic/transports, Listening for Messages from the Server.
func (c *Call) InSession() *Call {
	s := c.Session()
	if s == nil || !s.Reachable() {
		return nil
	}
	out := c.Redirect(nil)
	out.ex = inSession{s.Events, s}
	return out
}

// Reachable reports whether the client can currently be asked outside of its calls.
func (s *Session) Reachable() bool {
	if s.NoAsking || s.loose {
		return false
	}
	v, ok := s.Events.(interface{ Open() bool })
	return !ok || v.Open()
}

// OutsideCalls returns a call that the client did not make but that can ask it any question, or nil
// if the client cannot be asked.
func (s *Session) OutsideCalls() *Call {
	c := s.pushCall("")
	if c.asker == nil {
		return nil
	}
	c.asker, c.ex = &live{}, inSession{s.Events, s}
	return c
}

// inSession is the Exchange of a session for questions that end with it.
type inSession struct {
	Exchange
	s *Session
}

func (x inSession) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	session := x.s.Context()
	if session.Err() != nil {
		return nil, &sessionOver{context.Cause(session)}
	}
	defer context.AfterFunc(session, func() { cancel(&sessionOver{context.Cause(session)}) })()
	return x.Exchange.Request(ctx, method, params)
}

// sessionOver is the error of a question whose caller's session has ended.
type sessionOver struct{ cause error }

func (e *sessionOver) Error() string { return "the caller's session has ended: " + e.cause.Error() }
func (e *sessionOver) Unwrap() error { return e.cause }
