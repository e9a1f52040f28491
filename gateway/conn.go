package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// client is who has a connection of its own: a session, or a principal without one who can
// answer the same questions (T-31). What its roots are is asked in calls, and so no part of it.
type client struct {
	session   context.Context // nil: it has none
	principal string
	can       string // what can be asked without a session, see canOf
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
	call := mcp.CallFrom(ctx)
	if call == nil {
		return client{}
	}
	who := client{session: call.Session(), principal: call.Principal}
	if who.session == nil {
		who.can = canOf(call.Capabilities)
	}
	return who
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

// all is the part of a client that tells what it may see of what all share.
func (who client) all() client { return client{principal: who.principal} }

// conn is a connection to a server, or a handler that is always there.
type conn struct {
	up   Upstream // nil while it is being opened
	h    mcp.Handler
	info json.RawMessage // the result of server/discover, nil: not known

	// Of a connection in a pool.
	own   bool          // it is for one client
	news  *news         // of changes, nil: nobody follows them for all
	tried chan struct{} // of one for a client: closed when up or err is set
	err   error         // why it was not opened; read after tried
	evict chan struct{} // of one for a client: closed to make room
	users int           // calls and subscriptions; guarded by mu of the pool
	last  time.Time     // that users became 0; guarded by mu of the pool
	until time.Time     // something waits in the server until then; guarded by mu of the pool

	lists silence
}

func newConn(up Upstream) *conn { return &conn{up: up, h: up} }

// offers tells whether the server may have features of a kind: whether it did not say
// that it has none.
func (c *conn) offers(k *listKind) bool {
	if c.info == nil || k.capability == "" {
		return true
	}
	_, ok := jsonx.LookupPath(c.info, "capabilities", k.capability)
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
	if until := c.last.Add(wait); wait > 0 && until.After(c.until) {
		c.until = until
	}
	if p.state == Stopped {
		p.announce()
	}
}

// ofServer tells whether an error is what a server has answered.
func ofServer(err error) bool {
	var rpc *mcp.Error
	return errors.As(err, &rpc)
}

// take finds the connection for a request of the caller, waits for it while the server
// is starting, and opens it if nobody has used it for a while. It must be released.
func (p *pool) take(ctx context.Context) (*conn, error) {
	var late <-chan time.Time // made when there is something to wait for
	p.mu.Lock()
	for {
		own := p.share == PerClient
		var who client
		if own {
			who = clientOf(ctx)
			if c := p.clients[who]; c != nil {
				p.mu.Unlock()
				return p.takeOwn(ctx, who)
			}
		}
		switch {
		case p.state == Stopped:
			err := p.unavailable()
			p.mu.Unlock()
			return nil, err
		case own && (p.state == Ready || p.state == Idle):
			p.mu.Unlock()
			return p.takeOwn(ctx, who)
		case !own && p.main != nil:
			c := p.use(p.main)
			p.mu.Unlock()
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
		return mcp.Errorf(mcp.CodeInternal, "server %q is %s", p.src.Name, p.state)
	}
	return mcp.Errorf(mcp.CodeInternal, "server %q is %s: %s", p.src.Name, p.state, p.reason)
}

// takeOwn finds the connection of a client, and opens it if there is none.
func (p *pool) takeOwn(ctx context.Context, who client) (*conn, error) {
	for {
		p.mu.Lock()
		c := p.clients[who]
		if c == nil {
			return p.openOwn(ctx, who)
		}
		if c.up != nil {
			defer p.mu.Unlock()
			return p.use(c), nil
		}
		p.mu.Unlock()
		select {
		case <-c.tried:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if c.err != nil {
			return nil, c.err
		}
		// It is open, or its opener has left before it was.
	}
}

// openOwn opens the connection of a client, on the goroutine of its caller; mu is held and
// given up. Others of that client wait, and open it themselves if the caller leaves.
func (p *pool) openOwn(ctx context.Context, who client) (*conn, error) {
	if err := p.makeRoom(); err != nil {
		p.mu.Unlock()
		return nil, err
	}
	c := &conn{own: true, tried: make(chan struct{}), evict: make(chan struct{})}
	p.clients[who] = c
	opening := opening{caller: ctx, spoken: p.revision}
	p.mu.Unlock()

	opened, err := p.open(context.WithValue(ctx, openingKey{}, opening))
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(c.tried)
	switch {
	case err == nil:
		c.up, c.h, c.info = opened.up, opened.h, opened.info
		if !p.spawn(func() { p.watch(who, c) }) {
			delete(p.clients, who)
			go c.up.Close() // bounded in time
			c.up = nil
			return nil, p.unavailable()
		}
		p.announce() // who listens for the client listens there
		return p.use(c), nil
	case ctx.Err() != nil:
		delete(p.clients, who)
		return nil, context.Cause(ctx)
	case p.ctx.Err() != nil:
		delete(p.clients, who)
		return nil, p.unavailable()
	}
	c.err = p.unopened(err)
	// It is not tried again with each of many calls.
	time.AfterFunc(firstPause, func() { p.forget(who, c) })
	return nil, c.err
}

// makeRoom makes room for the connection of one more client; mu is held.
func (p *pool) makeRoom() error {
	if len(p.clients) < p.src.MaxClients {
		return nil
	}
	var quiet *conn
	var whose client
	for who, c := range p.clients {
		if c.up != nil && c.users == 0 && (quiet == nil || later(c.last, c.until).Before(later(quiet.last, quiet.until))) {
			quiet, whose = c, who
		}
	}
	if quiet == nil {
		return mcp.Errorf(mcp.CodeInternal, "server %q is used by %d clients, the most there may be; try again later", p.src.Name, len(p.clients))
	}
	delete(p.clients, whose)
	close(quiet.evict)
	return nil
}

// forget drops the connection of a client.
func (p *pool) forget(who client, c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients[who] == c {
		delete(p.clients, who)
		p.announce()
	}
}

// watch closes the connection of a client when its session is over, it is unused or makes
// room.
func (p *pool) watch(who client, c *conn) {
	after := p.src.Idle
	var left <-chan struct{}
	if who.session != nil {
		left = who.session.Done()
	} else if after == 0 {
		after = clientIdle
	}
	idle := newIdleTimer(after)
	defer idle.stop()
	for open := true; open; {
		select {
		case <-c.up.Done():
			p.g.log().Warn("connection of a client lost", "server", p.src.Name, "err", c.up.Err())
			p.mu.Lock()
			p.ended(c.up.Err())
			p.mu.Unlock()
			open = false
		case <-left:
			open = false
		case <-c.evict:
			open = false
		case <-p.over:
			open = false
		case <-idle.C():
			p.mu.Lock()
			wait := c.unused(after)
			if open = wait > 0; !open && p.clients[who] == c {
				delete(p.clients, who)
				p.announce()
			}
			p.mu.Unlock()
			if open {
				idle.again(wait)
			}
		}
	}
	p.forget(who, c)
	if who.session != nil {
		p.up.kept.forget(who)
	}
	c.up.Close()
}

// forList finds where a list for a client comes from: a connection, which must be
// released, or what was kept of an earlier one. Neither: the server has a part in no list.
func (p *pool) forList(ctx context.Context, who client, k *listKind) (*conn, []entry, error) {
	p.mu.Lock()
	for {
		if c := p.clients[who]; c != nil && c.up != nil {
			defer p.mu.Unlock()
			return p.use(c), nil, nil
		}
		var late <-chan time.Time
		switch {
		case p.state == Ready && p.main != nil:
			defer p.mu.Unlock()
			return p.use(p.main), nil, nil
		case !p.inLists() && p.state != Starting, p.state == Idle && k.capability == "":
			defer p.mu.Unlock()
			return nil, nil, fmt.Errorf("%w: %s", errMissing, p.state)
		case p.opened > 0:
			if kept, ok := p.up.kept.get(who.all(), k); ok {
				p.mu.Unlock()
				return nil, kept, nil
			}
		}
		if p.state == Idle {
			p.want()
		} else {
			// Lists wait for a server that starts, but all of them together no longer than this.
			left := time.Until(p.since.Add(p.g.listTimeout()))
			if left <= 0 {
				defer p.mu.Unlock()
				return nil, nil, fmt.Errorf("%w: %s", errMissing, p.state)
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

// ofClient returns the connection that is for a client alone, nil if there is none.
func (p *pool) ofClient(who client) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[who]; c != nil && c.up != nil {
		return c
	}
	return nil
}

// perClient tells whether clients have connections of their own.
func (p *pool) perClient() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.share == PerClient
}

// lose takes note that a connection was lost, before whoever keeps it does.
func (p *pool) lose(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.main == c {
		p.main = nil
	}
	for who, own := range p.clients {
		if own == c {
			delete(p.clients, who)
			break
		}
	}
}

// current returns the connection that a client has now, its own or the main one, nil if there
// is none, and a channel that is closed when that may be another.
func (p *pool) current(who client) (*conn, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[who]; c != nil && c.up != nil {
		return c, p.change()
	}
	return p.main, p.change()
}

// errMissing says that a server is missing from a list, of which OnStatus was told.
var errMissing = errors.New("the server is not there")
