package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/idempotency"
	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// upstream is one server behind the gateway: a fixed handler, or a server with a pool of
// connections.
type upstream struct {
	g      *Gateway
	name   string
	prefix string // of the names of its features
	fixed  *conn  // nil if there is a pool
	pool   *pool
	cache  listCache

	next      atomic.Pointer[upstream] // what continues it; nil: nothing does
	relisting relisting
	around    mcp.Middleware // nil: no middleware
	front     mcp.Handler    // what callers reach; nil: no middleware
	leaver    step.Leaver    // front, or nil if it is none
	onlooks   bool           // front is a step.Onlooker
	direct    mcp.Handler    // what callers of Gateway.Direct reach
}

// lists returns the lists that the server has or had a part in: none before it was first ready.
func (up *upstream) lists() changeSet {
	if up.pool == nil {
		return changedAll // a handler need not say which lists it has
	}
	return changeSet(up.pool.lists.Load())
}

func newUpstream(g *Gateway, name string) *upstream {
	g.around.CompareAndSwap(0, g.wrapper())
	up := &upstream{g: g, name: name, prefix: prefixOf(name)}
	up.direct = mcp.HandlerFunc(up.narrowed)
	if g.Middleware != nil {
		if around := g.Middleware(name); around != nil {
			up.around = func(next mcp.Handler) mcp.Handler { return around(foreign{next}) }
			up.front = up.around(behind{up})
			up.leaver, _ = up.front.(step.Leaver)
			_, bare := up.front.(foreign)
			_, passes := up.front.(step.Onlooker)
			up.onlooks = passes && !bare
			if !up.onlooks {
				up.direct = offering{up}
			}
			up.direct = up.around(up.direct)
		}
	}
	return up
}

// unseen reports whether callers see of the server what they would see without middleware.
func (up *upstream) unseen() bool { return up.front == nil || up.onlooks }

// hides reports whether middleware may show different callers different entries.
func (g *Gateway) hides() bool {
	return slices.ContainsFunc(g.upstreams(), func(up *upstream) bool { return !up.unseen() })
}

// foreign is a handler behind Gateway.Middleware. It tells a policy that annotations from there are
// claims of a server that somebody else may have written.
type foreign struct{ mcp.Handler }

// Foreign marks the handler for package policy.
func (foreign) Foreign() bool { return true }

// PassesAll marks the handler for middleware that changes no list.
func (foreign) PassesAll() {}

// Missing implements [step.Checker].
func (f foreign) Missing(ctx context.Context, req *mcp.Request) (unlisted bool, err error) {
	return step.Missing(ctx, f.Handler, req)
}

// Definition implements [step.Definer].
func (f foreign) Definition(ctx context.Context, tool string) string {
	return step.Definition(ctx, f.Handler, tool)
}

// offering is the handler of an upstream for requests by its own names: only what it lists is offered.
type offering struct{ up *upstream }

// Handle implements [mcp.Handler].
func (o offering) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	return o.up.offered(ctx, req.Method, req.Params)
}

// Missing implements [step.Checker].
func (o offering) Missing(ctx context.Context, req *mcp.Request) (unlisted bool, err error) {
	return o.up.missing(ctx, req)
}

// Definition implements [step.Definer].
func (o offering) Definition(ctx context.Context, tool string) string {
	return o.up.definition(ctx, tool)
}

// behind is the handler of an upstream behind its middleware.
type behind struct{ up *upstream }

// Handle answers a request that the middleware has let through.
func (b behind) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if k := listOf(req.Method); k != nil {
		return mcp.RawResult(encodeList(k, b.up.listed(ctx, k).entries)), nil
	}
	return b.up.offered(ctx, req.Method, req.Params)
}

// Missing implements [step.Checker].
func (b behind) Missing(ctx context.Context, req *mcp.Request) (unlisted bool, err error) {
	return b.up.missing(ctx, req)
}

// Definition implements [step.Definer].
func (b behind) Definition(ctx context.Context, tool string) string {
	return b.up.definition(ctx, tool)
}

// handle answers a request from a caller in the server's own terms.
func (up *upstream) handle(ctx context.Context, method string, params json.RawMessage) (mcp.Result, error) {
	if up.front == nil {
		return up.offered(ctx, method, params)
	}
	return up.front.Handle(ctx, &mcp.Request{Method: method, Params: params})
}

// known returns a valid cached list for a caller, without waiting. It returns false if there is
// none.
func (up *upstream) known(who client, k *listKind, h *hurry) (*keptList, bool) {
	if up.pool == nil || !up.unseen() && up.leaver == nil {
		return nil, false
	}
	c := up.pool.listConn(who)
	if c == nil {
		return nil, false
	}
	list := c.known(k, h.audience)
	return list, list != nil || !c.offers(k)
}

// choose applies the middleware to a list.
func (up *upstream) choose(ctx context.Context, k *listKind, list *keptList) part {
	if list == nil || up.leaver == nil {
		return part{list: list}
	}
	return part{list: list, filtered: true, left: up.leaver.Leaves(ctx, k.Method, list.serial, list.each)}
}

// shown returns the part of a list that a caller may see.
func (up *upstream) shown(ctx context.Context, k *listKind) part {
	if up.unseen() || up.leaver != nil && k != listTasks {
		return up.choose(ctx, k, up.listed(ctx, k).list)
	}
	res, err := up.front.Handle(ctx, &mcp.Request{Method: k.Method})
	if err != nil {
		up.g.log().DebugContext(ctx, "server missing from a list", "server", up.name, "method", k.Method, "err", err)
		return part{}
	}
	entries, _, err := up.entriesOf(k, res.JSON())
	if err != nil {
		up.g.log().WarnContext(ctx, "server missing from a list", "server", up.name, "method", k.Method, "err", err)
	}
	return part{list: &keptList{entries: entries}}
}

// guarded wraps the middleware around a handler that is reached without forward.
func (up *upstream) guarded(h mcp.Handler) mcp.Handler {
	if up.unseen() {
		return h
	}
	return up.around(h)
}

// refuses returns the error with which the middleware refuses a request, or nil.
func (up *upstream) refuses(ctx context.Context, req *mcp.Request) error {
	if up.unseen() {
		return nil
	}
	arrived := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.RawResult(`{}`), nil })
	_, err := up.around(arrived).Handle(ctx, req)
	return err
}

// forward sends a request over the caller's connection. If that is lost, a request that changes
// nothing, or that still waited for its turn, is repeated once over the next one (T-29), and so is a call that repeats
// allows.
func (up *upstream) forward(ctx context.Context, method string, params json.RawMessage) (mcp.Result, error) {
	req := &mcp.Request{Method: method, Params: params}
	if up.fixed != nil {
		if err := up.g.owned(ctx, method); err != nil {
			return nil, err
		}
		res, err := up.fixed.h.Handle(ctx, req)
		return res, up.cutOff(ctx, method, up.limited(method, err))
	}
	res, c, err := up.attempt(ctx, req)
	if c != nil {
		err = up.cutOff(ctx, method, err)
	}
	if err != nil && c != nil && up.pool.tells(c) && errors.Is(err, mcp.ErrSessionLost) {
		return nil, up.forgotten(ctx, c, method, err)
	}
	if err != nil && c == nil {
		if next := up.continued(err); next != nil {
			return next.forward(ctx, method, params)
		}
		return nil, unsent{err}
	}
	if err == nil || !c.lost(ctx, err) {
		return res, err
	}
	up.pool.lose(c, err)
	waited := outcome.Unsent(err)
	if !waited && !revision.Reads(method) && (!up.repeats(ctx, method, params) || note.Again(ctx) != nil) {
		return nil, up.lost(ctx, c, method, err)
	}
	up.g.log().DebugContext(ctx, "request retried", "server", up.name, "method", method, "err", err)
	res, c, err = up.latest().attempt(ctx, req)
	var gone stateLost
	switch {
	case err == nil:
	case c == nil && waited:
		return nil, unsent{err}
	case !waited && errors.As(err, &gone):
		return nil, gone.sent()
	case c != nil && c.lost(ctx, err):
		err = up.lost(ctx, c, method, err)
	}
	if !waited && outcome.Unsent(err) {
		err = wasSent{err}
	}
	return res, err
}

// repeats reports whether a call that the server may have run may run again: it has an idempotency key, and a trusted server
// declares the tool idempotent.
func (up *upstream) repeats(ctx context.Context, method string, params json.RawMessage) bool {
	if method != revision.MethodCall || !up.pool.src.Trusted {
		return false
	}
	if has, err := idempotency.Has(params); !has || err != nil {
		return false
	}
	name, err := member(method, params, "name")
	return err == nil && up.hints(clientOf(ctx), name, "idempotentHint")
}

// latest returns the last of the sources that have continued this one (see [Source.Continues]), or this one.
func (up *upstream) latest() *upstream {
	for next := up.next.Load(); next != nil; next = up.next.Load() {
		up = next
	}
	return up
}

// continued returns what continues a server that has refused a request because it is ending, or nil.
func (up *upstream) continued(err error) *upstream {
	var away *UnavailableError
	if latest := up.latest(); latest != up && errors.As(err, &away) && away.State == Stopped {
		return latest
	}
	return nil
}

// attempt sends a request once, and returns the connection that it used, or nil if there was none.
func (up *upstream) attempt(ctx context.Context, req *mcp.Request) (res mcp.Result, c *conn, err error) {
	if up.g.OnWait != nil {
		timed, clock := wait.With(ctx)
		before := clock.Sum()
		defer func() {
			if d := clock.Sum() - before; d > 0 {
				up.g.OnWait(up.name, d)
			}
		}()
		ctx = timed
	}
	lock, end, err := up.pool.turn(ctx, req.Method)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	if c, err = up.pool.take(ctx, req.Method); err != nil {
		return nil, nil, err
	}
	defer func() {
		waits := err
		if ctx.Err() != nil {
			waits = nil // a caller that has left does not return with an answer
		}
		up.pool.release(c, res, waits)
	}()
	if session := up.pool.noting(ctx, req.Method); session != nil {
		if k := note.ContinuableOf(session); k != nil {
			k.Noted(ctx) // before the server has state, so that its loss is never hidden
		}
	}
	if err = up.g.owned(ctx, req.Method); err != nil {
		return nil, c, err
	}
	if lock != nil && !lock.HeldFor(lockMargin) {
		err = mcp.Errorf(jsonrpc.CodeInternal, "server %q: the owner has changed: another node may use it now; this request did not reach it", up.name)
		return nil, c, err
	}
	ctx, over := up.pool.under(ctx, lock)
	res, err = c.h.Handle(ctx, req)
	err = over(err)
	if err != nil && !up.pool.src.Remote && errors.Is(err, mcp.ErrPending) {
		forward.Stay(ctx)
	}
	return res, c, up.limited(req.Method, up.pool.heard(err))
}

// owned returns why a request must not be sent, or nil (see [Gateway.Owned]).
func (g *Gateway) owned(ctx context.Context, method string) error {
	// Mostly nothing was lost, and then the client, whose description costs more than the question, need not be known.
	if g.Owned == nil || revision.Reads(method) || g.Owned(past) == nil || clientOf(ctx).session == nil {
		return nil
	}
	if err := g.Owned(ctx); err != nil {
		return unsent{mcp.Errorf(jsonrpc.CodeInternal, "%s. Nothing was sent to the server; try again", err)}
	}
	return nil
}

// past is a context that has ended.
var past = func() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	return ctx
}()

// lost reports whether a request failed because the connection broke, so that its outcome is
// unknown.
func (c *conn) lost(ctx context.Context, err error) bool {
	var exit *mcp.ExitError
	var network *url.Error // of net/http
	switch {
	case ctx.Err() != nil:
		return false
	case errors.As(err, &exit), errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	}
	return errors.Is(err, mcp.ErrClosed)
}

// lost words the loss of a connection for the caller, and says whether the caller's state is lost
// too.
func (up *upstream) lost(ctx context.Context, c *conn, method string, err error) error {
	unknown := ""
	switch {
	case outcome.Unsent(err):
		unknown = "; the request waited for its turn and was not sent"
	case method == "tools/call":
		unknown = "; the tool may or may not have run"
	}
	if up.pool.tells(c) && leaves(method) {
		if d := up.g.losses.owed(ctx, up.name, method, clientOf(ctx), client{}); d != nil {
			d.wait(ctx)
		}
		unknown += "; the state that it kept for you is gone"
	}
	why := forCallers(err)
	if errors.Is(err, mcp.ErrClosed) {
		why = cmp.Or(up.endedWhy(), why)
	}
	return &reworded{mcp.Errorf(jsonrpc.CodeInternal, "connection to server %q lost%s: %s", up.name, unknown, why), err}
}

// cutOff words the error of a tool call that ends because this process shuts down.
func (up *upstream) cutOff(ctx context.Context, method string, err error) error {
	if err == nil || method != "tools/call" || !outcome.ShutDown(ctx) || outcome.Unsent(err) {
		return err
	}
	return &reworded{mcp.Errorf(jsonrpc.CodeInternal, "this gateway is shutting down, so the call of server %q was cut off; the tool may or may not have run", up.name), err}
}

// endedWhy returns why the gateway has ended its use of the server; empty: it has not.
func (up *upstream) endedWhy() string {
	p := up.pool
	p.mu.Lock()
	ended := p.state == Stopped
	p.mu.Unlock()
	next := up.next.Load()
	switch {
	case !ended:
		return ""
	case next == nil:
		return "it was removed from the configuration or changed there, or the gateway is ending"
	case next.pool.src.Disabled != "":
		return "it was disabled by its operator"
	}
	return restartedWhy
}

// restartedWhy is why the connections of a server have ended that another [Source] continues.
const restartedWhy = "it was restarted, by its operator or because its sources changed"

// reworded combines the error for the caller with its cause.
type reworded struct{ told, cause error }

func (e *reworded) Error() string { return e.told.Error() }

func (e *reworded) Unwrap() []error { return []error{e.told, e.cause} }

// forgotten returns the error of a request that did not run because the server has lost the state
// that it kept for the users of c.
func (up *upstream) forgotten(ctx context.Context, c *conn, method string, err error) error {
	p, who := up.pool, clientOf(ctx)
	p.mu.Lock()
	p.retireAll(c, "it has ended the session")
	owner := p.owner(who)
	p.mu.Unlock()
	if d := up.g.losses.owed(ctx, up.name, method, who, owner); d != nil {
		return d.tell(ctx, up.name)
	}
	return err
}

// rootsChanged reports to the server of the caller's own connection that the roots of the session
// have changed (T-58). A shared connection has no roots.
func (up *upstream) rootsChanged(ctx context.Context, req *mcp.Request) {
	c := up.fixed
	if c == nil {
		c = up.pool.ofClient(clientOf(ctx))
	}
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, up.g.listTimeout())
	defer cancel()
	if _, err := c.h.Handle(ctx, req); err != nil {
		up.g.log().Debug("server not notified of changed roots", "server", up.name, "err", err)
	}
}

// tagOf returns what distinguishes connections of one principal, for the ids of tasks.
func (up *upstream) tagOf(ctx context.Context) string {
	if up.pool == nil || !up.pool.perClient() {
		return ""
	}
	return up.pool.ownerOf(clientOf(ctx)).can
}

// discover returns the server's result of server/discover, or nil if it is unknown.
func (up *upstream) discover(ctx context.Context) json.RawMessage {
	if up.pool != nil {
		up.pool.mu.Lock()
		defer up.pool.mu.Unlock()
		if !up.pool.inLists() {
			return nil
		}
		return up.pool.info
	}
	ctx, cancel := context.WithTimeout(ctx, up.g.listTimeout())
	defer cancel()
	res, err := up.fixed.h.Handle(ctx, &mcp.Request{Method: "server/discover"})
	if err != nil {
		return nil
	}
	return res.JSON()
}

// unavailable returns why requests to the server fail at once, or nil.
func (up *upstream) unavailable() error {
	p := up.pool
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inLists() || p.state == Starting {
		return nil
	}
	return p.unavailable()
}
