package gateway

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/mcp"
)

// losses are what clients have yet to be told: that a connection of theirs has ended, and with it
// what the server kept for them. The next request of such a client to that server fails with the
// reason, once, before it reaches a connection that knows nothing. It is about requests whose
// answer may depend on that state, so that lists are not concerned.
//
// A client without a session is not told if its connection ended because nobody used it for long:
// nobody can say that it has not left. The zero value is ready for use.
type losses struct {
	n atomic.Int64 // of due

	mu  sync.Mutex
	due map[loss]string // why; guarded by mu
}

type loss struct {
	server string
	who    client // alone
}

// maxLosses bounds what is kept for clients that may never come back.
const maxLosses = 10_000

// add has a client told why its state at a server is gone.
func (l *losses) add(server string, who client, why string) {
	if who.session != nil && who.session.Err() != nil {
		return
	}
	key := loss{server, who}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.due[key]; !ok {
		if len(l.due) >= maxLosses {
			return
		}
		if who.session != nil {
			context.AfterFunc(who.session, func() { l.drop(server, who) })
		}
	}
	if l.due == nil {
		l.due = map[loss]string{}
	}
	l.due[key] = why
	l.n.Store(int64(len(l.due)))
}

// drop takes back what a client would be told.
func (l *losses) drop(server string, who client) (why string, ok bool) {
	if l.n.Load() == 0 {
		return "", false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	why, ok = l.due[loss{server, who}]
	delete(l.due, loss{server, who})
	l.n.Store(int64(len(l.due)))
	return why, ok
}

// probing marks the context of a request that is made to find out whether a server has something.
type probing struct{}

// tell returns the error of a request whose client has lost its state at a server, nil if it has
// lost none.
func (l *losses) tell(ctx context.Context, server, method string) error {
	if l.n.Load() == 0 || !revision.Asks(method) && !leaves(method) || ctx.Value(probing{}) != nil {
		return nil
	}
	why, ok := l.drop(server, clientOf(ctx).alone())
	if !ok {
		return nil
	}
	return mcp.Errorf(mcp.CodeInternal, "what server %q kept for you is gone: %s. This request did not reach it; the next one starts anew", server, why)
}

// leaves tells whether a request may leave state behind at the server, in its session. One
// without a method is anything.
func leaves(method string) bool {
	return !revision.Reads(method) && method != revision.MethodListen
}

// retire notes that a connection of a client is of use no more, for those whose state it may
// hold; mu is held. They are told once.
func (p *pool) retire(c *conn, why string) {
	for who := range c.actors {
		p.noteLoss(who, why)
	}
	c.actors = nil
}

// noteLoss notes that a client has lost its state; mu is held.
func (p *pool) noteLoss(who client, why string) {
	if who.session != nil && who.session.Err() != nil {
		return
	}
	p.losses++
	p.g.losses.add(p.src.Name, who, why)
}

// replaced notes that another server has taken the place of this one.
func (p *pool) replaced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clients {
		p.retire(c, "it was started anew, as its configuration has changed")
	}
}

// lostWhy words why a connection was lost.
func lostWhy(err error) string {
	if err == nil {
		return "its connection was lost"
	}
	return fmt.Sprintf("its connection was lost: %v", err)
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
