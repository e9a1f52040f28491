package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A request to a server passes through:
//
//   - a session of the conversation with the server, or one for a single use. Questions from the
//     server return through it, so that they reach their conversation and their call;
//   - for a group, the choice of a member (group.go);
//   - the gateway, which waits for the connection and applies Host.Middleware;
//   - the connection, which checks a call of a model once more against its decision, and then
//     answers it from the cache or sends and counts it.

// session returns the session of the conversation with a server, and opens it if there is none.
func (c *Conversation) session(s *server) (*mcp.Session, error) {
	h := c.h
	c.mu.Lock()
	defer c.mu.Unlock()
	if session := c.sessions[s]; session != nil {
		return session, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	session, err := h.clientLocked(s, c).Open(h.ctx, s)
	if err != nil {
		return nil, err
	}
	if c.sessions == nil {
		c.sessions = map[*server]*mcp.Session{}
	}
	if h.talks == nil {
		h.talks = map[*Conversation]struct{}{}
	}
	c.sessions[s], h.talks[c] = session, struct{}{}
	return session, nil
}

// Close closes the conversation's sessions with servers and cancels its calls in progress. The
// conversation can be used again afterwards and then opens new sessions. [Host.Close] closes the
// sessions of all conversations.
func (c *Conversation) Close() {
	c.mu.Lock()
	sessions := c.sessions
	c.sessions = nil
	c.mu.Unlock()
	c.h.mu.Lock()
	delete(c.h.talks, c)
	c.h.mu.Unlock()
	for _, session := range sessions {
		session.Close()
	}
}

// closeSessions closes the sessions of all conversations with a server that was removed or
// replaced.
func (h *Host) closeSessions(s *server) {
	h.mu.Lock()
	talks := slices.Collect(maps.Keys(h.talks))
	h.mu.Unlock()
	for _, c := range talks {
		c.mu.Lock()
		session := c.sessions[s]
		delete(c.sessions, s)
		c.mu.Unlock()
		if session != nil {
			session.Close()
		}
	}
}

// use calls f with a session that belongs to no conversation.
func (s *server) use(ctx context.Context, f func(*mcp.Session) error) error {
	session, err := s.h.client(s, nil).Open(ctx, s)
	if err != nil {
		return err
	}
	defer session.Close()
	return f(session)
}

// wantedKey is the context key for the server that a request is meant for.
type wantedKey struct{}

// Handle passes a request to the server, or to a member of the group.
func (s *server) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if s.members != nil {
		return s.spread(ctx, req)
	}
	if err := s.there(ctx); err != nil {
		return nil, err
	}
	return s.h.links.Direct(s.Name).Handle(context.WithValue(ctx, wantedKey{}, s), req)
}

// connection returns the handler between the gateway and a connection to the server.
func (s *server) connection(up gateway.Upstream) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if of, ok := ctx.Value(wantedKey{}).(*server); ok && of != s { // a server of that name may have been replaced
			return nil, of.gone()
		}
		a := attemptOf(ctx)
		if a == nil {
			a = &attempt{}
			ctx = a.in(ctx)
		}
		a.reach(s)
		res, err := a.make(ctx, s, up, req)
		a.ended(err)
		return res, err
	})
}

// attempt is one attempt of a call, with the requests that belong to it.
type attempt struct {
	call *pending        // of a model; nil: another call
	ctx  context.Context // of the call of a model, outside of its session

	mu     sync.Mutex
	left   bool    // the caller has stopped waiting; guarded by mu
	here   bool    // it has reached a connection of the chosen member; guarded by mu
	at     *server // the server that it reached last; guarded by mu
	timing *timing // guarded by mu
	ticket *ticket // guarded by mu
	cached bool    // guarded by mu
	sent   bool    // at may have received it; guarded by mu
	err    error   // of the last request to at; guarded by mu
}

// attemptKey is the context key for the attempt of a call.
type attemptKey struct{}

func (a *attempt) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// reach records that a request has reached a connection.
func (a *attempt) reach(s *server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.here || a.at != s {
		a.here, a.at, a.sent, a.err = true, s, false, nil
	}
}

// ended records the outcome of a request there.
func (a *attempt) ended(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// choose prepares for another member of a group.
func (a *attempt) choose() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.here = false
}

// reached reports whether a request has reached a connection of the chosen member, and returns its
// error.
func (a *attempt) reached() (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.here, a.err
}

// make answers a request that has reached a connection.
func (a *attempt) make(ctx context.Context, s *server, up gateway.Upstream, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return up.Handle(ctx, req)
	}
	if a.call != nil {
		if res, err := a.check(up); res != nil || err != nil {
			return res, err
		}
	}
	t := s.stats.begin()
	a.mu.Lock()
	a.timing = t
	a.mu.Unlock()
	res, err := up.Handle(ctx, req)
	s.stats.end(ctx, t, err)
	s.suspect(err)
	return res, err
}

// errLeft is the error of a call whose caller has stopped waiting.
var errLeft = errors.New("the call was given up before it was sent")

// check compares a call of a model with its decision immediately before it is sent. It returns a
// cached result, or nil to send the call.
func (a *attempt) check(up gateway.Upstream) (mcp.Result, error) {
	p := a.call
	select {
	case <-up.Done():
		return nil, fmt.Errorf("the connection to server %q is lost: %w", p.tool.Server, up.Err())
	default:
	}
	if err := p.unchanged(a.ctx); err != nil {
		return nil, err
	}
	t := p.server.kept.begin(up.Done(), p)
	hit := t.hit()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.left:
		t.end()
		return nil, errLeft
	case hit != nil:
		a.cached = true
		return hit, nil
	}
	if a.ticket != nil { // of another member that did not accept the call
		a.ticket.end()
	}
	a.ticket, a.sent = t, true
	return nil, nil
}

// attempt makes the call once, as the decision allows it. The result sent reports whether the
// server may have received it.
func (p *pending) attempt(ctx context.Context) (res *mcp.ToolResult, sent bool, err error) {
	session, err := p.c.session(p.server)
	if err != nil {
		return nil, false, err
	}
	a := &attempt{call: p, ctx: ctx}
	var wrote atomic.Bool // a request went out over HTTP
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	res, err = session.CallTool(a.in(traced), p.tool.Tool.Name, p.args, mcp.IdleTimeout(p.server.patience()),
		mcp.OnProgress(p.progressed), mcp.OnLog(p.logged))
	if err == nil {
		err = p.c.h.misfit(p.tool.Tool, res)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = true
	p.event.Cached = a.cached
	if a.ticket != nil {
		if err == nil {
			a.ticket.keep(res)
		}
		a.ticket.end()
	}
	var rpc *mcp.Error
	if errors.As(err, &rpc) && a.err != nil { // keep the server's own error instead of the gateway's
		as := fmt.Errorf("call %q: %w", p.tool.Tool.Name, a.err)
		if hasBegun(err) {
			as = begun{as}
		}
		err = as
	}
	// If the call was cancelled while it waited for another member of the group, the previous
	// member had refused it.
	sent = a.sent && (a.here || ctx.Err() == nil) && (!unwritten(err) || wrote.Load())
	if !sent && ctx.Err() == nil {
		err = p.server.orGone(err)
	}
	return res, sent, err
}

// begun is the error of a call that its server had begun (see [mcp.Session.CallTool]).
type begun struct{ error }

func (e begun) Unwrap() error { return e.error }
func (e begun) Begun() bool   { return true }
