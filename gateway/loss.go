package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// losses are what clients have yet to be told: that a connection of theirs has ended, and with it
// what the server kept for them. The next request of such a client to that server fails with the
// reason before it reaches a connection that knows nothing, and so do the others that it sends
// before it has that answer. It is about requests whose answer may depend on that state, so that
// lists are not concerned.
//
// Sessions of a principal that share a connection are each told. One that has not used it, such
// as a new window, may count on what was there all the same: the first of these is told too.
//
// A client without a session is not told if its connection ended because nobody used it for long:
// nobody can say that it has not left. The zero value is ready for use.
type losses struct {
	n atomic.Int64 // of due

	mu  sync.Mutex
	due map[loss]*due // guarded by mu
}

// loss is a client that has lost its state.
type loss struct {
	server string
	who    client // alone, or the owner of the connection
	others bool   // all callers of that owner who have not used it
}

// due is what such a client is told.
type due struct {
	why  string
	used map[client]struct{} // of others: those who are told apart
	told chan struct{}       // closed when the answers go out; nil before the first request
}

const (
	// maxLosses bounds what is kept for clients that may never come back.
	maxLosses = 10_000

	// Requests that a client has sent at once come at about the same time. The answer to the
	// first waits as long for the others.
	tellTime = 200 * time.Millisecond
)

// add has a client told why its state at a server is gone.
func (l *losses) add(key loss, d *due) {
	session := key.who.session
	if session != nil && session.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, ok := l.due[key]
	switch {
	case !ok && len(l.due) >= maxLosses:
		return
	case !ok && session != nil:
		context.AfterFunc(session, func() { l.drop(key, nil) })
	case ok:
		maps.Copy(d.used, before.used)
	}
	if key.others { // by then the connection would have ended because nobody used it
		time.AfterFunc(clientIdle, func() { l.drop(key, d) })
	}
	if l.due == nil {
		l.due = map[loss]*due{}
	}
	l.due[key] = d
	l.n.Store(int64(len(l.due)))
}

// none tells whether nobody has anything to be told.
func (l *losses) none() bool { return l.n.Load() == 0 }

// drop takes back what a client would be told, only d if that is not nil.
func (l *losses) drop(key loss, d *due) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d == nil || l.due[key] == d {
		delete(l.due, key)
		l.n.Store(int64(len(l.due)))
	}
}

// probing marks the context of a request that is made to find out whether a server has something.
type probing struct{}

// owed returns what the caller of a request has to be told about its state at a server, nil if
// that is nothing. Owner is whose connection it would use.
func (l *losses) owed(ctx context.Context, server, method string, who, owner client) *due {
	if l.none() || !revision.Asks(method) && !leaves(method) || ctx.Value(probing{}) != nil {
		return nil
	}
	who = who.alone()
	l.mu.Lock()
	defer l.mu.Unlock()
	key := loss{server, who, false}
	d := l.due[key]
	if d == nil {
		key = loss{server, owner, true}
		if d = l.due[key]; d == nil {
			return nil
		}
		if _, apart := d.used[who]; apart {
			return nil
		}
	}
	if d.told == nil {
		d.told = make(chan struct{})
		time.AfterFunc(tellTime, func() {
			l.drop(key, d)
			close(d.told)
		})
	}
	return d
}

// wait returns when the answer may go out.
func (d *due) wait(ctx context.Context) {
	select {
	case <-d.told:
	case <-ctx.Done():
	}
}

// tell returns the error of a request that was not made.
func (d *due) tell(ctx context.Context, server string) error {
	d.wait(ctx)
	return mcp.Errorf(jsonrpc.CodeInternal, "what server %q kept for you is gone: %s. This request did not reach it; the next one starts anew", server, d.why)
}

// leaves tells whether a request may leave state behind at the server, in its session. One
// without a method is anything.
func leaves(method string) bool {
	return !revision.Reads(method) && method != revision.MethodListen
}

// keeps tells whether the server keeps what happens over c for those who use it; mu is held.
func (p *pool) keeps(c *conn) bool {
	return c.own || p.src.Alone && p.revision.Sessions()
}

// tells is keeps where mu is not held.
func (p *pool) tells(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keeps(c)
}

// retire notes that a connection of a client is of use no more, for those who have used it and
// whose state it may hold; mu is held. They are told once.
func (p *pool) retire(c *conn, why string) {
	for who := range c.actors {
		p.noteLoss(who, why)
	}
	c.actors = nil
}

// retireAll is retire, for all who may count on the state that a connection holds; mu is held.
func (p *pool) retireAll(c *conn, why string) {
	if len(c.actors) > 0 && p.share == PerPrincipal && c.who.session == nil {
		p.g.losses.add(loss{p.src.Name, c.who, true}, &due{why: why, used: maps.Clone(c.actors)})
	}
	p.retire(c, why)
}

// noteLoss notes that a client has lost its state; mu is held.
func (p *pool) noteLoss(who client, why string) {
	if who.session != nil && who.session.Err() != nil {
		return
	}
	p.losses++
	p.g.losses.add(loss{p.src.Name, who, false}, &due{why: why})
}

// replaced notes that another server has taken the place of this one.
func (p *pool) replaced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.AppendSeq([]*conn{}, maps.Values(p.clients))
	if p.main != nil {
		all = append(all, p.main)
	}
	for _, c := range all {
		p.retireAll(c, "it was started anew, as its configuration has changed")
	}
}

// lostWhy words why a connection was lost.
func lostWhy(err error) string {
	if err == nil {
		return "its connection was lost"
	}
	return "its connection was lost: " + forCallers(err)
}

// forCallers words the end of a connection without the command of the server, which may hold a
// path of the host: that is for the operator (see [Status]).
func forCallers(err error) string {
	if exit := (*mcp.ExitError)(nil); errors.As(err, &exit) {
		if exit.Stderr != "" {
			return fmt.Sprintf("%s; it last said: %q", exit.State, exit.Stderr)
		}
		return exit.State
	}
	return err.Error()
}

// inSessions tells whether a session that may have state at c goes on; mu of the pool is held.
func (c *conn) inSessions() bool {
	for who := range c.actors {
		if who.session != nil && who.session.Err() == nil {
			return true
		}
	}
	return false
}

// forgetLoose takes those without a session from whose state c may hold; mu of the pool is held.
func (c *conn) forgetLoose() {
	for who := range c.actors {
		if who.session == nil {
			delete(c.actors, who)
		}
	}
}
