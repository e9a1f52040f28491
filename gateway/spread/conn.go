package spread

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// conn is a connection to all replicas of a group, with a leg for each. It is over when no leg is left.
// It owns a goroutine per leg, which ends with it.
type conn struct {
	g      *Group
	ctx    context.Context // of the legs, with the values of the context of Open
	cancel context.CancelFunc
	done   chan struct{}
	wg     sync.WaitGroup

	mu      sync.Mutex
	legs    []*line       // by replica; nil: not connected; guarded by mu
	soon    []bool        // by replica: it was restarted and is being connected to again; guarded by mu
	pausing []bool        // by replica: it could not be connected to, and is tried again later; guarded by mu
	last    error         // why no leg is left while a replica is being connected to; guarded by mu
	lead    int           // the replica that has the lists; guarded by mu
	epoch   uint64        // how many times lead has changed; guarded by mu
	turns   bool          // callers take turns; guarded by mu
	changed chan struct{} // closed when a leg comes or goes, or may get requests again, or none any more; guarded by mu
	closed  bool          // guarded by mu
	err     error         // why it is over; guarded by mu
}

// Pauses between attempts to connect to a replica.
const (
	firstPause = 500 * time.Millisecond
	longPause  = 15 * time.Second
)

// newConn returns a connection whose first leg is up.
func newConn(ctx context.Context, g *Group, first *line) *conn {
	c := &conn{g: g, legs: make([]*line, len(g.replicas)), soon: make([]bool, len(g.replicas)), pausing: make([]bool, len(g.replicas)), done: make(chan struct{}), changed: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for i, r := range g.replicas {
		if r == first.r {
			first.others = func() bool { return c.hasOther(first) }
			c.legs[i], c.lead = first, i
		}
	}
	for i, l := range c.legs {
		c.wg.Go(func() { c.keep(i, l) })
	}
	return c
}

// keep keeps a leg connected until the connection is over.
func (c *conn) keep(i int, l *line) {
	r := c.g.replicas[i]
	pause := firstPause
	for c.ctx.Err() == nil {
		if l == nil {
			changed := r.change()
			if r.allow() != nil {
				c.mu.Lock()
				c.announce() // calls may wait for it
				c.mu.Unlock()
				select {
				case <-changed:
				case <-c.ctx.Done():
				}
				continue
			}
			back := r.returns()
			c.tries(i)
			within, cancel := context.WithTimeoutCause(c.ctx, openTime, fmt.Errorf("it was not ready within %v", openTime))
			opened, err := r.open(within)
			cancel()
			if err != nil {
				c.g.log().Debug("replica not connected", "server", c.g.Name, "replica", r.Name, "err", err)
				t := time.NewTimer(pause/2 + rand.N(pause/2))
				pause = min(2*pause, longPause)
				c.missed(i)
				select {
				case <-t.C:
				case <-back: // the operator has restarted it
					t.Stop()
					pause = firstPause
				case <-c.ctx.Done():
					t.Stop()
				}
				continue
			}
			l = opened
			l.others = func() bool { return c.hasOther(opened) }
			if !c.join(i, l) {
				l.up.Close()
				return
			}
		}
		began := time.Now()
		up := l.up // there may be another connection, or none, when the goroutine begins
		c.wg.Go(func() { r.compare(c.ctx, up, c.leader) })
		c.follow(l)
		l.up.Close()
		if c.ctx.Err() != nil {
			return
		}
		if err := l.up.Err(); err != nil {
			c.g.log().Warn("connection to a replica lost", "server", c.g.Name, "replica", r.Name, "err", err)
		}
		if !c.leave(i, l) {
			return
		}
		if time.Since(began) > longPause {
			pause = firstPause
		}
		l = nil
	}
}

// follow waits for the end of a leg, and announces when it may get requests again, or none any more.
func (c *conn) follow(l *line) {
	for {
		changed := l.r.change()
		c.mu.Lock()
		c.announce()
		c.mu.Unlock()
		var reach <-chan struct{}
		if r, ok := l.up.(interface {
			Reach() (changed <-chan struct{}, err error)
		}); ok {
			var err error
			if reach, err = r.Reach(); err != nil {
				go l.suspect() // its subscription tells, even without a request; bounded in time
			}
		}
		select {
		case <-l.up.Done():
			return
		case <-c.ctx.Done():
			return
		case <-changed:
		case <-reach:
		}
	}
}

// join adds a leg. It returns false if the connection is over.
func (c *conn) join(i int, l *line) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if t, ok := l.up.(turner); ok && c.turns {
		t.TakeTurns()
	}
	c.legs[i], c.soon[i], c.last = l, false, nil
	c.announce()
	return true
}

// leave removes a leg that has ended. It returns false if it was the last, so that the connection is
// over, unless that replica is being restarted or another one is being connected to.
func (c *conn) leave(i int, l *line) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.legs[i], c.soon[i] = nil, l.closedWhy() == wasRestart
	c.announce()
	if c.soon[i] {
		return true
	}
	for _, other := range c.legs {
		if other != nil {
			return true
		}
	}
	err := l.err()
	if err == nil {
		err = errors.New("it has ended")
	}
	err = fmt.Errorf("the last replica, %s: %w", c.g.replicas[i].Name, err)
	if c.pausing[i] = true; c.arriving() { // this one has just failed
		c.last = err
		return true
	}
	c.end(err)
	return false
}

// announce wakes those who wait for a change, and moves the lists to a replica that works; mu is held.
func (c *conn) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
	for _, mute := range []bool{false, true} { // one that is mute is better than none
		if c.takes(c.lead, mute) {
			return
		}
		for i := range c.legs { // the first that works has the lists
			if c.takes(i, mute) {
				c.lead = i
				c.epoch++
				return
			}
		}
	}
}

// takes reports whether a leg may get requests, and is not mute, unless that does not matter; mu is held.
func (c *conn) takes(i int, mute bool) bool {
	l := c.legs[i]
	return l != nil && l.closedWhy() == "" && l.r.allow() == nil && (mute || !l.isMute())
}

// hasOther reports whether another leg than l may get requests, and is not mute.
func (c *conn) hasOther(l *line) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.legs {
		if c.legs[i] != l && c.takes(i, false) {
			return true
		}
	}
	return false
}

// end marks the connection as over; mu is held.
func (c *conn) end(err error) {
	if !c.closed {
		c.closed, c.err = true, err
		c.cancel()
		close(c.done)
	}
}

func (c *conn) Done() <-chan struct{} { return c.done }

func (c *conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends all legs.
func (c *conn) Close() error {
	c.mu.Lock()
	c.end(nil)
	c.mu.Unlock()
	c.wg.Wait()
	return nil
}

// leader returns the leg that has the lists and its replica; the leg is nil if it is not connected.
func (c *conn) leader() (gateway.Upstream, *replica) {
	l, r, _ := c.leading()
	return l.upstream(), r
}

func (c *conn) leading() (l *line, r *replica, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.legs[c.lead], c.g.replicas[c.lead], c.epoch
}

// leg returns the leg of a replica, or nil.
func (c *conn) leg(r *replica) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.g.replicas {
		if other == r {
			return c.legs[i]
		}
	}
	return nil
}

// all returns the legs that are connected.
func (c *conn) all() (legs []gateway.Upstream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.legs {
		if l != nil {
			legs = append(legs, l.up)
		}
	}
	return legs
}

// Handle sends a request to a replica, see the guarantees of the package.
func (c *conn) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if !counts(req.Method) {
		return c.handleOther(ctx, req)
	}
	pinned := c.g.pinnedFor(ctx, req)
	var tried [16]*replica // most groups are smaller; others try 16
	var last error
	unknown := false // a replica may have run it
	var refusing refusals
	for n := 0; n < len(tried); n++ {
		r := pinned
		if r != nil { // it may finish there, also if the operator is taking the replica out
			if err := r.breaker.Allow(); err != nil {
				return nil, err
			}
		} else if r = c.chooseSoon(ctx, req, tried[:n], !unknown); r == nil {
			break
		}
		leg := c.leg(r)
		if pinned != nil && (leg == nil || leg.closedWhy() != "") {
			leg = c.legSoon(ctx, r)
		}
		if leg == nil && pinned != nil {
			why := "is not connected"
			if out := r.outWhy(); out != "" {
				why = out
			}
			return nil, unsent{mcp.Errorf(jsonrpc.CodeInternal, "%s, which has what this request is about, %s", r.title(), why)}
		}
		if leg == nil { // it has just gone
			continue
		}
		tried[n] = r
		if err := note.Attempt(ctx, r.Name); err != nil { // not the first
			return nil, cmp.Or(last, err)
		}
		res, err := leg.send(ctx, req, pinned != nil, c.g.repeats(req, r))
		if errors.As(err, new(takenOut)) && ctx.Err() == nil { // since it was chosen; nothing was sent
			tried[n] = nil
			n--
			continue
		}
		f := faultOf(ctx, err)
		if f == answered {
			c.g.note(ctx, r, res, err)
			refusing.count(ctx)
			return res, err
		}
		if f == refused {
			refusing.add(r, err)
		}
		unknown = unknown || f == lost
		if last == nil || f == lost {
			last = r.worded(req, f, err)
		}
		if pinned != nil || f == lost && !c.g.repeats(req, r) {
			return nil, last
		}
		c.g.log().DebugContext(ctx, "request goes to another replica", "server", c.g.Name, "replica", r.Name, "method", req.Method, "err", err)
	}
	if last != nil {
		return nil, last
	}
	return nil, c.g.unavailable()
}

// choose returns the replica for the next attempt, or nil if there is none: for a list the one that has
// the lists, else one of those that have the tool. One that is mute gets what no other can take.
func (c *conn) choose(req *mcp.Request, tried []*replica) *replica {
	c.mu.Lock()
	legs := append(make([]*line, 0, 16), c.legs...)
	lead := c.g.replicas[c.lead]
	c.mu.Unlock()
	usable := func(r *replica, mute bool) bool {
		for _, t := range tried {
			if t == r {
				return false
			}
		}
		for i, other := range c.g.replicas {
			if other == r {
				return legs[i] != nil && legs[i].closedWhy() == "" && r.allow() == nil && (mute || !legs[i].isMute())
			}
		}
		return false
	}
	tool := ""
	if _, lists := feature.Of(req.Method); lists && usable(lead, false) {
		return lead
	}
	if calls(req) {
		tool = toolOf(req)
	}
	for _, mute := range []bool{false, true} {
		if tool != "" {
			if r := c.g.pick(req, func(r *replica) bool { return r.has(tool) && usable(r, mute) }); r != nil {
				return r
			}
			if c.g.pick(req, func(r *replica) bool { return r.has(tool) }) != nil {
				continue // those that have it cannot be used now
			}
		}
		if r := c.g.pick(req, func(r *replica) bool { return usable(r, mute) }); r != nil {
			return r
		}
	}
	return nil
}

// handleOther answers what is not spread: a description comes from the replica with the lists, and all
// replicas get a notification.
func (c *conn) handleOther(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Method == revision.NoteRootsChanged {
		for _, leg := range c.all() {
			_, _ = leg.Handle(ctx, req) // the gateway logs no more than this
		}
		return mcp.RawResult(`{}`), nil
	}
	leg, _ := c.leader()
	if leg == nil {
		return nil, c.g.unavailable()
	}
	return leg.Handle(ctx, req)
}

// toolOf returns the name of the tool of a call, or "".
func toolOf(req *mcp.Request) string {
	name, err := jsonx.Unquote(req.Param("name"))
	if err != nil {
		return ""
	}
	return name
}

// Revision returns the revision of the replica with the lists.
func (c *conn) Revision() mcp.Revision {
	for _, leg := range append(c.all(), nil) {
		if r, ok := leg.(interface{ Revision() mcp.Revision }); ok {
			return r.Revision()
		}
	}
	return ""
}

// ListVersion returns the version of a list at the replica that has the lists.
func (c *conn) ListVersion(method string) (version uint64, heard bool) {
	leg, _, epoch := c.leading()
	l, ok := leg.upstream().(interface {
		ListVersion(string) (uint64, bool)
	})
	if !ok {
		return rand.Uint64(), false // never the same: lists are not cached
	}
	version, heard = l.ListVersion(method)
	return epoch<<40 + version, heard
}

// Watch reports the changes at the replica that has the lists, and ends when another one gets them.
func (c *conn) Watch(ctx context.Context, uris ...string) iter.Seq2[mcp.Event, error] {
	return func(yield func(mcp.Event, error) bool) {
		leg, r, epoch := c.leading()
		w, ok := leg.upstream().(interface {
			Watch(ctx context.Context, uris ...string) iter.Seq2[mcp.Event, error]
		})
		if !ok {
			yield(mcp.Event{}, fmt.Errorf("watch: %w", c.g.unavailable()))
			return
		}
		own, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go c.untilMoved(own, epoch, cancel) // ends with own
		for e, err := range w.Watch(own, uris...) {
			if err != nil && own.Err() == nil && !errors.As(err, new(*mcp.Error)) {
				go leg.suspect() // without calls, nothing else tells that the replica is gone; bounded in time
			}
			if err == nil && e.Method == "notifications/tools/list_changed" {
				c.g.forgetFacts()
			}
			if !yield(e, err) {
				return
			}
		}
		if ctx.Err() == nil && own.Err() != nil {
			yield(mcp.Event{}, fmt.Errorf("watch: %s: %w", r.title(), context.Cause(own)))
		}
	}
}

// errMoved ends a subscription.
var errMoved = errors.New("lists come from another replica now")

// untilMoved calls cancel when another replica gets the lists.
func (c *conn) untilMoved(ctx context.Context, epoch uint64, cancel context.CancelCauseFunc) {
	for {
		c.mu.Lock()
		moved, changed := c.epoch != epoch, c.changed
		c.mu.Unlock()
		if moved {
			cancel(errMoved)
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// turner is an Upstream that lets callers take turns.
type turner interface {
	Asks() bool
	TakeTurns()
	Turns() (waiting int, asked time.Time, principal string)
}

// Asks reports whether a replica has asked a question that does not name a call.
func (c *conn) Asks() bool {
	for _, leg := range c.all() {
		if t, ok := leg.(turner); ok && t.Asks() {
			return true
		}
	}
	return false
}

// TakeTurns lets callers take turns at each replica.
func (c *conn) TakeTurns() {
	c.mu.Lock()
	c.turns = true
	c.mu.Unlock()
	for _, leg := range c.all() {
		if t, ok := leg.(turner); ok {
			t.TakeTurns()
		}
	}
}

// Turns returns how many calls wait for their turn, and the oldest open question.
func (c *conn) Turns() (waiting int, asked time.Time, principal string) {
	for _, leg := range c.all() {
		t, ok := leg.(turner)
		if !ok {
			continue
		}
		n, at, who := t.Turns()
		if waiting += n; !at.IsZero() && (asked.IsZero() || at.Before(asked)) {
			asked, principal = at, who
		}
	}
	return waiting, asked, principal
}

// AsksRoots reports whether a replica has asked for roots.
func (c *conn) AsksRoots() bool {
	for _, leg := range c.all() {
		if a, ok := leg.(interface{ AsksRoots() bool }); ok && a.AsksRoots() {
			return true
		}
	}
	return false
}

// Reach returns why no replica can get requests, or nil. The channel is closed when that may have
// changed.
func (c *conn) Reach() (changed <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	soon := c.isReturning() // it may come back, or go, while the legs are looked at
	for i := range c.legs {
		if c.takes(i, true) {
			return c.changed, nil
		}
	}
	if soon || c.isReturning() {
		return c.changed, nil
	}
	return c.changed, c.g.unavailable()
}

// Raw sends a request to the replica with the lists.
func (c *conn) Raw(ctx context.Context, method string, params any, opts ...mcp.CallOption) (json.RawMessage, error) {
	leg, r := c.leader()
	raw, ok := leg.(interface {
		Raw(ctx context.Context, method string, params any, opts ...mcp.CallOption) (json.RawMessage, error)
	})
	if !ok {
		return nil, c.g.unavailable()
	}
	res, err := raw.Raw(ctx, method, params, opts...)
	if f := faultOf(ctx, err); f != answered {
		err = r.worded(&mcp.Request{Method: method}, f, err)
	}
	return res, err
}
