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

// The way of a request to a server:
//
//   - a session of the conversation with the server, or one for a single use. Questions of the server
//     come back over it, so that they find their conversation and their call;
//   - of a group, the choice of a member (group.go);
//   - the gateway, which waits for the connection, with Host.Middleware in it;
//   - the connection, where a call of a model is compared with its decision once more, answered with
//     what is kept, or sent and counted.

// session returns the session of the conversation with a server.
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

// Close ends the sessions of the conversation with servers, and the calls in progress there. The
// conversation can go on afterwards, with new ones. Host.Close does the same for all.
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

// closeSessions closes the sessions of all conversations with a server that has ended.
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

// use calls f with a session of no conversation.
func (s *server) use(ctx context.Context, f func(*mcp.Session) error) error {
	session, err := s.h.client(s, nil).Open(ctx, s)
	if err != nil {
		return err
	}
	defer session.Close()
	return f(session)
}

// wantedKey is where the context of a request has the server that it is for.
type wantedKey struct{}

// Handle has a request answered by the server, or by a member of the group.
func (s *server) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if s.members != nil {
		return s.spread(ctx, req)
	}
	if err := s.there(ctx); err != nil {
		return nil, err
	}
	return s.h.links.Direct(s.Name).Handle(context.WithValue(ctx, wantedKey{}, s), req)
}

// connection is what stands between the gateway and a connection to the server.
func (s *server) connection(up gateway.Upstream) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if of, ok := ctx.Value(wantedKey{}).(*server); ok && of != s { // the gateway knows servers by their names
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

// attempt is a call on its way to a server, with the requests that belong to it.
type attempt struct {
	call *pending        // of a model; nil: it is another
	ctx  context.Context // of the call of a model, outside of its session

	mu     sync.Mutex
	left   bool    // nobody waits for it any more; guarded by mu
	here   bool    // it has reached a connection of the member that was chosen last; guarded by mu
	at     *server // whose connection it has reached last; guarded by mu
	timing *timing // guarded by mu
	ticket *ticket // guarded by mu
	cached bool    // guarded by mu
	sent   bool    // that may have got it; guarded by mu
	err    error   // of the last request there; guarded by mu
}

// attemptKey is where the context of a call has its attempt.
type attemptKey struct{}

func (a *attempt) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// reach notes that a request has come to a connection.
func (a *attempt) reach(s *server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.here || a.at != s {
		a.here, a.at, a.sent, a.err = true, s, false, nil
	}
}

// ended notes what came of a request there.
func (a *attempt) ended(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// choose begins with another member of a group.
func (a *attempt) choose() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.here = false
}

// reached tells whether a request has come to a connection of that member, and with which error.
func (a *attempt) reached() (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.here, a.err
}

// make answers a request at a connection.
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

// errLeft is the error of a call that nobody waits for.
var errLeft = errors.New("the call was given up before it was sent")

// check compares a call of a model with its decision, immediately before it is sent, and returns a
// result that is kept; nil: there is none.
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
	if a.ticket != nil { // of a member of the group that has not taken it
		a.ticket.end()
	}
	a.ticket, a.sent = t, true
	return nil, nil
}

// attempt makes the call once, at the server that it was decided about, and as the tool that it was
// decided about. Sent tells whether the server may have got it.
func (p *pending) attempt(ctx context.Context) (res *mcp.ToolResult, sent bool, err error) {
	session, err := p.c.session(p.server)
	if err != nil {
		return nil, false, err
	}
	a := &attempt{call: p, ctx: ctx}
	var wrote atomic.Bool // something went out over HTTP
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
	if errors.As(err, &rpc) && a.err != nil { // as the server said it, and not as callers of a gateway are told
		as := fmt.Errorf("call %q: %w", p.tool.Tool.Name, a.err)
		if hasBegun(err) {
			as = begun{as}
		}
		err = as
	}
	// One that was cancelled while another member of the group was waited for was refused by the one before.
	sent = a.sent && (a.here || ctx.Err() == nil) && (!unwritten(err) || wrote.Load())
	return res, sent, err
}

// begun is the error of a call that its server had begun with (see [mcp.Session.CallTool]).
type begun struct{ error }

func (e begun) Unwrap() error { return e.error }
func (e begun) Begun() bool   { return true }
