package streamable

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// maxStreams bounds the streams of one session that can still be resumed.
const maxStreams = 64

// polls is the first revision whose clients resume a stream that the server closed, and so get a
// priming event.
const polls = "2025-11-25"

// stream is an event stream of a session: the messages of a legacy call and its answer, or the
// messages outside of calls. It outlives its connection: a GET with Last-Event-ID resumes it
// (2025-11-25, basic/transports, Resumability and Redelivery). Meanwhile messages of a call are
// kept; those outside of calls go to another stream, or wait for one.
//
// A call that sends only its answer has no stream: the answer is JSON.
type stream struct {
	server  *Server
	session *session
	ofCall  bool
	primes  bool       // the connection may be closed; the client resumes the stream
	call    jsonrpc.ID // zero: of no call, or of several

	done  bool        // the answer is sent, or never will be; guarded by mu
	quiet atomic.Bool // nothing will be sent unless the client resumes the stream
	mu    sync.Mutex
	conn  *response // carries the stream; nil while none does; guarded by mu
	id    string    // empty until something is sent; guarded by mu
	last  int64     // position of the newest event; guarded by mu
}

func (s *Server) newStream(p *response, sess *session, ofCall bool) *stream {
	primes := ofCall && sess.Peer.Revision.Name >= polls && !s.Stateless
	return &stream{server: s, session: sess, ofCall: ofCall, primes: primes, conn: p}
}

// eventID returns the event id of a position, or "" if the stream cannot be resumed.
func (st *stream) eventID(position int64) string {
	if st.server.Stateless {
		return ""
	}
	return eventID(st.id, position)
}

func eventID(stream string, position int64) string {
	return stream + "-" + strconv.FormatInt(position, 10)
}

// key returns the name under which the events of the stream are kept. Once the stream has an id, it does not change.
func (st *stream) key() string {
	if st.server.shared(st.session) == nil {
		return st.id
	}
	return st.session.streamKey(st.id)
}

// send sends one message, or keeps it for a client that resumes the stream.
func (st *stream) send(frame []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.offerLocked(frame)
}

func (st *stream) offerLocked(frame []byte) error {
	switch {
	case st.done:
		return errFinished
	case st.id == "" && st.conn == nil:
		return ErrDisconnected // the client has no id to resume with
	case st.id == "" && st.conn.noEvents != nil:
		return st.conn.refuseEvents()
	}
	return st.sendLocked(frame)
}

func (st *stream) sendLocked(frame []byte) error {
	st.beginLocked()
	sent := ErrDisconnected
	if st.conn != nil {
		if sent = st.conn.sendEvent(st.eventID(st.last+1), frame); sent != nil {
			st.leaveLocked()
		}
	}
	if sent != nil && !st.ofCall || st.server.Stateless {
		return sent
	}
	if st.session.Context().Err() != nil {
		return sent // an ended session cannot be resumed
	}
	st.last++
	kept := st.server.Events.Append(st.session.Context(), st.key(), st.last, frame)
	if kept != nil {
		st.server.Logger.Error("event not kept for a resumption", "conn", st.session.name, "err", kept)
	}
	if sent == nil {
		return nil
	}
	return kept
}

// beginLocked makes the response an event stream with a name.
func (st *stream) beginLocked() {
	if st.id != "" {
		return
	}
	st.id = st.name()
	if st.server.Stateless {
		return // it cannot be resumed
	}
	st.session.keepStream(st)
	st.conn.watch(st)
	if st.primes {
		// The next send gets the error.
		_ = st.conn.prime(st.eventID(0), st.server.Retry)
	}
}

// leaveLocked releases the connection.
func (st *stream) leaveLocked() {
	if st.conn != nil {
		st.conn.end()
		st.conn.letGo(st.done)
		st.conn = nil
	}
	st.quiet.Store(st.done || !st.ofCall)
}

// leave releases a connection, if it still carries the stream.
func (st *stream) leave(p *response) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.conn == p {
		st.leaveLocked()
	}
}

// Detach implements [engine.Detacher]: it closes the connection, if the client can resume the stream.
func (st *stream) Detach() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.primes || st.done || st.conn == nil || st.conn.noEvents != nil {
		return
	}
	st.beginLocked()
	st.leaveLocked()
}

// finish sends the answer of the call, or nil if it has none.
func (st *stream) finish(r *engine.Reply) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.done {
		return
	}
	if st.id == "" {
		switch {
		case st.conn == nil: // its client has disconnected
		case r == nil:
			st.conn.finish(http.StatusOK, false) // cancelled: an empty stream
		default: // a single answer needs no event id, because a client with the id has the answer
			st.conn.reply(http.StatusOK, r)
		}
	} else if r != nil {
		_ = st.sendLocked(r.Append(nil)) // already logged
	}
	if r != nil {
		r.Release()
	}
	st.done = true
	st.leaveLocked()
}

// isDone reports whether everything has been sent.
func (st *stream) isDone() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.done
}

// refuse answers a call that was not begun.
func (st *stream) refuse(id jsonrpc.ID, cause error) {
	status, code := http.StatusBadRequest, jsonrpc.CodeInvalidRequest
	switch {
	case errors.Is(cause, ErrSessionEnded): // just now
		status = http.StatusNotFound
	case errors.Is(cause, errTooMany):
		status, code = http.StatusTooManyRequests, jsonrpc.CodeInternal
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.conn != nil {
		web.RefuseID(st.conn.w, status, id, &jsonrpc.Error{Code: code, Message: cause.Error()})
	}
	st.done = true
	st.leaveLocked()
}

// resume continues the stream on another connection, after a position. It returns false if later
// events are no longer kept.
func (st *stream) resume(p *response, position int64) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if position > st.last {
		if st.ofCall {
			return false
		}
		position = st.last // the client may have events whose arrival is unknown
	}
	events, err := st.server.Events.After(st.session.Context(), st.key(), position)
	if err != nil {
		st.server.Logger.Error("read the events of a stream", "conn", st.session.name, "err", err)
	}
	if int64(len(events)) != st.last-position {
		return false
	}
	st.leaveLocked()
	st.conn = p
	st.quiet.Store(st.done)
	if p.open() != nil {
		st.leaveLocked()
		return true
	}
	for i, frame := range events {
		if p.sendEvent(st.eventID(position+1+int64(i)), frame) != nil {
			st.leaveLocked()
			return true
		}
	}
	if st.done {
		st.leaveLocked()
	}
	return true
}

// keepStream registers a stream for resumption and drops the oldest quiet ones over the bound.
func (sess *session) keepStream(st *stream) {
	sess.mu.Lock()
	var gone []string
	for i := 0; len(sess.streams) >= maxStreams && i < len(sess.streams); {
		if old := sess.streams[i]; old.quiet.Load() {
			gone = append(gone, old.key())
			sess.streams = slices.Delete(sess.streams, i, i+1)
		} else {
			i++
		}
	}
	sess.streams = append(sess.streams, st)
	sess.mu.Unlock()
	for _, key := range gone {
		st.server.forget(key)
	}
}

// forget drops the kept events of a stream.
func (s *Server) forget(key string) {
	if err := s.Events.Forget(context.Background(), key); err != nil {
		s.Logger.Warn("events of a stream not dropped", "err", err)
	}
}

// dropStreams forgets the streams of an ended session.
func (sess *session) dropStreams() {
	sess.mu.Lock()
	streams := sess.streams
	sess.streams = nil
	sess.mu.Unlock()
	for _, st := range streams {
		st.server.forget(st.key())
	}
}

// find returns the stream and the position that an event id names, nil for none
// of this session.
func (sess *session) find(eventID string) (*stream, int64) {
	id, position, ok := splitID(eventID)
	if !ok {
		return nil, 0
	}
	sess.mu.Lock()
	defer sess.mu.Unlock()
	for _, st := range sess.streams {
		if st.id == id {
			return st, position
		}
	}
	return nil, 0
}

// splitID returns the stream and the position that an event id names.
func splitID(eventID string) (stream string, position int64, ok bool) {
	stream, after, _ := strings.Cut(eventID, "-")
	position, err := strconv.ParseInt(after, 10, 64)
	return stream, position, err == nil && position >= 0 && strconv.FormatInt(position, 10) == after
}

// prime makes the response an event stream that begins with an event without a message, with an
// id and the retry time.
func (p *response) prime(id string, retry time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.openLocked()
	return p.write(primer(id, retry))
}

// primer is the event that a stream begins with (2025-11-25, basic/transports).
func primer(id string, retry time.Duration) []byte {
	b := append([]byte("id: "), id...)
	b = append(b, "\nretry: "...)
	b = strconv.AppendInt(b, retry.Milliseconds(), 10)
	return append(b, "\ndata: \n\n"...)
}

// sendEvent writes one message as an event with an id.
func (p *response) sendEvent(id string, frame []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.finished:
		return errFinished
	case p.err != nil:
		return p.err
	}
	p.openLocked()
	return p.event(id, frame)
}
