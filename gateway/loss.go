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

	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// losses records which clients must learn that a connection of theirs has ended, and with it the
// state that the server kept for them. The next request of such a client to that server fails with
// the reason before it reaches a connection without that state, and so do other requests that the
// client sends before it has that answer. This applies only to requests that may depend on the
// state, so not to lists.
//
// If sessions of a principal share a connection, each of them is told. A session that has not used
// the connection, such as a new window, may still rely on its state; the first one of these is told
// too.
//
// A client without a session is not told if its connection ended because it was unused for a long
// time, because the client may have left. The zero value is ready for use.
type losses struct {
	n atomic.Int64 // the length of due

	mu  sync.Mutex
	due map[loss]*due // guarded by mu
}

// loss identifies clients that have lost their state.
type loss struct {
	server string
	who    client // one client, as alone returns it, or the owner of the connection
	others bool   // stands for the clients of that owner who have not used the connection
}

// due is a loss that is still to be reported.
type due struct {
	why  string
	used map[client]struct{} // with others: clients that are told separately
	told chan struct{}       // closed when the answers are sent; nil before the first request
}

const (
	// maxLosses bounds the entries for clients that may never return.
	maxLosses = 10_000

	// Requests that a client sends together arrive at about the same time. The first answer waits
	// this long for the others.
	tellTime = 200 * time.Millisecond
)

// add records that a client must be told why its state at a server is gone.
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
	if key.others { // the connection would have ended as unused by then
		time.AfterFunc(clientIdle, func() { l.drop(key, d) })
	}
	if l.due == nil {
		l.due = map[loss]*due{}
	}
	l.due[key] = d
	l.n.Store(int64(len(l.due)))
}

// none reports whether there are no losses.
func (l *losses) none() bool { return l.n.Load() == 0 }

// drop removes a loss; if d is not nil, only if it is d.
func (l *losses) drop(key loss, d *due) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d == nil || l.due[key] == d {
		delete(l.due, key)
		l.n.Store(int64(len(l.due)))
	}
}

// owed returns the loss that the caller of a request must be told, or nil. The argument owner is
// the owner of the connection that the request would use.
func (l *losses) owed(ctx context.Context, server, method string, who, owner client) *due {
	if l.none() || !revision.Asks(method) && !leaves(method) || note.Probing(ctx) {
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

// wait waits until the answer may be sent.
func (d *due) wait(ctx context.Context) {
	select {
	case <-d.told:
	case <-ctx.Done():
	}
}

// tell returns the error for a request that was not forwarded.
func (d *due) tell(ctx context.Context, server string) error {
	d.wait(ctx)
	text := fmt.Sprintf("the state that server %q kept for you is gone: %s", server, d.why)
	return stateLost{unsent{mcp.Errorf(jsonrpc.CodeInternal, "%s. This request did not reach it; the next one starts afresh", text)}, text}
}

// stateLost is the error of a request that was not sent because the state of its caller is lost.
type stateLost struct {
	unsent
	text string // without what has become of the request
}

// sent is the error for a request that was lost at the server, and was not sent again for that reason.
func (e stateLost) sent() error {
	return wasSent{mcp.Errorf(jsonrpc.CodeInternal, "%s. This request had reached it, and its answer is lost; the next one starts afresh", e.text)}
}

// wasSent is the error of a request that was sent once, and could not be sent again.
type wasSent struct{ error }

func (e wasSent) Unwrap() error { return e.error }

// Unsent returns false: the server may have got the request.
func (wasSent) Unsent() bool { return false }

// Unreached returns true: package metrics counts the error as one of the transport.
func (wasSent) Unreached() bool { return true }

// Unreached returns true: package metrics counts the error as one of the transport.
func (stateLost) Unreached() bool { return true }

// leaves reports whether a request may leave state at the server, in its session. An empty method
// stands for any request.
func leaves(method string) bool {
	return !revision.Reads(method) && method != revision.MethodListen
}

// keeps reports whether the server keeps state over c for its users; mu is held.
func (p *pool) keeps(c *conn) bool {
	return c.own || (p.src.Alone || p.src.Share == Exclusive) && p.revision.Sessions()
}

// tells is keeps without mu held.
func (p *pool) tells(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keeps(c)
}

// retire records that a connection is no longer usable, for its users whose state it may hold; mu
// is held. They are told once.
func (p *pool) retire(c *conn, why string) {
	for who := range c.actors {
		p.noteLoss(who, why)
	}
	c.actors = nil
}

// retireAll is retire for all clients that may rely on the state of a connection; mu is held.
func (p *pool) retireAll(c *conn, why string) {
	if len(c.actors) > 0 && p.share == PerPrincipal && c.who.session == nil {
		p.g.losses.add(loss{p.src.Name, c.who, true}, &due{why: why, used: maps.Clone(c.actors)})
	}
	p.retire(c, why)
}

// noteLoss records that a client has lost its state; mu is held.
func (p *pool) noteLoss(who client, why string) {
	if who.session != nil && who.session.Err() != nil {
		return
	}
	p.losses++
	p.g.losses.add(loss{p.src.Name, who, false}, &due{why: why})
}

// noteUse takes note that a server keeps state for a session that another process may continue; mu is held.
func (p *pool) noteUse(c *conn, who client) {
	if who.session == nil || !p.keeps(c) {
		return
	}
	if k := note.ContinuableOf(who.session); k != nil {
		k.Used(p.src.Name)
		p.noted.Store(true)
	}
}

// noting returns the session of a request that leaves state at the server and that another process may continue; nil: there is
// none. Gateways without such sessions look at nothing.
func (p *pool) noting(ctx context.Context, method string) context.Context {
	if !p.noted.Load() || !leaves(method) {
		return nil
	}
	return clientOf(ctx).session
}

// Continues tells g of a session that has begun. If another process had it before (mcp.HTTPConfig.Sessions), the
// servers that kept state for the session there have lost it, and the client is told once for each of them. The argument is
// that of mcp.Server.OnSession.
func (g *Gateway) Continues(session context.Context) {
	k := note.ContinuableOf(session)
	if k == nil {
		return
	}
	who := client{session: session, principal: mcp.CallFrom(session).Principal}
	for _, server := range k.Lost() {
		g.losses.add(loss{server, who, false}, &due{why: "the process that used it for your session has ended"})
	}
}

// replaced records that another server has replaced this one.
func (p *pool) replaced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.AppendSeq([]*conn{}, maps.Values(p.clients))
	if p.main != nil {
		all = append(all, p.main)
	}
	for _, c := range all {
		p.retireAll(c, "it was restarted, by its operator or because its configuration, or its sources, changed")
	}
}

// lostWhy words the reason for the loss of a connection.
func lostWhy(err error) string {
	if err == nil {
		return "its connection was lost"
	}
	return "its connection was lost: " + forCallers(err)
}

// forCallers words the end of a connection without the command of the server, which may contain a
// path of the host. The operator sees the command in [Status].
func forCallers(err error) string {
	if exit := (*mcp.ExitError)(nil); errors.As(err, &exit) {
		if exit.Stderr != "" {
			return fmt.Sprintf("%s; it last said: %q", exit.State, exit.Stderr)
		}
		return exit.State
	}
	return err.Error()
}

// inSessions reports whether a live session may have state at c; mu of the pool is held.
func (c *conn) inSessions() bool {
	for who := range c.actors {
		if who.session != nil && who.session.Err() == nil {
			return true
		}
	}
	return false
}

// forgetLoose removes the clients without a session from c.actors; mu of the pool is held.
func (c *conn) forgetLoose() {
	for who := range c.actors {
		if who.session == nil {
			delete(c.actors, who)
		}
	}
}
