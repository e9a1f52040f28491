package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// client identifies a caller, or the owner of a connection: a session, or a principal with the
// capabilities to answer questions (T-31). Roots are requested during calls, so they are not part
// of it.
type client struct {
	session   context.Context // nil: none
	principal string
	can       string // the questions that it can answer, see canOf
}

// clientKey is the context key for a client that clientOf would otherwise have to compute.
type clientKey struct{}

// as returns a context in which clientOf returns who.
func (who client) as(ctx context.Context) context.Context {
	return context.WithValue(ctx, clientKey{}, who)
}

// clientOf returns the caller of a request.
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

// canOf encodes as letters the capabilities that a server learns when a session opens.
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

// alone returns the part of a client that identifies it: only its session, if it has one.
func (who client) alone() client {
	if who.session != nil {
		who.can = ""
	}
	return who
}

// showsPages reports whether the caller displays the pages of tools.
func (who client) showsPages() bool { return strings.IndexByte(who.can, 'p') >= 0 }

// hasRoots reports whether the caller can be asked for roots.
func (who client) hasRoots() bool { return strings.IndexByte(who.can, 'r') >= 0 }

// owner returns the key in p.clients of the connection for a caller; mu is held.
func (p *pool) owner(who client) client {
	if p.share != PerPrincipal || p.roots && who.hasRoots() {
		return who.alone()
	}
	return client{principal: who.principal, can: who.can}
}

// ownerOf is owner without mu held.
func (p *pool) ownerOf(who client) client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owner(who)
}

// all returns the part of a client that decides what it may see of shared lists.
func (who client) all() client { return client{principal: who.principal} }

// conn is a connection to a server, or a fixed handler.
type conn struct {
	up   Upstream // nil while it is being opened
	h    mcp.Handler
	info json.RawMessage // the result of server/discover; nil: unknown

	// For a connection in a pool.
	own    bool          // serves one client only
	shared *subscription // of changes, for all callers; nil: none
	users  int           // calls and subscriptions in progress; guarded by mu of the pool
	last   time.Time     // when users became 0; guarded by mu of the pool
	until  time.Time     // the server holds state for a caller until then; guarded by mu of the pool

	lists listHealth
	fresh fresh
	turns turner // up, or nil if it does not support taking turns

	lister lister // up, or nil if it does not report versions of lists
	modern bool   // the server speaks 2026-07-28

	// For a connection of one client.
	tried  chan struct{}       // closed when up or err is set
	err    error               // why it could not be opened; read after tried
	evict  chan struct{}       // closed to make room
	opener client              // the client whose call opened it
	who    client              // the owner; guarded by mu of the pool
	broken bool                // it was lost; guarded by mu of the pool
	moved  chan struct{}       // capacity 1: who has changed
	actors map[client]struct{} // clients, as alone returns them, whose state the server may hold; guarded by mu of the pool
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

// offers returns false if the server has declared that it has no features of a kind.
func (c *conn) offers(k *listKind) bool {
	if c.info == nil || k.Capability == "" {
		return true
	}
	_, ok := jsonx.LookupPath(c.info, "capabilities", k.Capability)
	return ok
}

// unused returns how much longer c must stay unused before it is closed; mu of the pool is held.
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

// How long a server may hold state for a caller after a request was answered.
const (
	waitForAnswer = 15 * time.Minute // until the caller of a call returns with an answer to its question
	waitForTask   = time.Hour
)

// use counts a use of c; mu is held.
func (p *pool) use(c *conn) *conn {
	c.users++
	return c
}

// release ends a use of c. The outcome of the request is res and err.
func (p *pool) release(c *conn, res mcp.Result, err error) {
	wait := time.Duration(0)
	if _, ok := res.(*mcp.CreateTaskResult); ok && err == nil {
		wait = waitForTask
	} else if err != nil && !ofServer(err) {
		wait = waitForAnswer // the call may continue in another round
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

// ofServer reports whether an error is a response from the server.
func ofServer(err error) bool {
	var rpc *mcp.Error
	return errors.As(err, &rpc)
}

// take returns the connection for a request from the caller. It waits while the server is starting,
// and starts an idle server. The caller must release the connection. The error may report lost
// state, see losses.
func (p *pool) take(ctx context.Context, method string) (*conn, error) {
	var late <-chan time.Time // made when there is something to wait for
	p.mu.Lock()
	for {
		own := p.share == PerSession || p.share == PerPrincipal
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
		case p.state == Failing || p.state == NeedsLogin || p.state == Crashing || p.state == Disabled:
			err := p.unavailable()
			p.mu.Unlock()
			return nil, err
		case p.state == Idle:
			p.want()
		}
		if late == nil {
			late = time.After(callWait)
			defer wait.From(ctx).Since(time.Now())
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

// want requests the start of an idle server; mu is held.
func (p *pool) want() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// unavailable returns the error for a request to a server that is unavailable; mu is held.
func (p *pool) unavailable() error {
	switch {
	case p.state == NeedsLogin:
		return p.needsLogin(p.reason)
	case p.state == Disabled:
		return &UnavailableError{p.state, mcp.Errorf(jsonrpc.CodeInternal, "server %q is disabled (%s)", p.src.Name, p.reason)}
	case p.reason == "":
		return &UnavailableError{p.state, mcp.Errorf(jsonrpc.CodeInternal, "server %q is %s", p.src.Name, p.state)}
	}
	return &UnavailableError{p.state, mcp.Errorf(jsonrpc.CodeInternal, "server %q is %s: %s", p.src.Name, p.state, p.reason)}
}

// UnavailableError says that a request did not reach its server because the server is unavailable.
type UnavailableError struct {
	State State // of the server
	Err   error // a [*mcp.Error] for callers
}

func (e *UnavailableError) Error() string { return e.Err.Error() }

func (e *UnavailableError) Unwrap() error { return e.Err }

// Unreached returns true: package metrics takes the error for one of the transport.
func (e *UnavailableError) Unreached() bool { return true }

// openOwn opens the connection of a client on the goroutine of its caller; mu is held and released.
// Other callers of that client wait, and open it themselves if the first caller leaves.
func (p *pool) openOwn(ctx context.Context, who client, method string) (*conn, error) {
	owner := p.owner(who)
	c := &conn{own: true, opener: who, who: owner, tried: make(chan struct{}), evict: make(chan struct{}), moved: make(chan struct{}, 1)}
	p.clients[owner] = c
	if p.due > 0 {
		p.due--
		p.reopened++
	}
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
		p.started()
		p.announce() // listeners of the client move to this connection
		return p.useFor(c, who, method), nil
	case ctx.Err() != nil:
		p.dropLocked(c)
		return nil, context.Cause(ctx)
	case p.ctx.Err() != nil:
		p.dropLocked(c)
		return nil, p.unavailable()
	}
	p.suspect()
	p.startFailed(err)
	p.due++
	c.err = p.unopened(err)
	// Keep the error for a while, so that a burst of calls does not retry for each call.
	time.AfterFunc(firstPause, func() { p.drop(c) })
	return nil, c.err
}

// drop removes the connection of a client.
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

// watch closes the connection of a client when its session ends, it has been unused for too long,
// or it must make room.
func (p *pool) watch(c *conn) {
	defer p.closed(time.Now())
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
			p.broke(c)
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
				why = fmt.Sprintf("unused for %v", after)
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
		p.up.cache.forget(who)
	}
	c.up.Close()
}

// forList returns the source of a list for a client: a connection, which the caller must release,
// or a cached list. It returns an error that wraps errMissing if the server has no part in lists.
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
			if kept := p.up.cache.get(who.all(), k); kept != nil {
				p.mu.Unlock()
				return nil, kept, nil
			}
		}
		if p.state == Idle {
			p.want()
		} else {
			// Lists wait for a starting server, but all together no longer than this.
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

// listConn returns the connection for a list of a client, or nil if none is ready.
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

// ofClient returns the connection that serves only the client, or nil.
func (p *pool) ofClient(who client) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[p.owner(who)]; c != nil && c.up != nil {
		return c
	}
	return nil
}

// perClient reports whether clients have their own connections.
func (p *pool) perClient() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.share == PerSession || p.share == PerPrincipal
}

// outlives reports whether an HTTP connection may survive a request that failed with err.
func (c *conn) outlives(err error) bool {
	select {
	case <-c.up.Done():
		return false
	default:
	}
	return !errors.Is(err, mcp.ErrClosed) && !errors.As(err, new(*mcp.ExitError))
}

// lose records the loss of a connection before its owner notices it. The main connection stays if
// it may still work for others: over HTTP, a single request can fail.
func (p *pool) lose(c *conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suspect()
	if p.main == c && !c.outlives(err) {
		p.retireAll(c, lostWhy(err))
		if p.spawn(func() { c.up.Close() }) { // else end closes it
			p.main = nil
		}
	}
	if c.own {
		p.broke(c)
		p.retireAll(c, lostWhy(err))
		p.dropLocked(c)
	}
}

// broke counts the loss of the connection of a client, for the next one to count as a restart; mu is
// held.
func (p *pool) broke(c *conn) {
	if !c.broken {
		c.broken = true
		p.due++
	}
}

// current returns the connection that a client uses now, its own or the main one, or nil, and a
// channel that is closed when that may have changed.
func (p *pool) current(who client) (*conn, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[p.owner(who)]; c != nil && c.up != nil {
		return c, p.change()
	}
	return p.main, p.change()
}

// errMissing says that a server is missing from a list. OnStatus has reported the reason.
var errMissing = errors.New("the server is unavailable")

// errStarting is errMissing for a server that is still starting.
var errStarting = fmt.Errorf("%w: %s", errMissing, Starting)
