package gateway

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// All callers who share a connection receive changes through one subscription at the server:
//
//   - It always covers the lists, and the resources that any caller listens to.
//   - When other resources are needed, a new subscription replaces it. The new one begins before
//     the old one ends, so that no event is missed. Concurrent callers share one replacement.
//   - A caller that asks for a resource that the server refuses fails alone.
//   - A resource that nobody listens to any more is dropped with the next replacement, or after a
//     second.
//   - A subscription that ends is opened again with growing pauses. Events are not replayed, so
//     everything that it covered is then reported as changed (T-55).
//   - Each caller receives its events on its own goroutine. A slow caller does not delay others,
//     and receives one event for a resource that has changed several times.

const (
	lingerTime  = time.Second            // that a resource stays subscribed without listeners
	overlapTime = 500 * time.Millisecond // that the old subscription lasts beside the new one
	gatherTime  = 100 * time.Millisecond // least time between two replacements
	maxParts    = 1000                   // parts of resources with events that a caller has not received yet
)

// watcher is a connection that reports changes of lists and resources, as a Session does.
type watcher interface {
	Watch(ctx context.Context, uris ...string) iter.Seq2[mcp.Event, error]
}

// subscription is the subscription at one connection. It owns the goroutines of its rounds, which
// end with run.
type subscription struct {
	p *pool
	c *conn
	w watcher

	wake   chan struct{} // capacity 1: run has something to do
	relist chan struct{} // capacity 1: lists is not empty
	wg     sync.WaitGroup

	suspected chan struct{} // capacity 1: the server may not be reached any more

	versions [len(listChanges)]atomic.Uint64 // how many times each list has changed, or may have
	hears    atomic.Int64                    // the changeSet of lists whose changes are announced now

	mu          sync.Mutex
	subscribers map[string]map[*subscriber]struct{} // by resource; guarded by mu
	waiting     []*subscriber                       // waiting for the answer from the server; guarded by mu
	current     *round                              // the newest acknowledged round; nil if there is none; guarded by mu
	dropped     time.Time                           // when a resource lost its last subscriber; zero: none did; guarded by mu
	lists       changeSet                           // changes not reported yet; guarded by mu
	over        bool                                // run has ended; guarded by mu
}

// subscriber is a caller that listens to resources.
type subscriber struct {
	uris []string
	said chan struct{} // closed when honoured and err are set

	honoured map[string]bool // resources that the server reports
	err      error           // why the subscription failed

	wake chan struct{} // capacity 1: there are events

	changed map[string][]byte // params of the next events, by URI; guarded by mu of the subscription
	lost    error             // why the events have ended; guarded by mu of the subscription
	left    bool              // guarded by mu of the subscription
}

// round is one subscriptions/listen at the server.
type round struct {
	uris     map[string]bool // asked for
	honoured map[string]bool // set before acked is closed
	cancel   context.CancelFunc
	acked    chan struct{}
	ended    chan struct{} // closed when err is set
	err      error

	told  map[string]bool // events by method and URI, while an older round may repeat them; guarded by mu of the subscription
	since time.Time       // when it was acknowledged; guarded by mu of the subscription

	failed bool // it was not acknowledged in time; guarded by mu of the subscription
}

func newSubscription(p *pool, c *conn, w watcher) *subscription {
	return &subscription{p: p, c: c, w: w, wake: make(chan struct{}, 1), relist: make(chan struct{}, 1), suspected: make(chan struct{}, 1), subscribers: map[string]map[*subscriber]struct{}{}}
}

// run keeps the subscription open until ctx ends, with the connection.
func (n *subscription) run(ctx context.Context) {
	defer n.wg.Wait()
	defer n.end(errors.New("the connection has ended"))
	n.wg.Go(func() { n.tellLists(ctx) })
	n.wg.Go(func() { n.watchReach(ctx) })
	pause, lost := firstPause, false
	for ctx.Err() == nil {
		began := time.Now()
		// New subscribers wait for the next round, because the server may refuse their resources.
		waiting := n.holdBack()
		r, err := n.replace(ctx, lost)
		for _, c := range waiting {
			n.again(c)
		}
		if err == nil {
			lost = true // however it ends
			n.rouse()
			err = n.keep(ctx, r)
		}
		n.refuse(err)
		n.p.g.log().Debug("no notifications from a server", "server", n.p.src.Name, "err", err)
		if time.Since(began) > longPause {
			pause = firstPause
		}
		rest(ctx, &pause)
	}
}

// keep keeps r and its replacements open until one ends by itself.
func (n *subscription) keep(ctx context.Context, r *round) error {
	for {
		var linger <-chan time.Time
		if since := n.idleSince(); !since.IsZero() {
			linger = time.After(time.Until(since.Add(lingerTime)))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.ended:
			return r.err
		case <-n.wake:
			if !n.wanted() {
				continue
			}
		case <-linger:
			if !n.differs(r) {
				continue
			}
		}
		next, err := n.replace(ctx, false)
		var refused *mcp.Error
		switch {
		case err == nil:
			time.AfterFunc(overlapTime, r.cancel)
			r = next
		case errors.As(err, &refused):
			r = n.oneByOne(ctx, r, err)
		default:
			n.refuse(err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sleep(ctx, gatherTime)
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// replace opens a round for everything that is needed now, and answers the waiting subscribers.
// After a loss it reports everything as changed.
func (n *subscription) replace(ctx context.Context, lost bool) (*round, error) {
	n.mu.Lock()
	waiting := n.waiting
	uris := map[string]bool{}
	for uri := range n.subscribers {
		uris[uri] = true
	}
	n.dropped = time.Time{}
	n.mu.Unlock()
	r, err := n.open(ctx, uris)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.waiting = slices.DeleteFunc(slices.Clone(n.waiting), func(c *subscriber) bool { return slices.Contains(waiting, c) })
	for _, c := range waiting {
		n.answerLocked(c, r)
	}
	if lost {
		for uri := range n.subscribers {
			n.tellLocked(uri, uri, nil)
		}
	}
	n.mu.Unlock()
	if lost {
		n.listsChanged(changedAll)
	}
	return r, nil
}

// oneByOne tries each waiting subscriber alone, because one of them has asked for a resource that
// the server refuses. It returns the last round that was opened, or r.
func (n *subscription) oneByOne(ctx context.Context, r *round, err error) *round {
	waiting := n.holdBack()
	for _, c := range waiting {
		if len(waiting) > 1 && n.again(c) {
			next, failed := n.replace(ctx, false)
			if failed == nil {
				time.AfterFunc(overlapTime, r.cancel)
				r = next
				continue
			}
			err = failed
		}
		n.mu.Lock()
		n.refuseLocked(c, err)
		n.mu.Unlock()
	}
	return r
}

// holdBack removes and returns the waiting subscribers. Each must then be passed to again or
// refused.
func (n *subscription) holdBack() []*subscriber {
	n.mu.Lock()
	defer n.mu.Unlock()
	waiting := n.waiting
	n.waiting = nil
	for _, c := range waiting {
		n.dropLocked(c)
	}
	return waiting
}

// again makes a subscriber wait once more. It returns false if the subscriber has left.
func (n *subscription) again(c *subscriber) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !c.left {
		n.addLocked(c)
	}
	return !c.left
}

// open begins a round and waits for its acknowledgement.
func (n *subscription) open(ctx context.Context, uris map[string]bool) (*round, error) {
	own, cancel := context.WithCancel(ctx)
	r := &round{uris: uris, cancel: cancel, acked: make(chan struct{}), ended: make(chan struct{}), told: map[string]bool{}}
	n.wg.Go(func() {
		defer close(r.ended)
		defer cancel()
		defer n.unheard(r)
		r.err = errors.New("the server ended the subscription")
		for e, err := range n.w.Watch(own, slices.Sorted(maps.Keys(uris))...) {
			if err != nil {
				r.err = err
				return
			}
			n.event(r, e)
		}
	})
	late := time.NewTimer(n.p.g.listTimeout())
	defer late.Stop()
	var err error
	select {
	case <-r.acked:
		return r, nil
	case <-r.ended:
		err = r.err
	case <-late.C:
		err = errSlow
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	r.failed = true
	if n.current == r { // it was acknowledged just now
		n.current = nil
		n.hears.Store(0)
	}
	return nil, err
}

// event processes an event of a round. While two rounds overlap, events come from the newest one,
// and from the older one only if the newest has not reported them.
func (n *subscription) event(r *round, e mcp.Event) {
	if e.Method == noteAcknowledged {
		select {
		case <-r.acked:
			return // a repeated acknowledgement
		default:
		}
		r.honoured = map[string]bool{}
		honoured, _ := jsonx.Lookup(e.Params, "notifications")
		var lists changeSet
		for i, l := range listChanges {
			if on, _ := jsonx.Lookup(honoured, l.member); string(on) == "true" {
				lists |= 1 << i
			}
		}
		raw, _ := jsonx.Lookup(honoured, "resourceSubscriptions")
		for el := range jsonx.Elements(raw) {
			if uri, err := jsonx.Unquote(el); err == nil {
				r.honoured[uri] = true
			}
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if !r.failed {
			n.current, r.since = r, time.Now()
			n.hears.Store(int64(lists))
			close(r.acked)
		}
		return
	}
	n.mu.Lock()
	key := e.Method + " " + e.URI
	if newest := n.current; newest != nil && newest != r && newest.told[key] {
		n.mu.Unlock()
		return
	}
	if len(r.told) < maxWatched && time.Since(r.since) < 2*overlapTime {
		r.told[key] = true
	}
	if e.URI != "" {
		n.updatedLocked(e.URI, ofAll(e.Params))
	}
	n.mu.Unlock()
	var set changeSet
	for i, l := range listChanges {
		if e.Method == l.method {
			set |= 1 << i
		}
	}
	if set != 0 {
		n.listsChanged(set)
	}
}

// ofAll returns the params of a notification without the id of the gateway's own subscription
// (T-01).
func ofAll(params []byte) []byte {
	const id = "io.modelcontextprotocol/subscriptionId"
	meta, _ := jsonx.Lookup(params, "_meta")
	if _, ok := jsonx.Lookup(meta, id); !ok {
		return params
	}
	if rest := jsonx.Without(nil, meta, id); len(rest) > len("{}") {
		return jsonx.With(nil, params, "_meta", rest)
	}
	return jsonx.Without(nil, params, "_meta")
}

// updatedLocked reports a changed resource to its subscribers, and to those of what contains it,
// such as a folder (T-57).
func (n *subscription) updatedLocked(uri string, params []byte) {
	n.tellLocked(uri, uri, params)
	for i := 1; i < len(uri); i++ {
		if strings.IndexByte("/?#", uri[i]) < 0 {
			continue
		}
		n.tellLocked(uri[:i], uri, params)
		if i+1 < len(uri) && uri[i] == '/' {
			n.tellLocked(uri[:i+1], uri, params)
		}
	}
}

func (n *subscription) tellLocked(watched, uri string, params []byte) {
	for r := range n.subscribers[watched] {
		about, with := uri, params
		if _, known := r.changed[uri]; !known && uri != watched && len(r.changed) >= maxParts {
			about, with = watched, nil // there is always room for those
		}
		if with == nil {
			with = append(jsonx.AppendString([]byte(`{"uri":`), about), '}')
		}
		if r.changed == nil {
			r.changed = map[string][]byte{}
		}
		r.changed[about] = with
		r.rouse()
	}
}

func (r *subscriber) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// join adds a subscriber and waits for the answer from the server, which is then in honoured and
// err. The caller must call leave afterwards.
func (n *subscription) join(ctx context.Context, uris []string) (*subscriber, error) {
	r := &subscriber{uris: uris, said: make(chan struct{}), wake: make(chan struct{}, 1)}
	n.mu.Lock()
	switch {
	case n.over:
		n.mu.Unlock()
		return r, errors.New("the connection has ended")
	case n.tooMany(uris):
		n.mu.Unlock()
		return r, mcp.Errorf(jsonrpc.CodeInternal, "more than %d resources of server %q have subscriptions; try again later", maxWatched, n.p.src.Name)
	}
	n.addLocked(r)
	n.mu.Unlock()
	n.rouse()
	select {
	case <-r.said:
		return r, r.err
	case <-ctx.Done():
		return r, context.Cause(ctx)
	}
}

// tooMany reports whether these resources would exceed maxWatched; mu is held.
func (n *subscription) tooMany(uris []string) bool {
	fresh := 0
	for _, uri := range uris {
		if n.subscribers[uri] == nil {
			fresh++
		}
	}
	return len(n.subscribers)+fresh > maxWatched
}

// addLocked adds a subscriber to its resources and to those that wait.
func (n *subscription) addLocked(r *subscriber) {
	for _, uri := range r.uris {
		if n.subscribers[uri] == nil {
			n.subscribers[uri] = map[*subscriber]struct{}{}
		}
		n.subscribers[uri][r] = struct{}{}
	}
	n.waiting = append(n.waiting, r)
}

// answerLocked answers a subscriber with the result of a round.
func (n *subscription) answerLocked(c *subscriber, r *round) {
	c.honoured = map[string]bool{}
	for _, uri := range c.uris {
		c.honoured[uri] = r.honoured[uri]
	}
	close(c.said)
}

// wanted answers subscribers whose resources are already covered, and reports whether others still
// wait.
func (n *subscription) wanted() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = slices.DeleteFunc(n.waiting, func(c *subscriber) bool {
		if n.current == nil || slices.ContainsFunc(c.uris, func(uri string) bool { return !n.current.uris[uri] }) {
			return false
		}
		n.answerLocked(c, n.current)
		return true
	})
	return len(n.waiting) > 0
}

// leave removes a subscriber.
func (n *subscription) leave(r *subscriber) {
	n.mu.Lock()
	r.left = true
	n.waiting = slices.DeleteFunc(n.waiting, func(o *subscriber) bool { return o == r })
	n.dropLocked(r)
	n.mu.Unlock()
	n.rouse()
}

// rouse wakes run.
func (n *subscription) rouse() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *subscription) dropLocked(r *subscriber) {
	for _, uri := range r.uris {
		if _, ok := n.subscribers[uri][r]; !ok {
			continue
		}
		if delete(n.subscribers[uri], r); len(n.subscribers[uri]) == 0 {
			delete(n.subscribers, uri)
			n.dropped = time.Now()
		}
	}
}

// differs reports whether the needed resources differ from those of a round. If not, it clears
// dropped.
func (n *subscription) differs(r *round) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.subscribers) != len(r.uris) {
		return true
	}
	for uri := range n.subscribers {
		if !r.uris[uri] {
			return true
		}
	}
	n.dropped = time.Time{}
	return false
}

// idleSince returns when a resource lost its last subscriber, or zero.
func (n *subscription) idleSince() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dropped
}

// refuse answers the waiting subscribers with an error.
func (n *subscription) refuse(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.waiting {
		n.refuseLocked(c, err)
	}
	n.waiting = nil
}

// refuseLocked answers one subscriber, waiting or held back, with an error.
func (n *subscription) refuseLocked(c *subscriber, err error) {
	n.waiting = slices.DeleteFunc(slices.Clone(n.waiting), func(o *subscriber) bool { return o == c })
	n.dropLocked(c)
	c.err = err
	close(c.said)
}

// end tells the subscribers that there are no more events.
func (n *subscription) end(err error) {
	n.refuse(err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	for _, subscribers := range n.subscribers {
		for r := range subscribers {
			r.lost = err
			r.rouse()
		}
	}
}

// next waits for events and returns the params of their notifications.
func (n *subscription) next(ctx context.Context, r *subscriber) ([][]byte, error) {
	for {
		n.mu.Lock()
		changed, lost := r.changed, r.lost
		r.changed = nil
		n.mu.Unlock()
		if len(changed) > 0 {
			out := make([][]byte, 0, len(changed))
			for _, uri := range slices.Sorted(maps.Keys(changed)) {
				out = append(out, changed[uri])
			}
			return out, nil
		}
		if lost != nil {
			return nil, lost
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
