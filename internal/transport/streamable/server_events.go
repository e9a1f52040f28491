package streamable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

const (
	maxBacklog   = 64 // messages kept while no GET stream is open
	maxListeners = 8  // GET streams of one session

	arrivalTime = time.Second // the time that a question waits for a GET stream
)

// events sends the messages of a session outside of calls, only to the newest of its GET streams
// (SHTTP-25-027, -028).
//
// The lock of a stream is taken before mu, never while mu is held.
type events struct {
	session *session // nil: the client cannot be asked

	mu        sync.Mutex
	listeners []*listener   // newest last; guarded by mu
	backlog   []note        // guarded by mu
	lost      int           // messages dropped from the backlog; guarded by mu
	ended     bool          // the session has; guarded by mu
	arrived   chan struct{} // closed when a stream opens, or nil if nobody waits; guarded by mu
}

// listener is one open GET stream.
type listener struct {
	*stream
	run
	once sync.Once
	over chan struct{} // closed to end the connection
}

// Cancel ends the connection.
func (l *listener) Cancel(error) { l.once.Do(func() { close(l.over) }) }

type note struct {
	method string
	frame  []byte
}

var errNoStream = errors.New("the client has no GET stream open for messages outside of calls")

// Notify sends a notification to the newest stream, or keeps it for the next.
func (v *events) Notify(method string, params json.RawMessage) error {
	v.deliver(note{method, jsonrpc.AppendNotification(nil, method, params)})
	return nil
}

// Open reports whether the client has a stream open.
func (v *events) Open() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.session != nil && len(v.listeners) > 0
}

// Request asks on the newest stream. If there is none, it waits for arrivalTime, because clients
// open theirs after the session has begun.
func (v *events) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if v.session == nil {
		return nil, errNoStream
	}
	if arrived := v.arrival(); arrived != nil {
		t := time.NewTimer(arrivalTime)
		defer t.Stop()
		select {
		case <-arrived:
		case <-t.C:
			return nil, errNoStream
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return v.session.ask(ctx, v.sendNow, method, params)
}

// arrival returns a channel that is closed when a stream opens, or nil if there is one.
func (v *events) arrival() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.listeners) > 0 {
		return nil
	}
	if v.arrived == nil {
		v.arrived = make(chan struct{})
	}
	return v.arrived
}

// sendNow sends a frame to the newest stream, without keeping it.
func (v *events) sendNow(frame []byte) error {
	v.mu.Lock()
	if len(v.listeners) == 0 {
		v.mu.Unlock()
		return errNoStream
	}
	l := v.listeners[len(v.listeners)-1]
	v.mu.Unlock()
	return l.send(frame)
}

func (v *events) deliver(n note) {
	for {
		v.mu.Lock()
		open := len(v.listeners)
		if open == 0 {
			v.keep(n)
			v.mu.Unlock()
			return
		}
		l := v.listeners[open-1]
		v.mu.Unlock()
		if l.send(n.frame) == nil {
			return
		}
		v.leave(l) // its connection is closed; the previous stream is next
	}
}

// keep adds a message to the backlog; mu is held. Equal change notifications are kept once.
func (v *events) keep(n note) {
	switch n.method {
	case revision.NoteToolsChanged, revision.NotePromptsChanged, revision.NoteResourcesChanged, revision.NoteResourceUpdated:
		v.backlog = slices.DeleteFunc(v.backlog, func(old note) bool { return bytes.Equal(old.frame, n.frame) })
	}
	if len(v.backlog) == maxBacklog {
		v.backlog = slices.Delete(v.backlog, 0, 1)
		v.lost++
	}
	v.backlog = append(v.backlog, n)
}

// join makes l the newest stream and sends it the backlog, before newer messages. The result lost
// is the number of messages that were dropped from the backlog. If the session has ended, join ends
// l.
func (v *events) join(l *listener) (lost int) {
	l.stream.mu.Lock() // senders of newer messages to l wait
	backlog, lost := v.enter(l)
	for len(backlog) > 0 && l.offerLocked(backlog[0].frame) == nil {
		backlog = backlog[1:]
	}
	if len(backlog) > 0 {
		backlog = v.putBack(l, backlog)
	}
	l.stream.mu.Unlock()
	for _, n := range backlog {
		v.deliver(n)
	}
	return lost
}

// enter makes l the newest stream and returns the backlog.
func (v *events) enter(l *listener) (backlog []note, lost int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		l.Cancel(ErrSessionEnded)
		return nil, 0
	}
	if len(v.listeners) == maxListeners {
		v.listeners[0].Cancel(nil) // the client opened too many
		v.listeners = slices.Delete(v.listeners, 0, 1)
	}
	v.listeners = append(v.listeners, l)
	if v.arrived != nil {
		close(v.arrived)
		v.arrived = nil
	}
	backlog, lost = v.backlog, v.lost
	v.backlog, v.lost = nil, 0
	return backlog, lost
}

// leave removes l; the newest of the others takes over.
func (v *events) leave(l *listener) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.leaveLocked(l)
}

func (v *events) leaveLocked(l *listener) {
	v.listeners = slices.DeleteFunc(v.listeners, func(o *listener) bool { return o == l })
	l.Cancel(ErrDisconnected)
}

// putBack removes l, whose connection is closed, and puts the messages that l did not get back
// before newer ones. If there is another stream, it returns them for that stream.
func (v *events) putBack(l *listener, rest []note) []note {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.leaveLocked(l)
	if len(v.listeners) > 0 {
		return rest
	}
	later := v.backlog
	v.backlog = rest
	for _, n := range later {
		v.keep(n)
	}
	return nil
}

// end ends the streams and refuses new ones.
func (v *events) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	for _, l := range v.listeners {
		l.Cancel(ErrSessionEnded)
	}
}

// get opens an event stream for messages outside of calls, or resumes a stream that broke, until
// the client disconnects, the stream or the session ends, or the server shuts down (2025-11-25,
// basic/transports, Listening for Messages from the Server, and Resumability and Redelivery).
//
// An older stream stays open and gets nothing: if it were closed, a client that wants two streams
// would reopen it again and again.
func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	if _, asEvents := web.Accepts(r.Header); !asEvents {
		web.Refuse(w, http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest, "Accept must list text/event-stream")
		return
	}
	if err := web.CheckFlush(w); err != nil {
		s.warnBuffered(err)
		w.Header().Set("Allow", "POST, DELETE") // SHTTP-25: no stream is offered here
		web.Refuse(w, http.StatusMethodNotAllowed, jsonrpc.CodeInternal, err.Error())
		return
	}
	l := &listener{over: make(chan struct{})}
	l.run = run{of: l, endless: true}
	sess := s.session(w, r, jsonrpc.ID{}, r.Header.Get(headerVersion), &l.run)
	if sess == nil {
		return
	}
	defer s.done(sess, &l.run)
	p := &response{server: s, w: w, last: ends(r), left: func() { l.Cancel(nil) }}
	defer p.end()
	if !s.listen(r.Context(), l, p, sess, r.Header.Get("Last-Event-ID")) {
		return
	}
	defer l.leave(p)
	if l.ofCall {
		defer context.AfterFunc(sess.Context(), func() { l.Cancel(ErrSessionEnded) })()
	} else {
		defer sess.events.leave(l)
	}
	select {
	case <-l.over:
	case <-r.Context().Done():
	}
}

// listen gives l its stream on p, a new one or that of the event lastID. If there is none, it
// answers the request and returns false. The context is that of the client.
func (s *Server) listen(client context.Context, l *listener, p *response, sess *session, lastID string) bool {
	var st *stream
	var position int64
	anew := lastID == ""
	if !anew {
		if st, position = sess.find(lastID); st == nil && sess.continued {
			var answered bool
			if anew, answered = s.elsewhere(client, l, p, sess, lastID); answered {
				return false
			}
		}
	}
	if !anew {
		if st == nil || !st.resume(p, position) {
			web.Refuse(p.w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "no events are kept after this Last-Event-ID; its stream cannot be resumed")
			return false
		}
		l.stream = st
	} else {
		sess.WatchLists(s.Engine) // first: once the stream is open, the client gets every change
		if l.stream = s.newStream(p, sess, false); p.open() != nil {
			return false
		}
	}
	if l.ofCall {
		return true
	}
	sess.WatchLists(s.Engine) // for a resumed stream
	if lost := sess.events.join(l); lost > 0 {
		s.Logger.Warn("notifications dropped", "conn", sess.name, "count", lost)
	}
	return true
}
