package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Bounds for keeping a server connected.
const (
	// The pauses between attempts to connect.
	firstPause = time.Second
	longPause  = time.Minute

	// A connection that lasts at least steady has worked. A server whose connection ends sooner
	// crashLoop times in a row is crashing.
	steady    = 20 * time.Second
	crashLoop = 3
)

// pool keeps the connections to one server: the main one, which all callers share or which is only
// for lists, and those of single clients. It owns a goroutine for each of the latter, which ends
// when run, the body of Run, ends.
type pool struct {
	g   *Gateway
	up  *upstream
	src Source
	ctx context.Context // of Run

	wanted chan struct{} // capacity 1: an idle server must start
	again  chan struct{} // capacity 1: make the next attempt now
	over   chan struct{} // closed when the connections of clients must close
	wg     sync.WaitGroup

	refused atomic.Pointer[refusal] // of the last request, or nil if it needed no login
	noted   atomic.Bool             // sessions that another process may continue have used the server

	changes atomic.Int64 // Status.Changes
	lists   atomic.Int64 // the changeSet of lists that the server offers or has offered

	lease  lease  // of an Exclusive server
	locked locked // of an Exclusive server that other gateways use too

	tellMu sync.Mutex // orders calls of OnStatus

	mu       sync.Mutex
	state    State            // guarded by mu
	reason   string           // guarded by mu
	since    time.Time        // of state; guarded by mu
	tries    int              // attempts to open the main connection; guarded by mu
	took     time.Duration    // duration of the last start; 0: none yet; guarded by mu
	due      int              // connections of clients that were lost, or not opened, and not opened again yet; guarded by mu
	reopened int              // attempts to open one of them again; guarded by mu
	opened   int              // how many times the main connection was opened; guarded by mu
	share    Share            // guarded by mu
	revision mcp.Revision     // guarded by mu
	info     []byte           // the result of server/discover of the last connection; guarded by mu
	asks     bool             // Status.Asks; guarded by mu
	main     *conn            // nil if there is none; guarded by mu
	clients  map[client]*conn // guarded by mu
	queued   int              // requests that wait for a place; guarded by mu
	losses   int              // Status.Losses; guarded by mu
	evicted  int              // Status.Evicted; guarded by mu
	refusals int              // Status.Refused; guarded by mu
	roots    bool             // Status.Roots; guarded by mu
	changed  chan struct{}    // closed at the next change of the pool; nil if nobody waits; guarded by mu

	unstarted *unstarted // nil: the last start for a caller did not fail; guarded by mu
	retrying  bool       // retryStart runs; guarded by mu

	lost   string    // Status.Lost; guarded by mu
	lostAt time.Time // guarded by mu
}

func newPool(ctx context.Context, g *Gateway, src Source) *pool {
	p := &pool{
		g: g, src: src, ctx: ctx, share: src.Share,
		wanted: make(chan struct{}, 1), again: make(chan struct{}, 1), over: make(chan struct{}),
		state: Starting, since: time.Now(), clients: map[client]*conn{}, locked: locked{changing: make(chan struct{}, 1)},
	}
	if src.Disabled != "" {
		p.state, p.reason = Disabled, src.Disabled
	}
	p.up = newUpstream(g, src.Name)
	p.up.pool = p
	return p
}

// run keeps the main connection open until ctx of Run ends.
func (p *pool) run() {
	defer p.end()
	p.tell()
	if p.src.Disabled != "" {
		<-p.ctx.Done()
		return
	}
	pause, crashes := firstPause, 0
	for p.ctx.Err() == nil {
		p.mu.Lock()
		p.tries++
		p.mu.Unlock()
		began := time.Now()
		c, err := p.open(p.ctx)
		if err == nil {
			p.mu.Lock()
			p.took = max(time.Since(began), 1)
			p.mu.Unlock()
		}
		switch {
		case p.ctx.Err() != nil:
			if c != nil {
				c.up.Close()
			}
			return
		case err != nil:
			state, reason := failed(err)
			var exit *mcp.ExitError
			if crashes++; !errors.As(err, &exit) {
				crashes = 0 // the process did not end: it was not reached, or does not answer
			} else if crashes >= crashLoop && state == Failing {
				state, reason = Crashing, fmt.Sprintf("it ended %d times in a row before it was ready: %s", crashes, reason)
			}
			p.become(state, reason)
		default:
			opened := time.Now()
			why := p.serve(c, crashes >= crashLoop)
			if time.Since(opened) >= steady || errors.Is(why, errIdle) {
				pause, crashes = firstPause, 0
			} else {
				crashes++
			}
			switch {
			case p.ctx.Err() != nil:
				return
			case errors.Is(why, errIdle):
				select {
				case <-p.wanted:
				case <-p.ctx.Done():
					return
				}
				p.become(Starting, "")
				select { // two callers may have asked for it at once
				case <-p.wanted:
				default:
				}
				continue
			case crashes >= crashLoop:
				p.become(Crashing, fmt.Sprintf("it ended %d times in a row, each time less than %v after it was ready: %v", crashes, steady, why))
			default:
				p.become(Starting, why.Error())
			}
		}
		p.rest(&pause)
	}
}

// connect calls Source.Open. A panic is an error, like any other that keeps the server from starting.
func (p *pool) connect(ctx context.Context) (up Upstream, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.g.log().ErrorContext(ctx, "panic", "in", "Source.Open", "server", p.src.Name, "err", fmt.Sprint(v), "stack", string(debug.Stack()))
			up, err = nil, errors.New("Source.Open panicked; see the log of the gateway")
		}
	}()
	return p.src.Open(ctx)
}

// open opens a connection for the caller of ctx, or for all callers.
func (p *pool) open(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.src.StartTimeout, fmt.Errorf("it was not ready within %v", p.src.StartTimeout))
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	up, err := p.connect(context.WithValue(ctx, idKey{}, p.g.id()))
	switch {
	case err == nil && up == nil:
		return nil, errors.New("Source.Open returned neither a connection nor an error")
	case err == nil:
		c := newConn(up)
		if p.src.Around != nil {
			c.h = p.src.Around(up)
		}
		p.takeTurns(c)
		if res, err := up.Handle(ctx, &mcp.Request{Method: "server/discover"}); err == nil {
			c.info = res.JSON()
		}
		return c, nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = context.Cause(ctx)
	}
	return nil, p.explain(err)
}

// explain adds the last output of the server to an error.
func (p *pool) explain(err error) error {
	var exit *mcp.ExitError
	if p.src.Stderr == nil || errors.As(err, &exit) && exit.Stderr != "" {
		return err
	}
	if said := lastOf(p.src.Stderr()); said != "" {
		return fmt.Errorf("%w; it last said: %q", err, said)
	}
	return err
}

var errIdle = errors.New("it is not in use")

// serve uses c as the main connection until it ends, and returns why it ended. A server that was
// crashing is not shown as ready until the connection has lasted for steady.
func (p *pool) serve(c *conn, crashing bool) error {
	defer p.closed(time.Now())
	p.mu.Lock()
	c.last = time.Now()
	p.main, p.unstarted = c, nil
	p.opened++
	p.info = c.info
	for _, k := range []*listKind{listTools, listPrompts, listResources} {
		if c.offers(k) {
			p.lists.Or(int64(k.change))
		}
	}
	if r, ok := c.up.(interface{ Revision() mcp.Revision }); ok {
		p.revision = r.Revision()
	}
	if p.share == ShareAuto {
		p.share = Shared
		if p.revision.Sessions() {
			p.share = p.src.Older
		}
	}
	if _, rooted := p.g.rooted.Load(p.src.Name); rooted && p.share == PerPrincipal {
		p.roots = true
	}
	following, stop := context.WithCancel(p.ctx)
	defer stop()
	if w, ok := c.up.(watcher); ok {
		c.shared = newSubscription(p, c, w)
	}
	p.announce()
	p.mu.Unlock()

	var lasted <-chan time.Time
	if crashing {
		lasted = time.After(steady)
	} else {
		p.become(Ready, "")
	}
	p.mu.Lock()
	p.spawn(func() {
		p.up.refetch(c, changedAll)
		if c.shared != nil {
			c.shared.run(following)
		}
	})
	p.mu.Unlock()
	idle := newIdleTimer(p.src.Idle)
	defer idle.stop()
	for {
		select {
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		case <-lasted:
			p.become(Ready, "")
		case <-c.up.Done():
			p.mu.Lock()
			p.main = nil
			p.ended(c.up.Err())
			p.retireAll(c, lostWhy(c.up.Err()))
			p.mu.Unlock()
			err := c.up.Err()
			c.up.Close()
			if err == nil {
				return errors.New("connection lost")
			}
			return p.explain(fmt.Errorf("connection lost: %w", err))
		case <-idle.C():
			p.mu.Lock()
			wait := c.unused(idle.after)
			if wait <= 0 {
				p.main = nil
				c.forgetLoose()
				p.retire(c, fmt.Sprintf("unused for %v", idle.after))
			}
			p.mu.Unlock()
			if wait > 0 {
				idle.again(wait)
				continue
			}
			p.become(Idle, fmt.Sprintf("unused for %v", idle.after))
			c.up.Close()
			return errIdle
		}
	}
}

// closed calls OnClose for a connection of that age.
func (p *pool) closed(began time.Time) {
	if p.g.OnClose != nil {
		p.g.OnClose(p.src.Name, time.Since(began))
	}
}

// ended records that a connection has ended by itself; mu is held.
func (p *pool) ended(err error) {
	if p.lost, p.lostAt = "the connection was lost", time.Now(); err != nil {
		p.lost = err.Error()
	}
}

// rest waits for a random time between half of pause and all of it, so that many clients do not
// reconnect at the same moment, and doubles pause up to longPause.
func rest(ctx context.Context, pause *time.Duration) {
	sleep(ctx, *pause/2+rand.N(*pause/2))
	*pause = min(2**pause, longPause)
}

// end removes the server from the gateway, waits for calls in progress, and closes all connections.
func (p *pool) end() {
	p.g.takeOut(p.up) // this announces the change of its lists
	p.become(Stopped, "")
	p.drain()
	close(p.over)
	p.mu.Lock()
	main := p.main
	p.main = nil
	p.mu.Unlock()
	if main != nil {
		main.up.Close()
	}
	p.wg.Wait()
	p.endLock()
}

// drain waits until no call is in progress, for at most Source.Drain. From then on the connections of
// clients take no call: one that was on its way is refused, not lost with its connection.
func (p *pool) drain() {
	t := time.NewTimer(p.src.Drain)
	defer t.Stop()
	late := false
	for {
		p.mu.Lock()
		users := 0
		if p.main != nil {
			users = p.main.users
		}
		for _, c := range p.clients {
			users += c.users
		}
		over := users == 0 || late
		if over {
			clear(p.clients)
		}
		changed := p.change()
		p.mu.Unlock()
		if over {
			return
		}
		select {
		case <-changed:
		case <-t.C:
			late = true
		}
	}
}

// spawn runs f on a goroutine that the end of the pool waits for. It returns false if the pool is
// ending; mu is held.
func (p *pool) spawn(f func()) bool {
	if p.state == Stopped {
		return false
	}
	p.wg.Go(f)
	return true
}

// become changes the state.
func (p *pool) become(s State, reason string) {
	p.mu.Lock()
	if s == Ready { // there is a new connection
		p.refused.Store(nil)
	}
	before := p.inLists()
	if p.state != s {
		p.state, p.since = s, time.Now()
	}
	p.reason = reason
	p.announce()
	changed := s == Ready || before != p.inLists()
	p.mu.Unlock()
	if changed {
		p.g.announceOf(p.up)
	}
	p.tell()
}

// inLists reports whether the features of the server are in lists; mu is held.
func (p *pool) inLists() bool {
	return p.state == Ready || p.state == Idle || p.state == Starting && p.opened > 0
}

// tell reports the status to OnStatus of the gateway and of the source.
func (p *pool) tell() {
	if p.g.OnStatus == nil && p.src.OnStatus == nil {
		return
	}
	p.tellMu.Lock()
	defer p.tellMu.Unlock()
	s := p.status()
	for _, on := range []func(Status){p.g.OnStatus, p.src.OnStatus} {
		if on != nil {
			on(s)
		}
	}
}

// change returns a channel that is closed at the next change; mu is held.
func (p *pool) change() <-chan struct{} {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// announce wakes those who wait for a change; mu is held.
func (p *pool) announce() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

func (p *pool) status() Status {
	shadowed := p.g.shadowed(p.up)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		Name: p.src.Name, State: p.state, Reason: p.reason, Since: p.since,
		Restarts: max(p.tries-1, 0) + p.reopened, Changes: int(p.changes.Load()), Share: p.share, Asks: p.asks, Revision: p.revision,
		Tools: p.count(listTools), Prompts: p.count(listPrompts), Resources: p.count(listResources),
		Shadowed: shadowed, Lost: p.lost, LostAt: p.lostAt,
		Losses: p.losses, Evicted: p.evicted, Refused: p.refusals, Roots: p.roots || p.rootsAsked(nil),
	}
	if raw, ok := jsonx.LookupPath(p.info, "_meta", "io.modelcontextprotocol/serverInfo"); ok {
		_ = jsonx.Unmarshal(raw, &s.Server) // only for display
		for _, shown := range []*string{&s.Server.Name, &s.Server.Title, &s.Server.Version} {
			*shown = text.Clip(*shown, maxShown)
		}
	}
	p.turnsInto(&s)
	for _, c := range p.clients {
		if c.up != nil {
			s.Clients++
		}
	}
	s.Conns = s.Clients
	if p.main != nil {
		s.Conns++
		if since, reason := p.main.lists.silent(); s.State == Ready && reason != "" {
			s.State, s.Since, s.Reason = Failing, since, reason
		}
	}
	if u := p.unstarted; u != nil && p.main != nil && s.State == Ready {
		s.State, s.Since, s.Reason = u.state, u.since, u.reason
	}
	if r := p.refused.Load(); r != nil && s.State == Ready {
		s.State, s.Since, s.Reason = NeedsLogin, r.since, r.do
	}
	if s.State == Starting && s.Reason == "" && p.src.Stderr != nil {
		if said := lastOf(p.src.Stderr()); said != "" {
			s.Reason = fmt.Sprintf("it last said: %q", said)
		}
	}
	return s
}

// maxShown bounds the name, title and version of a server in a [Status], in bytes.
const maxShown = 100

// count returns the number of features of a kind, or -1 if it is unknown; mu is held.
func (p *pool) count(k *listKind) int {
	if n := p.up.cache.count(k); n >= 0 || p.info == nil || (&conn{info: p.info}).offers(k) {
		return n
	}
	return 0
}

// lastOf returns the end of what a server has written.
func lastOf(s string) string {
	if len(s) > 1000 {
		return "…" + s[len(s)-1000:]
	}
	return s
}

// idleTimer fires when a connection may have been unused for long enough. With a duration that is
// not positive it never fires.
type idleTimer struct {
	after time.Duration
	t     *time.Timer
}

func newIdleTimer(d time.Duration) *idleTimer {
	i := &idleTimer{after: d}
	if d > 0 {
		i.t = time.NewTimer(d)
	}
	return i
}

func (i *idleTimer) C() <-chan time.Time {
	if i.t == nil {
		return nil
	}
	return i.t.C
}

func (i *idleTimer) again(d time.Duration) { i.t.Reset(d) }

func (i *idleTimer) stop() {
	if i.t != nil {
		i.t.Stop()
	}
}
