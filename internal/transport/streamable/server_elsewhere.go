package streamable

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/store"
)

// A stream of a session that another process has begun is resumed with what the processes share of it ([store.SharedEvents]),
// if anything.

// Marks in the names of streams, behind a dot: another process that continues the session learns from them what a stream was.
const (
	ofNoCall  = "s"
	ofOneCall = "c" // followed by the id of the request as JSON, in hex
)

// name makes a name for the stream.
func (st *stream) name() string {
	name := rand.Text()
	if st.session.keeper == nil {
		return name
	}
	if !st.ofCall {
		return name + "." + ofNoCall
	}
	if id := st.call.AppendJSON(nil); len(id) <= 100 {
		return name + "." + ofOneCall + hex.EncodeToString(id)
	}
	return name
}

// marked returns what a stream was, by its name: one for messages outside of calls, or that of a call.
func marked(name string) (ofEvents bool, call jsonrpc.ID) {
	_, mark, _ := strings.Cut(name, ".")
	if mark == ofNoCall {
		return true, call
	}
	if raw, ok := strings.CutPrefix(mark, ofOneCall); ok {
		if id, err := hex.DecodeString(raw); err == nil {
			call, _ = jsonrpc.ParseID(id) // else of no call
		}
	}
	return false, call
}

// shared returns the store of events, if other processes that continue the session see it.
func (s *Server) shared(sess *session) store.SharedEvents {
	if sess.keeper == nil || s.Stateless {
		return nil
	}
	shared, _ := s.Events.(store.SharedEvents)
	return shared
}

// streamKey is the name under which events are shared. With the id of the session in it, no other session finds them.
func (sess *session) streamKey(stream string) string { return sess.id + "." + stream }

// share lets other processes know of a stream that has begun.
func (st *stream) share() {
	if shared := st.server.shared(st.session); shared != nil {
		if err := shared.Begin(st.session.Context(), st.session.streamKey(st.id)); err != nil {
			st.server.Logger.Warn("another process could not resume a stream", "conn", st.session.name, "err", err)
		}
	}
}

// elsewhere sends a client what it has not got of a stream that another process has begun. If that is the stream of a call, the
// request is answered then. If it is one for messages outside of calls, it goes on anew.
func (s *Server) elsewhere(client context.Context, l *listener, p *response, sess *session, lastID string) (anew, answered bool) {
	name, position, _ := splitID(lastID)
	ofEvents, call := marked(name)
	if !ofEvents && call.IsZero() {
		return false, false
	}
	if !sess.follow() {
		web.Refuse(p.w, http.StatusTooManyRequests, jsonrpc.CodeInternal, "the session resumes too many streams at once")
		return false, true
	}
	defer sess.unfollow()
	whole, err := s.replay(client, l, p, sess, name, position, call)
	switch {
	case err != nil: // the client has left, or the session ends
		p.end()
		return false, true
	case ofEvents:
		return true, false
	case whole:
		p.end()
	default:
		p.lost(call)
	}
	return false, true
}

// replay sends the events of a stream that another process has begun, while that process lives also later ones, until the answer of
// the call. It reports whether there was one. The error says that nobody reads them.
func (s *Server) replay(client context.Context, l *listener, p *response, sess *session, name string, position int64, call jsonrpc.ID) (whole bool, err error) {
	shared := s.shared(sess)
	if err := p.open(); err != nil || shared == nil {
		return false, err
	}
	ctx, stop := context.WithCancelCause(client)
	defer stop(nil)
	defer context.AfterFunc(sess.Context(), func() { stop(ErrSessionEnded) })()
	go func() { // ends with ctx
		select {
		case <-l.over:
			stop(ErrDisconnected)
		case <-ctx.Done():
		}
	}()
	// The last event that the client has may be the answer.
	for e, err := range shared.Follow(ctx, sess.streamKey(name), position-1) {
		if err != nil {
			s.Logger.Warn("a stream of another process was not read", "conn", sess.name, "err", err)
			break
		}
		if e.Position == 0 {
			if call.IsZero() {
				break
			}
			continue
		}
		m, err := jsonrpc.Decode(e.Data, jsonrpc.Limits{})
		kind := m.Kind()
		if err != nil || kind == jsonrpc.KindRequest { // nobody waits for the answer to a question of another process
			continue
		}
		if e.Position > position {
			if err := p.sendEvent(eventID(name, e.Position), e.Data); err != nil {
				return false, err
			}
		}
		if kind == jsonrpc.KindResponse && m.ID == call {
			return true, nil
		}
	}
	return false, context.Cause(ctx)
}

// follow counts a stream of another process that the session resumes, until unfollow. It returns false if there are too many.
func (sess *session) follow() bool {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	if sess.following == maxListeners {
		return false
	}
	sess.following++
	return true
}

func (sess *session) unfollow() {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	sess.following--
}

// lost answers a client that resumes the stream of a call whose process has ended.
func (p *response) lost(call jsonrpc.ID) {
	defer p.finish(http.StatusOK, false)
	if p.open() == nil {
		_ = p.sendEvent("", jsonrpc.AppendError(nil, call, &jsonrpc.Error{ // its client has left
			Code: jsonrpc.CodeInternal, Message: "the process that ran this request has ended; whether it has done what was asked is not known",
		}))
	}
}
