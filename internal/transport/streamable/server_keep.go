package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/store"
)

// storeTime bounds how long an operation of a store of sessions may take.
const storeTime = 3 * time.Second

var errStore = errors.New("the store of sessions does not answer")

// keeper keeps a session in the store of its server.
type keeper struct {
	putting sync.Mutex // one change at a time, so that the newest counts
	ended   bool       // guarded by putting

	mu   sync.Mutex
	due  bool          // a goroutine is about to put; guarded by mu
	last chan struct{} // closed when the last goroutine has put, or failed; nil: there was none; guarded by mu
}

// keep prepares a session for the store. Without one it does nothing.
func (s *Server) keep(sess *session) {
	if s.Sessions == nil {
		return
	}
	sess.keeper = new(keeper)
	sess.Session.Keep(func() { sess.keeper.later(sess) }, sess.keeper.settled)
}

// put writes the session to the store.
func (k *keeper) put(ctx context.Context, sess *session) error {
	k.putting.Lock()
	defer k.putting.Unlock()
	if k.ended {
		return nil
	}
	k.mu.Lock()
	k.due = false // what changes from here on is put again
	k.mu.Unlock()
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer stop()
	return sess.server.Sessions.PutSession(ctx, store.Session{ID: sess.id, Principal: sess.principal, Data: sess.Session.State()})
}

// later writes the session soon. Changes that come together are written once.
func (k *keeper) later(sess *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.due {
		return
	}
	k.due = true
	put := make(chan struct{})
	k.last = put
	go func() { // ends within storeTime for each put
		defer close(put)
		if err := k.put(context.Background(), sess); err != nil {
			sess.server.Logger.Warn("a session was not kept as it is now; another process would continue an older state of it", "conn", sess.name, "err", err)
		}
	}()
}

// settleTime bounds how long a call waits for the store.
const settleTime = time.Second

// settled waits until the last change is in the store, but not for long: if the store does not answer, calls go on in
// the sessions that are open.
func (k *keeper) settled(ctx context.Context) {
	k.mu.Lock()
	last := k.last
	k.mu.Unlock()
	if last == nil {
		return
	}
	t := time.NewTimer(node.Wait(ctx, settleTime))
	defer t.Stop()
	select {
	case <-last:
	case <-t.C:
	case <-ctx.Done():
	}
}

// drop forgets a session that has ended for good; one that another process continues, or may continue when this one ends, stays. The
// error is that of the store.
func (k *keeper) drop(sess *session) error {
	if k == nil {
		return nil
	}
	k.putting.Lock()
	defer k.putting.Unlock()
	k.ended = true
	ctx, stop := context.WithTimeout(context.Background(), storeTime)
	defer stop()
	err := sess.server.Sessions.DropSession(ctx, sess.id)
	if err != nil {
		sess.server.Logger.Warn("a session that has ended stays in its store for a while", "conn", sess.name, "err", err)
	}
	return err
}

// finish ends a removed session for good.
func (sess *session) finish(cause error) {
	sess.end(cause)
	_ = sess.keeper.drop(sess) // it is logged, and the store forgets the session in time
}

// restore continues a session that another process has opened, if there is one of that id and of the principal of the
// request.
func (s *Server) restore(r *http.Request, id, principal string) error {
	done, err := s.restoring.begin(r.Context(), id)
	if err != nil {
		return err
	}
	defer done()
	s.mu.Lock()
	_, here := s.sessions.byID[id]
	down := s.down
	s.mu.Unlock()
	switch {
	case here:
		return nil
	case down:
		return ErrShutdown
	}
	ctx, stop := context.WithTimeout(r.Context(), storeTime)
	defer stop()
	kept, ok, err := s.Sessions.GetSession(ctx, id)
	switch {
	case err != nil:
		s.Logger.Warn("a session was not looked up in its store", "err", err)
		return errStore
	case !ok || kept.Principal != principal:
		return nil
	}
	es, err := s.Engine.Restore(r.Context(), kept.Data, engine.Caller{Principal: principal})
	if err != nil {
		s.Logger.Warn("a session is not continued", "err", err)
		return err
	}
	if _, err := s.reserve(principal); err != nil {
		return err
	}
	sess := s.newSession(id, es, principal)
	sess.users, sess.continued = 0, true
	sess.lastAsk = rand.Int64N(1 << 40) // a late answer to a question of the other process is for none of this one
	if s.Recorder != nil {
		s.Recorder.Session(id, es.Peer)
	}
	s.Engine.Opened(es) // before requests of the session
	s.mu.Lock()
	if down = s.down; !down {
		sess.idleSince = time.Now()
		s.putLocked(sess)
	}
	s.mu.Unlock()
	if down {
		s.places.Leave(principal)
		sess.end(ErrShutdown)
		return ErrShutdown
	}
	es.Resubscribe(s.Engine)
	es.TellMissed(s.Engine)
	s.Logger.Info("a session is continued that another process had opened", "conn", sess.name, "revision", es.Peer.Revision.Name)
	return nil
}

// onePerID lets one goroutine at a time work on an id. The zero value is ready to use.
type onePerID struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the work is done; guarded by mu
}

// begin waits for the work of others on an id. Work begins then, until done is called. The error is that of ctx.
func (o *onePerID) begin(ctx context.Context, id string) (done func(), err error) {
	for {
		o.mu.Lock()
		other := o.busy[id]
		if other == nil {
			own := make(chan struct{})
			if o.busy == nil {
				o.busy = map[string]chan struct{}{}
			}
			o.busy[id] = own
			o.mu.Unlock()
			return func() {
				o.mu.Lock()
				defer o.mu.Unlock()
				delete(o.busy, id)
				close(own)
			}, nil
		}
		o.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a session: %w", context.Cause(ctx))
		}
	}
}

// errTaken ends a session that another process continues.
var errTaken = fmt.Errorf("%w here: another process continues it", ErrSessionEnded)

// pass gives a message, which is about no call and no question here, to the processes that had the session before: a call of theirs may
// still run. Other such messages are dropped.
func (s *Server) pass(ctx context.Context, sess *session, msg *jsonrpc.Message) {
	shared, ok := s.Sessions.(store.SharedSessions)
	if !ok || !sess.continued {
		return
	}
	ctx, stop := context.WithTimeout(ctx, node.Wait(ctx, storeTime))
	defer stop()
	if err := shared.Pass(ctx, sess.id, jsonrpc.Append(nil, msg)); err != nil {
		s.Logger.Warn("a message for a call that runs in another process was lost", "conn", sess.name, "err", err)
	}
}

// Passed handles a message for a call that still runs here, of a session that another process continues.
func (s *Server) Passed(id string, message json.RawMessage) {
	msg, err := jsonrpc.Decode(message, s.limits())
	if err != nil || msg.Kind() == jsonrpc.KindRequest {
		return // no process sends one
	}
	s.mu.Lock()
	sess := s.sessions.byID[id]
	s.mu.Unlock()
	if sess != nil {
		sess.take(&msg, s)
	}
}

// Taken ends a session that another process continues.
func (s *Server) Taken(id string) {
	s.mu.Lock()
	sess := s.sessions.byID[id]
	taken := sess != nil && s.removeLocked(sess)
	s.mu.Unlock()
	if taken {
		sess.end(errTaken)
	}
}
