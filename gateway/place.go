package gateway

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// A place is room for the connection of one client, which may be a process. Places are limited
// (Source.MaxClients), and one principal has at most a quarter of them. If no place is free,
//
//   - a connection that was used for nothing but reads makes room, because nobody loses state;
//   - otherwise, the connection of a session that has had no request and no open stream for
//     quietTime makes room for its own principal. Its client may have left silently; if not, it is
//     informed of the loss;
//   - any other connection stays until its client leaves.
//
// A request without a place waits for one (Source.Queue).

// quietTime is how long a session must be quiet before it makes room for another.
const quietTime = 2 * time.Minute

// takeOwn returns the connection of a client, and opens it if there is none.
func (p *pool) takeOwn(ctx context.Context, who client, method string) (*conn, error) {
	var late <-chan time.Time
	var began time.Time // of the wait for a place and for the start of the server
	waits := func() {
		if began.IsZero() {
			began = time.Now()
		}
	}
	defer func() {
		if !began.IsZero() {
			wait.From(ctx).Since(began)
		}
	}()
	p.mu.Lock()
	for {
		c := p.clients[p.owner(who)]
		if p.rootsAsked(c) {
			p.perSession()
			c = p.clients[p.owner(who)]
		}
		switch {
		case c != nil && c.up == nil:
			p.mu.Unlock()
			waits()
			select {
			case <-c.tried:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			if c.err != nil {
				return nil, c.err
			}
			p.mu.Lock()
			continue // it is open, or the caller that was opening it has left
		case c == nil && p.state == Stopped:
			defer p.mu.Unlock()
			return nil, p.unavailable()
		}
		if d := p.g.losses.owed(ctx, p.src.Name, method, who, p.owner(who)); d != nil {
			p.mu.Unlock()
			return nil, d.tell(ctx, p.src.Name)
		}
		if c != nil {
			defer p.mu.Unlock()
			return p.useFor(c, who, method), nil
		}
		full := p.room(p.owner(who).principal)
		waits()
		if full == nil {
			return p.openOwn(ctx, who, method)
		}
		if p.src.Queue < 0 {
			defer p.mu.Unlock()
			p.refusals++
			return nil, full
		}
		if late == nil {
			late = time.After(p.src.Queue)
		}
		changed := p.change()
		p.queued++
		p.mu.Unlock()
		waits := true
		select {
		case <-changed:
		case <-late:
			waits = false
		case <-ctx.Done():
			full, waits = context.Cause(ctx), false
		}
		p.mu.Lock()
		p.queued--
		if !waits {
			defer p.mu.Unlock()
			p.refusals++
			return nil, full
		}
	}
}

// useFor counts a use of c by a request from a client; mu is held.
func (p *pool) useFor(c *conn, who client, method string) *conn {
	if leaves(method) {
		if c.actors == nil {
			c.actors = map[client]struct{}{}
		}
		if p.src.Share == Exclusive { // only the caller that has the server relies on its state
			maps.DeleteFunc(c.actors, func(other client, _ struct{}) bool { return other != who.alone() })
		}
		if len(c.actors) >= 100 { // of one principal; some of the sessions may have ended
			for who := range c.actors {
				if who.session != nil && who.session.Err() != nil {
					delete(c.actors, who)
				}
			}
		}
		if _, before := c.actors[who.alone()]; !before {
			c.actors[who.alone()] = struct{}{}
			p.noteUse(c, who)
		}
	}
	return p.use(c)
}

// room makes room for a connection of a principal, or returns why it cannot; mu is held.
func (p *pool) room(principal string) error {
	own, share := 0, p.src.MaxClients
	if principal != "" { // callers without a principal cannot be told apart
		share = max(1, share/4)
	}
	for who := range p.clients {
		if who.principal == principal {
			own++
		}
	}
	if own < share && len(p.clients) < p.src.MaxClients {
		return nil
	}
	var quiet *conn
	stateful := false // of quiet
	for who, c := range p.clients {
		if own >= share && who.principal != principal || c.up == nil || c.users > 0 {
			continue
		}
		state := len(c.actors) > 0
		if state && (who.principal != principal || !c.abandoned()) {
			continue
		}
		if quiet == nil || stateful && !state || state == stateful && c.last.Before(quiet.last) {
			quiet, stateful = c, state
		}
	}
	switch {
	case quiet != nil:
		p.retire(quiet, fmt.Sprintf("its session was idle for %v and made room for another of yours", quietTime))
		delete(p.clients, quiet.who)
		close(quiet.evict)
		p.evicted++
		return nil
	case own >= share && share < p.src.MaxClients:
		return mcp.Errorf(jsonrpc.CodeInternal, "server %q: you have %d connections, and one caller may have at most a quarter of the %d in all; end a session, or try again later",
			p.src.Name, own, p.src.MaxClients)
	}
	return mcp.Errorf(jsonrpc.CodeInternal, "server %q is used by %d clients, which is the limit; try again later", p.src.Name, len(p.clients))
}

// abandoned reports whether the client of c may have left silently: c belongs to a session that has
// been quiet, and the server holds nothing for it; mu of the pool is held.
func (c *conn) abandoned() bool {
	return c.who.session != nil && c.unused(quietTime) <= 0 && forward.SessionIdle(c.who.session) >= quietTime
}

// asksRoots is an Upstream that reports whether its server has asked for roots, as a [*mcp.Session]
// does.
type asksRoots interface{ AsksRoots() bool }

// rootsAsked reports whether the server has asked for roots for the first time, over c or the main
// connection, while connections belong to principals. Sessions of one principal may have different
// roots; mu is held.
func (p *pool) rootsAsked(c *conn) bool {
	if p.share != PerPrincipal || p.roots {
		return false
	}
	for _, c := range []*conn{p.main, c} {
		if c == nil || c.up == nil {
			continue
		}
		if a, ok := c.up.(asksRoots); ok && a.AsksRoots() {
			return true
		}
	}
	return false
}

// perSession gives each session with roots a connection of its own from now on, because the server
// asks for roots. An existing connection stays with the session that opened it; mu is held.
func (p *pool) perSession() {
	var was []*conn
	for who, c := range p.clients {
		if who.hasRoots() {
			was = append(was, c)
			delete(p.clients, who)
		}
	}
	p.roots = true
	p.g.rooted.Store(p.src.Name, true)
	for _, c := range was {
		keeps := c.opener.alone()
		for who := range c.actors {
			if who != keeps {
				p.noteLoss(who, "it asks for roots, so each session has a connection of its own from now on")
				delete(c.actors, who)
			}
		}
		c.who = keeps
		p.clients[keeps] = c
		if c.moved != nil {
			c.moved <- struct{}{} // it happens once
		}
	}
	p.announce()
}
