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
	id := st.call.AppendJSON(nil)
	switch {
	case st.session.keeper == nil:
		return name
	case !st.ofCall:
		name += "." + ofNoCall
	case !st.call.IsZero() && len(id) <= 100:
		name += "." + ofOneCall + hex.EncodeToString(id)
	default: // another process could not tell a client of its end
		return name
	}
	if shared := st.server.shared(st.session); shared != nil {
		return shared.Name(name)
	}
	return name
}

// marked returns what a stream was, by its name: one for messages outside of calls, or that of a call.
func marked(name string) (ofEvents bool, call jsonrpc.ID) {
	_, mark, _ := strings.Cut(name, ".")
	mark, _, _ = strings.Cut(mark, ".")
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

// elsewhere sends a client what it has not got of a stream that another process has begun. If that is the stream of a call, the
// request is answered then. If it is one for messages outside of calls, it goes on anew.
func (s *Server) elsewhere(client context.Context, l *listener, p *response, sess *session, lastID string) (anew, answered bool) {
	name, position, ok := splitID(lastID)
	ofEvents, call := marked(name)
	if !ok || !ofEvents && call.IsZero() {
		return false, false
	}
	if !sess.follow() {
		p.w.Header().Set("Retry-After", "1")
		web.Refuse(p.w, http.StatusServiceUnavailable, jsonrpc.CodeInternal, "the session resumes too many streams at once")
		return false, true
	}
	defer sess.unfollow()
	if !ofEvents && sess.Peer.Revision.Name >= polls {
		_ = p.prime(lastID, s.Retry) // it has the place where the client goes on if this one ends too; the next event gets the error
	}
	end, err := s.replay(client, l, p, sess, name, position, call)
	switch {
	case client.Err() != nil || sess.Context().Err() != nil:
		p.end()
		return false, true
	case ofEvents:
		return true, false
	case err != nil || end == replayed: // after an error the client comes again
		p.end()
	case end == tooLarge:
		p.lost(call, "the process that ran this request has ended, or has given up its session, and a message of the request was too large to be kept; whether the request has done what was asked is not known")
	default:
		p.lost(call, "the process that ran this request has ended; whether it has done what was asked is not known")
	}
	return false, true
}

// replayEnd is how far a stream was replayed.
type replayEnd int

const (
	unanswered replayEnd = iota // its process has ended without an answer
	replayed                    // with its answer
	tooLarge                    // up to a message that was not shared
)

// replay sends the events of a stream that another process has begun, while that process lives also later ones, until the answer of
// the call. The error says that more may be there.
func (s *Server) replay(client context.Context, l *listener, p *response, sess *session, name string, position int64, call jsonrpc.ID) (replayEnd, error) {
	shared := s.shared(sess)
	if err := p.open(); err != nil || shared == nil {
		return unanswered, err
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
		switch {
		case err != nil:
			s.Logger.Warn("a stream of another process was not read", "conn", sess.name, "err", err)
			return unanswered, err
		case e.Position == 0 && call.IsZero():
			return unanswered, nil
		case e.Position == 0:
			continue
		case e.Data == nil && e.Position > position:
			return tooLarge, nil
		}
		m, err := jsonrpc.Decode(e.Data, jsonrpc.Limits{MaxDepth: maxOwnDepth})
		kind := m.Kind()
		if e.Position > position {
			if err := p.sendEvent(eventID(name, e.Position), e.Data); err != nil {
				return unanswered, err
			}
		}
		if err == nil && kind == jsonrpc.KindResponse && m.ID == call {
			return replayed, nil
		}
	}
	return unanswered, context.Cause(ctx)
}

// maxOwnDepth bounds the nesting of a message of another process of this server, whose messages have no bound.
const maxOwnDepth = 1 << 20

// follow counts a stream of another process that the session resumes, until unfollow. It returns false if there are too many.
func (sess *session) follow() bool {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	if sess.following == maxStreams {
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

// lost answers a client that resumes the stream of a call whose answer does not come.
func (p *response) lost(call jsonrpc.ID, why string) {
	defer p.finish(http.StatusOK, false)
	if p.open() == nil {
		_ = p.sendEvent("", jsonrpc.AppendError(nil, call, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: why})) // its client has left
	}
}
