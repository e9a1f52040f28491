package streamable

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// session is the transport's state of a legacy session.
type session struct {
	*engine.Session
	server    *Server
	id        string
	name      string // for recordings: the id is a secret
	principal string
	most      int // bounds the running calls, and the unanswered questions; 0 for no bound
	events    events
	keeper    *keeper // nil: the session ends with the process

	// Guarded by mu of the server.
	users     int // exchanges at work
	idleSince time.Time
	ended     bool

	continued bool        // another process has opened it
	following uint8       // streams of other processes that it resumes; guarded by mu of the session, and here for its size
	acted     atomic.Bool // more than reads has happened

	mu      sync.Mutex
	calls   calls                                // at work; guarded by mu
	asked   map[jsonrpc.ID]chan *jsonrpc.Message // unanswered requests from the server; guarded by mu
	lastAsk int64                                // guarded by mu
	streams []*stream                            // that can be resumed, oldest first; guarded by mu
	closed  error                                // guarded by mu
}

// calls holds the running calls of a session by id. Most sessions have one at a time, which needs
// no map.
type calls struct {
	one  *work // nil: none
	more map[jsonrpc.ID]*work
}

func (c *calls) len() int {
	if c.one == nil {
		return len(c.more)
	}
	return 1 + len(c.more)
}

func (c *calls) get(id jsonrpc.ID) *work {
	if c.one != nil && c.one.id == id {
		return c.one
	}
	return c.more[id]
}

// put adds a call with a new id.
func (c *calls) put(w *work) {
	if c.one == nil {
		c.one = w
		return
	}
	if c.more == nil {
		c.more = map[jsonrpc.ID]*work{}
	}
	c.more[w.id] = w
}

func (c *calls) drop(w *work) {
	if c.one == w {
		c.one = nil
		return
	}
	delete(c.more, w.id)
}

func (c *calls) cancel(cause error) {
	if c.one != nil {
		c.one.ctx.Cancel(cause)
	}
	for _, w := range c.more {
		w.ctx.Cancel(cause)
	}
}

// sessionTable holds the sessions of a server. One timer ends the idle ones. It fires when the
// first may have been idle for too long, and checks all, so that a use only records its time.
type sessionTable struct {
	byID  map[string]*session
	timer *time.Timer
	due   time.Time // when the timer fires; zero if it is not set
}

// reserve takes a place for a session of a principal. If there is none, it ends an idle session
// of the same principal; if there is none either, it returns the reason and the time to wait. The
// place is released when the session that add puts there is removed, or by the caller.
func (s *Server) reserve(principal string) (wait time.Duration, err error) {
	for {
		if err = s.places.Take(principal, s.MaxSessions, "sessions"); err == nil {
			return 0, nil
		}
		s.mu.Lock()
		quiet := s.quietest(principal)
		if quiet == nil {
			wait = time.Minute
			if !s.sessions.due.IsZero() {
				wait = time.Until(s.sessions.due)
			}
			s.mu.Unlock()
			return max(wait, time.Second), err
		}
		s.removeLocked(quiet)
		s.mu.Unlock()
		go quiet.finish(fmt.Errorf("%w: it was replaced by a newer session of its caller (HTTPConfig.MaxSessions)", ErrSessionEnded)) // a store may be slow
	}
}

// maxLooks bounds the sessions that quietest examines, because it runs for each session that is
// opened when there is no room. A sample is enough: a caller without room has a quarter of all.
const maxLooks = 500

// quietest returns the longest idle session of a principal among those in which only reads have
// happened: its client can open another without loss. It returns nil if there is none. Mu is
// held.
func (s *Server) quietest(principal string) (quiet *session) {
	looks := 0
	for _, sess := range s.sessions.byID {
		if looks++; looks > maxLooks {
			break
		}
		if sess.principal != principal || sess.users > 0 || sess.acted.Load() {
			continue
		}
		if quiet == nil || sess.idleSince.Before(quiet.idleSince) {
			quiet = sess
		}
	}
	return quiet
}

// add puts a new session on a reserved place, in use by its caller.
func (s *Server) add(es *engine.Session, principal string) *session {
	sess := s.newSession(rand.Text(), es, principal) // 130 bits, A-Z and 2-7 (SHTTP-25-033, -034)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(sess)
	return sess
}

// newSession makes a session in use by its caller.
func (s *Server) newSession(id string, es *engine.Session, principal string) *session {
	sess := &session{
		Session:   es,
		server:    s,
		id:        id,
		name:      "session-" + strconv.FormatInt(s.names.Add(1), 10),
		principal: principal,
		most:      s.Concurrent,
		users:     1,
	}
	es.Events = &sess.events
	sess.events.session = sess
	s.keep(sess)
	return sess
}

// putLocked puts a session on a reserved place; mu is held.
func (s *Server) putLocked(sess *session) {
	if s.sessions.byID == nil {
		s.sessions.byID = map[string]*session{}
	}
	s.sessions.byID[sess.id] = sess
	if sess.users == 0 && s.SessionIdle > 0 && s.sessions.due.IsZero() {
		s.schedule(s.SessionIdle)
	}
}

// use finds a session and keeps it from being idle until done is called. It does not find
// sessions of other principals. If r is not nil it is started too, until done; the error is
// [ErrShutdown].
func (s *Server) use(id, principal string, r *run) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions.byID[id]
	if sess == nil || sess.principal != principal {
		return nil, nil
	}
	if sess.users == 0 && s.SessionIdle > 0 && time.Since(sess.idleSince) >= s.SessionIdle {
		return nil, nil // the timer is about to end it
	}
	if r != nil && !s.startLocked(r) {
		return nil, ErrShutdown
	}
	sess.users++
	return sess, nil
}

// done ends a use, and the run that it began with.
func (s *Server) done(sess *session, r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r != nil {
		s.stopLocked(r)
	}
	if sess.users--; sess.users > 0 || sess.ended {
		return
	}
	sess.idleSince = time.Now()
	if s.SessionIdle > 0 && s.sessions.due.IsZero() {
		s.schedule(s.SessionIdle)
	}
}

// Idle returns how long the session has had no exchange, an open stream included; 0 while it has.
func (e *events) Idle() time.Duration {
	if e.session == nil {
		return 0
	}
	s := e.session.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.session.users > 0 {
		return 0
	}
	return time.Since(e.session.idleSince)
}

// schedule sets the timer; mu is held.
func (s *Server) schedule(d time.Duration) {
	s.sessions.due = time.Now().Add(d)
	if s.sessions.timer == nil {
		s.sessions.timer = time.AfterFunc(d, s.reap)
		return
	}
	s.sessions.timer.Reset(d)
}

// reap ends the sessions that were idle for too long. It runs on the timer.
func (s *Server) reap() {
	var gone []*session
	s.mu.Lock()
	now, next := time.Now(), time.Duration(0)
	for _, sess := range s.sessions.byID {
		if sess.users > 0 {
			continue
		}
		if left := s.SessionIdle - now.Sub(sess.idleSince); left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		s.removeLocked(sess)
		gone = append(gone, sess)
	}
	if s.sessions.due = (time.Time{}); next > 0 {
		s.schedule(max(next, time.Duration(len(s.sessions.byID))*lookTime))
	}
	s.mu.Unlock()
	for _, sess := range gone {
		sess.end(fmt.Errorf("%w: it was idle for %v (HTTPConfig.SessionIdle)", ErrSessionEnded, s.SessionIdle))
	}
	for _, sess := range gone {
		if sess.keeper.drop(sess) != nil {
			break // a store that does not answer now would hold each of the others up
		}
	}
}

// lookTime times the number of sessions is the minimum time between two checks of all sessions: a
// hundred times the cost of a check.
const lookTime = 10 * time.Microsecond

// remove forgets a session. It returns false if that was done before.
func (s *Server) remove(sess *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeLocked(sess)
}

func (s *Server) removeLocked(sess *session) bool {
	if sess.ended {
		return false
	}
	sess.ended = true
	delete(s.sessions.byID, sess.id)
	s.places.Leave(sess.principal)
	return true
}

// takeSessions forgets all sessions and returns them.
func (s *Server) takeSessions() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*session
	for _, sess := range s.sessions.byID {
		s.removeLocked(sess)
		all = append(all, sess)
	}
	if s.sessions.timer != nil {
		s.sessions.timer.Stop()
		s.sessions.due = time.Time{}
	}
	return all
}

// end cancels the running calls of a removed session and waits for its listens.
func (sess *session) end(cause error) {
	sess.mu.Lock()
	sess.closed = cause
	sess.calls.cancel(cause)
	sess.mu.Unlock()
	sess.events.end()
	sess.Session.Close(cause)
	sess.dropStreams()
}

var (
	errDuplicate = errors.New("a request with this id is already running in the session; ids are used once")
	errTooMany   = errors.New("wait for some to end (Limits.Concurrent)")
)

// begin registers a call, so that it can be cancelled by its id.
func (sess *session) begin(w *work) error {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	if sess.closed != nil {
		return sess.closed
	}
	if sess.calls.get(w.id) != nil {
		return errDuplicate
	}
	if sess.most > 0 && sess.calls.len() >= sess.most {
		return fmt.Errorf("%d requests of the session are in progress, which is the limit; %w", sess.most, errTooMany)
	}
	sess.calls.put(w)
	if !revision.Reads(w.msg.Method) && !sess.acted.Load() {
		sess.acted.Store(true)
	}
	return nil
}

func (sess *session) over(w *work) {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	sess.calls.drop(w)
}

// take handles a notification or a response from the client. It reports false if that is about a call or a question which is not here, or
// no longer.
func (sess *session) take(msg *jsonrpc.Message, s *Server) bool {
	if msg.Kind() == jsonrpc.KindResponse {
		return sess.answer(msg)
	}
	return sess.note(msg, s)
}

// note handles a notification from the client. It reports false if that cancels a call which is not here.
func (sess *session) note(msg *jsonrpc.Message, s *Server) bool {
	if msg.Method == revision.NoteRootsChanged {
		sess.RootsChanged(s.Engine)
		return true
	}
	if msg.Method != revision.NoteCancelled {
		return true // there is nothing to do for the others
	}
	raw, _ := msg.Param("requestId")
	id, err := jsonrpc.ParseID(raw)
	if err != nil {
		return true // malformed cancellations are ignored (2025-11-25, utilities/cancellation)
	}
	cause := ErrCancelled
	if raw, ok := msg.Param("reason"); ok {
		if reason, err := jsonx.Unquote(raw); err == nil && reason != "" {
			cause = fmt.Errorf("%w: %q", ErrCancelled, text.Short(reason))
		}
	}
	// An initialize is not among the calls, and so cannot be cancelled.
	sess.mu.Lock()
	w := sess.calls.get(id)
	sess.mu.Unlock()
	if w != nil {
		s.Logger.Debug("call cancelled", "id", id.String(), "err", cause)
		w.ctx.Cancel(cause)
	}
	return w != nil
}

// answer handles a client's response to a request from the server. It reports false if the request is not here, or no longer.
func (sess *session) answer(msg *jsonrpc.Message) bool {
	sess.mu.Lock()
	got := sess.asked[msg.ID]
	delete(sess.asked, msg.ID)
	sess.mu.Unlock()
	if got != nil {
		m := msg.Clone()
		got <- &m // capacity 1
	}
	return got != nil
}

// ask sends a request from the server on the stream of a call and waits for the answer, which comes
// in another POST.
func (sess *session) ask(ctx context.Context, send func(frame []byte) error, method string, params json.RawMessage) (json.RawMessage, error) {
	got := make(chan *jsonrpc.Message, 1)
	sess.mu.Lock()
	if sess.most > 0 && len(sess.asked) >= sess.most {
		sess.mu.Unlock()
		return nil, fmt.Errorf("ask the client: %d questions of the session have no answer yet, which is the limit; %w", sess.most, errTooMany)
	}
	sess.lastAsk++
	id := jsonrpc.IntID(sess.lastAsk)
	if sess.asked == nil {
		sess.asked = map[jsonrpc.ID]chan *jsonrpc.Message{}
	}
	sess.asked[id] = got
	sess.mu.Unlock()
	defer func() {
		sess.mu.Lock()
		delete(sess.asked, id)
		sess.mu.Unlock()
	}()
	if err := send(jsonrpc.AppendRequest(nil, id, method, params)); err != nil {
		return nil, fmt.Errorf("ask the client: %w", err)
	}
	select {
	case msg := <-got:
		if msg.Error != nil {
			return nil, msg.Error
		}
		return msg.Result, nil
	case <-ctx.Done():
		note := id.AppendJSON([]byte(`{"requestId":`))
		_ = send(jsonrpc.AppendNotification(nil, revision.NoteCancelled, append(note, '}'))) // the client may ignore it
		return nil, context.Cause(ctx)
	}
}
