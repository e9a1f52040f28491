package spread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
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
	legs    []gateway.Upstream // by replica; nil: not connected; guarded by mu
	lead    int                // the replica that has the lists; guarded by mu
	epoch   uint64             // how many times lead has changed; guarded by mu
	turns   bool               // callers take turns; guarded by mu
	changed chan struct{}      // closed when a leg comes or goes, or a breaker changes; guarded by mu
	closed  bool               // guarded by mu
	err     error              // why it is over; guarded by mu
}

// Pauses between attempts to connect to a replica.
const (
	firstPause = 500 * time.Millisecond
	longPause  = 15 * time.Second
)

// newConn returns a connection whose first leg is up.
func newConn(ctx context.Context, g *Group, r *replica, up gateway.Upstream) *conn {
	c := &conn{g: g, legs: make([]gateway.Upstream, len(g.replicas)), done: make(chan struct{}), changed: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for i, other := range g.replicas {
		var first gateway.Upstream
		if other == r {
			first = up
			c.legs[i], c.lead = up, i
		}
		c.wg.Go(func() { c.keep(i, first) })
	}
	return c
}

// keep keeps a leg connected until the connection is over.
func (c *conn) keep(i int, up gateway.Upstream) {
	r := c.g.replicas[i]
	pause := firstPause
	for c.ctx.Err() == nil {
		if up == nil {
			changed := r.breakerChange()
			if r.breaker.Allow() != nil {
				select {
				case <-changed:
				case <-c.ctx.Done():
				}
				continue
			}
			within, cancel := context.WithTimeoutCause(c.ctx, openTime, fmt.Errorf("it was not ready within %v", openTime))
			opened, err := r.open(within)
			cancel()
			if err != nil {
				c.g.log().Debug("replica not connected", "server", c.g.Name, "replica", r.Name, "err", err)
				t := time.NewTimer(pause/2 + rand.N(pause/2))
				select {
				case <-t.C:
				case <-c.ctx.Done():
					t.Stop()
				}
				pause = min(2*pause, longPause)
				continue
			}
			up = opened
			if !c.join(i, up) {
				up.Close()
				return
			}
		}
		began := time.Now()
		c.wg.Go(func() { r.compare(c.ctx, up, c.leader) })
		c.follow(r, up)
		up.Close()
		if c.ctx.Err() != nil {
			return
		}
		if err := up.Err(); err != nil {
			c.g.log().Warn("connection to a replica lost", "server", c.g.Name, "replica", r.Name, "err", err)
		}
		if !c.leave(i, up) {
			return
		}
		if time.Since(began) > longPause {
			pause = firstPause
		}
		up = nil
	}
}

// follow waits for the end of a leg, and announces changes of its breaker.
func (c *conn) follow(r *replica, up gateway.Upstream) {
	for {
		changed := r.breakerChange()
		select {
		case <-up.Done():
			return
		case <-c.ctx.Done():
			return
		case <-changed:
			c.mu.Lock()
			c.announce()
			c.mu.Unlock()
		}
	}
}

// join adds a leg. It returns false if the connection is over.
func (c *conn) join(i int, up gateway.Upstream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if t, ok := up.(turner); ok && c.turns {
		t.TakeTurns()
	}
	c.legs[i] = up
	c.announce()
	return true
}

// leave removes a leg that has ended. It returns false if it was the last, so that the connection is
// over.
func (c *conn) leave(i int, up gateway.Upstream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.legs[i] = nil
	c.announce()
	for _, other := range c.legs {
		if other != nil {
			return true
		}
	}
	err := up.Err()
	if err == nil {
		err = errors.New("it has ended")
	}
	c.end(fmt.Errorf("the last replica, %s: %w", c.g.replicas[i].Name, err))
	return false
}

// announce wakes those who wait for a change; mu is held.
func (c *conn) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
	if leg := c.legs[c.lead]; leg != nil && c.g.replicas[c.lead].breaker.Allow() == nil {
		return
	}
	for i, leg := range c.legs { // the first that works has the lists
		if leg != nil && c.g.replicas[i].breaker.Allow() == nil {
			c.lead = i
			c.epoch++
			return
		}
	}
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
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.legs[c.lead], c.g.replicas[c.lead]
}

// leg returns the leg of a replica, or nil.
func (c *conn) leg(r *replica) gateway.Upstream {
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
	for _, leg := range c.legs {
		if leg != nil {
			legs = append(legs, leg)
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
	reads := revision.Reads(req.Method)
	var tried [16]*replica // most groups are smaller; others try 16
	var last error
	worst := notSent
	for n := 0; n < len(tried); n++ {
		r := pinned
		if r != nil {
			if err := r.breaker.Allow(); err != nil {
				return nil, err
			}
		} else if r = c.choose(req, tried[:n]); r == nil {
			break
		}
		leg := c.leg(r)
		if leg == nil && pinned != nil {
			return nil, unsent{mcp.Errorf(jsonrpc.CodeInternal, "%s, which has what this request is about, is not connected", r.title())}
		}
		tried[n] = r
		if leg == nil { // it has just gone
			continue
		}
		res, err := r.send(ctx, leg, req, reads && pinned == nil)
		f := faultOf(ctx, err)
		if f == answered {
			c.g.note(ctx, r, res, err)
			return res, err
		}
		if last == nil || f == lost {
			last = r.worded(req, f, err)
		}
		worst = max(worst, f)
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
// the lists, else one of those that have the tool.
func (c *conn) choose(req *mcp.Request, tried []*replica) *replica {
	c.mu.Lock()
	legs := append(make([]gateway.Upstream, 0, 16), c.legs...)
	lead := c.g.replicas[c.lead]
	c.mu.Unlock()
	usable := func(r *replica) bool {
		for _, t := range tried {
			if t == r {
				return false
			}
		}
		for i, other := range c.g.replicas {
			if other == r {
				return legs[i] != nil && r.breaker.Allow() == nil
			}
		}
		return false
	}
	tool := ""
	switch req.Method {
	case revision.MethodCall:
		tool = toolOf(req)
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		if usable(lead) {
			return lead
		}
	}
	if tool != "" {
		if r := c.g.pick(c.g.replicas, func(r *replica) bool { return r.has(tool) && usable(r) }); r != nil {
			return r
		}
		if c.g.pick(c.g.replicas, func(r *replica) bool { return r.has(tool) }) != nil {
			return nil // those that have it cannot be used now
		}
	}
	return c.g.pick(c.g.replicas, usable)
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
	c.mu.Lock()
	leg, epoch := c.legs[c.lead], c.epoch
	c.mu.Unlock()
	l, ok := leg.(interface {
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
		c.mu.Lock()
		leg, r, epoch := c.legs[c.lead], c.g.replicas[c.lead], c.epoch
		c.mu.Unlock()
		w, ok := leg.(interface {
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
	for i, leg := range c.legs {
		if leg != nil && c.g.replicas[i].breaker.Allow() == nil {
			return c.changed, nil
		}
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
