package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// client is a caller, or whoever has a connection of its own: a session, or a principal who can
// answer the same questions (T-31). What its roots are is asked in calls, and so no part of it.
type client struct {
	session   context.Context // nil: it has none
	principal string
	can       string // what can be asked, see canOf
}

// clientKey is where a context has a client that clientOf would have to find out.
type clientKey struct{}

// as returns a context whose caller is taken for who.
func (who client) as(ctx context.Context) context.Context {
	return context.WithValue(ctx, clientKey{}, who)
}

// clientOf tells who calls.
func clientOf(ctx context.Context) client {
	if who, ok := ctx.Value(clientKey{}).(client); ok {
		return who
	}
	return clientOfCall(mcp.CallFrom(ctx))
}

func clientOfCall(call *mcp.Call) client {
	if call == nil {
		return client{}
	}
	return client{session: call.Session(), principal: call.Principal, can: canOf(call.Capabilities)}
}

// canOf is what a server that opens a session is told of capabilities, as letters.
func canOf(caps mcp.Capabilities) string {
	if len(caps) == 0 {
		return ""
	}
	can := make([]byte, 0, 8)
	has := func(letter byte, name string, settings ...string) bool {
		raw, ok := caps[name]
		if ok = ok && jsonx.KindOf(raw) == '{'; ok && len(settings) > 0 {
			_, ok = jsonx.LookupPath(raw, settings...)
		}
		if ok {
			can = append(can, letter)
		}
		return ok
	}
	if has('e', "elicitation") && has('u', "elicitation", "url") { // e alone means forms
		has('f', "elicitation", "form")
	}
	if has('s', "sampling") {
		has('t', "sampling", "tools")
		has('c', "sampling", "context")
	}
	has('r', "roots")
	has('p', "extensions", extUI)
	return string(can)
}

// alone is the part of a caller that tells it from all others: its session, if it has one.
func (who client) alone() client {
	if who.session != nil {
		who.can = ""
	}
	return who
}

// showsPages tells whether a caller shows the pages of tools.
func (who client) showsPages() bool { return strings.IndexByte(who.can, 'p') >= 0 }

// hasRoots tells whether a caller can be asked for roots.
func (who client) hasRoots() bool { return strings.IndexByte(who.can, 'r') >= 0 }

// owner is the part of a caller by which a connection to the server is its own; mu is held.
func (p *pool) owner(who client) client {
	if p.share != PerPrincipal || p.roots && who.hasRoots() {
		return who.alone()
	}
	return client{principal: who.principal, can: who.can}
}

// ownerOf is owner where mu is not held.
func (p *pool) ownerOf(who client) client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owner(who)
}

// all is the part of a client that tells what it may see of what all share.
func (who client) all() client { return client{principal: who.principal} }

// conn is a connection to a server, or a handler that is always there.
type conn struct {
	up   Upstream // nil while it is being opened
	h    mcp.Handler
	info json.RawMessage // the result of server/discover, nil: not known

	// Of a connection in a pool.
	own    bool          // it is for one client
	shared *subscription // of changes, nil: nobody follows them for all
	users  int           // calls and subscriptions; guarded by mu of the pool
	last   time.Time     // that users became 0; guarded by mu of the pool
	until  time.Time     // something waits in the server until then; guarded by mu of the pool

	lists listHealth
	fresh fresh
	turns turner // up, if callers can take turns there

	lister lister // up, if it tells when its lists change
	modern bool   // it speaks 2026-07-28

	// Of one for a client.
	tried  chan struct{}       // closed when up or err is set
	err    error               // why it was not opened; read after tried
	evict  chan struct{}       // closed to make room
	opener client              // whose call has opened it
	who    client              // whose it is; guarded by mu of the pool
	moved  chan struct{}       // capacity 1: who has changed
	actors map[client]struct{} // whose state it may hold, each alone; guarded by mu of the pool
}

func newConn(up Upstream) *conn {
	c := &conn{up: up, h: up}
	c.turns, _ = up.(turner)
	c.lister, _ = up.(lister)
	if r, ok := up.(interface{ Revision() mcp.Revision }); ok {
		c.modern = !r.Revision().Sessions()
	}
	return c
}

// offers tells whether the server may have features of a kind: whether it did not say
// that it has none.
func (c *conn) offers(k *listKind) bool {
	if c.info == nil || k.Capability == "" {
		return true
	}
	_, ok := jsonx.LookupPath(c.info, "capabilities", k.Capability)
	return ok
}

// unused returns how long c has to be unused yet to be closed; mu of the pool is held.
func (c *conn) unused(idle time.Duration) time.Duration {
	if c.users > 0 {
		return idle
	}
	return time.Until(later(c.last.Add(idle), c.until))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// How long something waits in a server after a request was answered.
const (
	waitForAnswer = 15 * time.Minute // a call for its caller to come back with an answer
	waitForTask   = time.Hour
)

// use counts a user of c; mu is held.
func (p *pool) use(c *conn) *conn {
	c.users++
	return c
}

// release ends a use of c for a request that was answered so.
func (p *pool) release(c *conn, res mcp.Result, err error) {
	wait := time.Duration(0)
	if _, ok := res.(*mcp.CreateTaskResult); ok && err == nil {
		wait = waitForTask
	} else if err != nil && !ofServer(err) {
		wait = waitForAnswer // it may be that of a call that goes on in the next round
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.users--
	c.last = time.Now()
	p.learn(c)
	if until := c.last.Add(wait); wait > 0 && until.After(c.until) {
		c.until = until
	}
	if p.state == Stopped || p.queued > 0 && c.users == 0 {
		p.announce()
	}
}

// ofServer tells whether an error is what a server has answered.
func ofServer(err error) bool {
	var rpc *mcp.Error
	return errors.As(err, &rpc)
}

// take finds the connection for a request of the caller, waits for it while the server
// is starting, and opens it if nobody has used it for a while. It must be released. The error
// may be that of lost state, see losses.
func (p *pool) take(ctx context.Context, method string) (*conn, error) {
	var late <-chan time.Time // made when there is something to wait for
	p.mu.Lock()
	for {
		own := p.share != Shared && p.share != ShareAuto
		var who client
		if own {
			who = clientOf(ctx)
			if c := p.clients[p.owner(who)]; c != nil {
				p.mu.Unlock()
				return p.takeOwn(ctx, who, method)
			}
		}
		switch {
		case p.state == Stopped:
			err := p.unavailable()
			p.mu.Unlock()
			return nil, err
		case own && (p.state == Ready || p.state == Idle):
			p.mu.Unlock()
			return p.takeOwn(ctx, who, method)
		case !own && p.main != nil:
			c := p.main
			if leaves(method) && p.keeps(c) {
				p.useFor(c, clientOf(ctx), method)
			} else {
				p.use(c)
			}
			p.mu.Unlock()
			if p.g.losses.none() {
				return c, nil
			}
			if d := p.g.losses.owed(ctx, p.src.Name, method, clientOf(ctx), client{}); d != nil {
				p.release(c, nil, nil)
				return nil, d.tell(ctx, p.src.Name)
			}
			return c, nil
		case p.state == Failing || p.state == NeedsLogin || p.state == Crashing:
			err := p.unavailable()
			p.mu.Unlock()
			return nil, err
		case p.state == Idle:
			p.want()
		}
		if late == nil {
			late = time.After(callWait)
		}
		changed := p.change()
		p.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			p.mu.Lock()
			err := p.unavailable()
			p.mu.Unlock()
			return nil, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		p.mu.Lock()
	}
}

// callWait bounds the wait of a call for a server that is starting.
const callWait = time.Minute

// want has an idle server started; mu is held.
func (p *pool) want() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// unavailable is the error for a request to a server that is not there; mu is held.
func (p *pool) unavailable() error {
	switch {
	case p.state == NeedsLogin:
		return p.needsLogin(p.reason)
	case p.reason == "":
		return &UnavailableError{p.state, mcp.Errorf(jsonrpc.CodeInternal, "server %q is %s", p.src.Name, p.state)}
	}
	return &UnavailableError{p.state, mcp.Errorf(jsonrpc.CodeInternal, "server %q is %s: %s", p.src.Name, p.state, p.reason)}
}

// UnavailableError says that a request has not reached a server, as that is not there.
type UnavailableError struct {
	State State // of the server
	Err   error // a [*mcp.Error], for callers
}

func (e *UnavailableError) Error() string { return e.Err.Error() }

func (e *UnavailableError) Unwrap() error { return e.Err }

// openOwn opens the connection of a client, on the goroutine of its caller; mu is held and
// given up. Others of that client wait, and open it themselves if the caller leaves.
func (p *pool) openOwn(ctx context.Context, who client, method string) (*conn, error) {
	owner := p.owner(who)
	c := &conn{own: true, opener: who, who: owner, tried: make(chan struct{}), evict: make(chan struct{}), moved: make(chan struct{}, 1)}
	p.clients[owner] = c
	opening := opening{caller: ctx, spoken: p.revision, many: p.share == PerPrincipal && owner.session == nil}
	p.mu.Unlock()

	opened, err := p.open(context.WithValue(ctx, openingKey{}, opening))
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(c.tried)
	switch {
	case err == nil:
		c.up, c.h, c.info, c.turns, c.lister, c.modern = opened.up, opened.h, opened.info, opened.turns, opened.lister, opened.modern
		if !p.spawn(func() { p.watch(c) }) {
			p.dropLocked(c)
			go c.up.Close() // bounded in time
			c.up = nil
			return nil, p.unavailable()
		}
		p.announce() // who listens for the client listens there
		return p.useFor(c, who, method), nil
	case ctx.Err() != nil:
		p.dropLocked(c)
		return nil, context.Cause(ctx)
	case p.ctx.Err() != nil:
		p.dropLocked(c)
		return nil, p.unavailable()
	}
	c.err = p.unopened(err)
	// It is not tried again with each of many calls.
	time.AfterFunc(firstPause, func() { p.drop(c) })
	return nil, c.err
}

// drop takes the connection of a client out.
func (p *pool) drop(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked(c)
}

func (p *pool) dropLocked(c *conn) {
	if p.clients[c.who] == c {
		delete(p.clients, c.who)
		p.announce()
	}
}

// watch closes the connection of a client when its session is over, it is unused or makes
// room.
func (p *pool) watch(c *conn) {
	p.mu.Lock()
	who := c.who
	p.mu.Unlock()
	after, unused := p.src.Idle, (<-chan time.Time)(nil)
	if after == 0 {
		after = clientIdle
	}
	idle := newIdleTimer(after)
	defer idle.stop()
	why := ""
	for open := true; open; {
		var left <-chan struct{}
		if who.session != nil {
			left = who.session.Done()
		}
		if unused = idle.C(); who.session != nil && p.src.Idle == 0 {
			unused = nil // it lasts as long as the session
		}
		select {
		case <-c.up.Done():
			p.g.log().Warn("connection of a client lost", "server", p.src.Name, "err", c.up.Err())
			p.mu.Lock()
			p.ended(c.up.Err())
			p.retireAll(c, lostWhy(c.up.Err()))
			p.mu.Unlock()
			open = false
		case <-left:
			open = false
		case <-c.evict:
			open = false
		case <-p.over:
			why, open = "the server was stopped", false
		case <-c.moved:
			p.mu.Lock()
			who = c.who
			p.mu.Unlock()
		case <-unused:
			p.mu.Lock()
			wait := c.unused(after)
			if wait <= 0 && p.src.Idle == 0 && c.inSessions() {
				wait = after
			}
			if open = wait > 0; !open {
				why = fmt.Sprintf("nobody has used it for %v", after)
				c.forgetLoose()
				p.retire(c, why)
				p.dropLocked(c)
			}
			p.mu.Unlock()
			if open {
				idle.again(wait)
			}
		}
	}
	p.mu.Lock()
	p.retire(c, why)
	p.dropLocked(c)
	p.mu.Unlock()
	if who.session != nil {
		p.up.kept.forget(who)
	}
	c.up.Close()
}

// forList finds where a list for a client comes from: a connection, which must be
// released, or what was kept of an earlier one. Neither: the server has a part in no list.
func (p *pool) forList(ctx context.Context, who client, k *listKind) (*conn, *keptList, error) {
	p.mu.Lock()
	for {
		if c := p.clients[p.owner(who)]; c != nil && c.up != nil {
			defer p.mu.Unlock()
			return p.use(c), nil, nil
		}
		var late <-chan time.Time
		switch {
		case p.state == Ready && p.main != nil:
			defer p.mu.Unlock()
			return p.use(p.main), nil, nil
		case !p.inLists() && p.state != Starting, p.state == Idle && k.Capability == "":
			defer p.mu.Unlock()
			return nil, nil, fmt.Errorf("%w: %s", errMissing, p.state)
		case p.opened > 0:
			if kept := p.up.kept.get(who.all(), k); kept != nil {
				p.mu.Unlock()
				return nil, kept, nil
			}
		}
		if p.state == Idle {
			p.want()
		} else {
			// Lists wait for a server that starts, but all of them together no longer than this.
			left := time.Until(p.since.Add(p.startWait(ctx)))
			if left <= 0 {
				defer p.mu.Unlock()
				return nil, nil, errStarting
			}
			late = time.After(left)
		}
		changed := p.change()
		p.mu.Unlock()
		select {
		case <-changed:
		case <-late:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
		p.mu.Lock()
	}
}

// listConn returns the connection that a list for a client comes from, nil if none is ready.
func (p *pool) listConn(who client) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[p.owner(who)]; c != nil && c.up != nil {
		return c
	}
	if p.state == Ready {
		return p.main
	}
	return nil
}

// ofClient returns the connection that is for a client alone, nil if there is none.
func (p *pool) ofClient(who client) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[p.owner(who)]; c != nil && c.up != nil {
		return c
	}
	return nil
}

// perClient tells whether clients have connections of their own.
func (p *pool) perClient() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.share == PerSession || p.share == PerPrincipal
}

// outlives tells whether a connection, over HTTP, may go on after a request that failed so.
func (c *conn) outlives(err error) bool {
	select {
	case <-c.up.Done():
		return false
	default:
	}
	return !errors.Is(err, mcp.ErrClosed) && !errors.As(err, new(*mcp.ExitError))
}

// lose takes note that a connection was lost, before its owner does. The main one stays if it still
// works for others: over HTTP a request fails alone.
func (p *pool) lose(c *conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.main == c && !c.outlives(err) {
		p.main = nil
		p.retireAll(c, lostWhy(err))
	}
	if c.own {
		p.retireAll(c, lostWhy(err))
		p.dropLocked(c)
	}
}

// current returns the connection that a client has now, its own or the main one, nil if there
// is none, and a channel that is closed when that may be another.
func (p *pool) current(who client) (*conn, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[p.owner(who)]; c != nil && c.up != nil {
		return c, p.change()
	}
	return p.main, p.change()
}

// errMissing says that a server is missing from a list, of which OnStatus was told.
var errMissing = errors.New("the server is not there")

// errStarting is errMissing of a server that may be there soon.
var errStarting = fmt.Errorf("%w: %s", errMissing, Starting)
