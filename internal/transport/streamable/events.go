package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

const (
	maxBacklog   = 64 // messages kept while no GET stream is open
	maxListeners = 8  // GET streams of one session
)

// events is where messages of a session go that belong to no call: to the newest
// of its GET streams, and to that one only (SHTTP-25-027, -028).
type events struct {
	mu        sync.Mutex
	listeners []*listener // newest last; guarded by mu
	backlog   [][]byte    // guarded by mu
	lost      int         // messages dropped from the backlog; guarded by mu
}

// listener is one open GET stream.
type listener struct {
	*response
	wake chan struct{}           // it is the newest now; has room for one
	stop context.CancelFunc      // ends its turn as the newest; guarded by mu of events
	quit context.CancelCauseFunc // ends the stream
}

var (
	errNoCall         = errors.New("there is no call to ask the client for")
	errTooManyStreams = errors.New("the client opened more streams")
)

// Notify sends a notification to the newest stream, or keeps it for the next.
func (v *events) Notify(method string, params json.RawMessage) error {
	v.deliver(jsonrpc.AppendNotification(nil, method, params))
	return nil
}

// Request fails: every question belongs to a call.
func (v *events) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errNoCall
}

func (v *events) deliver(frame []byte) {
	for {
		v.mu.Lock()
		n := len(v.listeners)
		if n == 0 {
			v.keep(frame)
			v.mu.Unlock()
			return
		}
		l := v.listeners[n-1]
		v.mu.Unlock()
		if l.send(frame) == nil {
			return
		}
		v.leave(l) // its connection is gone; the one before it is next
	}
}

// keep puts a message aside; mu is held.
func (v *events) keep(frame []byte) {
	if len(v.backlog) == maxBacklog {
		v.backlog = slices.Delete(v.backlog, 0, 1)
		v.lost++
	}
	v.backlog = append(v.backlog, frame)
}

// join makes l the newest stream.
func (v *events) join(l *listener) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := len(v.listeners); n > 0 && v.listeners[n-1].stop != nil {
		v.listeners[n-1].stop()
	}
	if len(v.listeners) == maxListeners {
		v.listeners[0].quit(errTooManyStreams)
		v.listeners = slices.Delete(v.listeners, 0, 1)
	}
	v.listeners = append(v.listeners, l)
	l.wake <- struct{}{}
}

// leave takes l out; the newest of the others takes over.
func (v *events) leave(l *listener) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.Index(v.listeners, l)
	if i < 0 {
		return
	}
	v.listeners = slices.Delete(v.listeners, i, i+1)
	if n := len(v.listeners); n > 0 && i == n {
		select {
		case v.listeners[n-1].wake <- struct{}{}:
		default:
		}
	}
	l.quit(ErrDisconnected)
}

// begin starts the turn of l as the newest stream, false if another one is.
// Lost is the number of messages that the backlog had no room for.
func (v *events) begin(l *listener, stop context.CancelFunc) (backlog [][]byte, lost int, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := len(v.listeners); n == 0 || v.listeners[n-1] != l {
		return nil, 0, false
	}
	l.stop = stop
	backlog, lost = v.backlog, v.lost
	v.backlog, v.lost = nil, 0
	return backlog, lost, true
}

// get opens an event stream for what belongs to no call, and serves it until the
// client leaves, the session ends or the server shuts down (2025-11-25,
// basic/transports, Listening for Messages from the Server).
//
// A stream that is not the newest stays open and gets nothing: closing it would
// make a client that wants two of them open it again and again.
func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	if _, asEvents := web.Accepts(r.Header); !asEvents {
		web.Refuse(w, http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest, "Accept must list text/event-stream")
		return
	}
	sess := s.session(w, r, jsonrpc.ID{}, r.Header.Get(headerVersion))
	if sess == nil {
		return
	}
	defer s.done(sess)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	at := &run{cancel: cancel, endless: true}
	if !s.start(at) {
		s.unavailable(w, jsonrpc.ID{})
		return
	}
	defer s.stop(at)
	defer context.AfterFunc(sess.Context(), func() { cancel(ErrSessionEnded) })()

	p := &response{server: s, w: w, tap: s.tap(sess.name)}
	defer p.end()
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		s.resume(ctx, p, sess, id)
		return
	}
	if p.open() != nil {
		return
	}
	l := &listener{response: p, wake: make(chan struct{}, 1), quit: cancel}
	sess.events.join(l)
	defer sess.events.leave(l)
	for {
		select {
		case <-l.wake:
			s.listen(ctx, sess, l)
		case <-ctx.Done():
			return
		}
	}
}

// listen serves a stream for as long as it is the newest.
func (s *Server) listen(ctx context.Context, sess *session, l *listener) {
	turn, stop := context.WithCancel(ctx)
	defer stop()
	backlog, lost, ok := sess.events.begin(l, stop)
	if !ok {
		return
	}
	if lost > 0 {
		s.Logger.Warn("notifications dropped", "conn", sess.name, "count", lost)
	}
	for _, frame := range backlog {
		sess.events.deliver(frame)
	}
	err := sess.Listen(turn, s.Engine, engine.ListChanges, turnExchange{l, turn}, nil)
	if err != nil && turn.Err() == nil {
		// The server has no such events. Those of single resources may still come.
		s.Logger.Debug("listen ended", "conn", sess.name, "err", err)
	}
	<-turn.Done()
}

// turnExchange sends on a stream while it is the newest, so that two streams never
// carry the same event.
type turnExchange struct {
	*listener
	turn context.Context
}

func (x turnExchange) Notify(method string, params json.RawMessage) error {
	if err := x.turn.Err(); err != nil {
		return err
	}
	return x.response.Notify(method, params)
}

func (x turnExchange) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errNoCall
}
