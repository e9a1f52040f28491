package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A caller gets a list soon, also while servers start or are slow to list: without theirs, which
// the list says. They are told to have changed when they come.

const (
	// listPatience is how long a list waits for servers.
	listPatience = time.Second

	// A server that last started within fastStart is waited for as long after its start.
	fastStart = 3 * time.Second

	// leastPatience is for the list of a server that has just started.
	leastPatience = 250 * time.Millisecond
)

// metaStarting is in _meta of a list without servers that are starting or have not listed yet: an
// array of their names. It is empty where middleware hides things from callers.
const metaStarting = "dev.patchbay/starting"

// hurry is a list that waits no longer than it must. A context without one belongs to a request
// that cannot be answered before it is known what servers have.
type hurry struct {
	until time.Time

	mu      sync.Mutex
	missing []string // names of servers; guarded by mu
}

type hurryKey struct{}

func hurryOf(ctx context.Context) *hurry {
	h, _ := ctx.Value(hurryKey{}).(*hurry)
	return h
}

// misses takes note of a server whose part is missing.
func (h *hurry) misses(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.missing = append(h.missing, name)
}

// appendMeta appends the members of a partial list; none if it is whole.
func (h *hurry) appendMeta(out []byte, hide bool) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.missing) == 0 {
		return out
	}
	if !hide {
		out = append(out, `,"ttlMs":0,"cacheScope":"private"`...)
	}
	out = append(out, `,"_meta":{"`+metaStarting+`":`...)
	names := h.missing
	if hide {
		names = nil
	}
	slices.SortFunc(names, strings.Compare)
	return append(appendStrings(out, names), '}')
}

// startWait is how long after its beginning a list waits for the start of the server; mu is held.
func (p *pool) startWait(ctx context.Context) time.Duration {
	most := p.g.listTimeout()
	switch {
	case hurryOf(ctx) == nil:
		return most
	case p.took > 0 && p.took <= fastStart:
		return min(fastStart, most)
	}
	return min(listPatience, most)
}

// fetchSoon is fetch for a list that cannot wait for ever: what comes too late is kept, and told to
// have changed if it is news. Until then what was kept before is the answer.
func (up *upstream) fetchSoon(ctx context.Context, c *conn, who client, k *listKind) ([]entry, error) {
	h := hurryOf(ctx)
	if h == nil {
		return up.fetch(ctx, c, who, k)
	}
	type answer struct {
		entries []entry
		err     error
	}
	var settled atomic.Bool // by the answer, or the end of the wait
	answers := make(chan answer, 1)
	before := up.kept.list(who, k)
	p := up.pool
	p.mu.Lock()
	p.use(c)
	going := p.spawn(func() {
		defer p.release(c, nil, nil)
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), up.g.listTimeout(), errSlow)
		defer cancel()
		defer context.AfterFunc(p.ctx, cancel)()
		entries, err := up.fetch(ctx, c, who, k)
		answers <- answer{entries, err}
		if !settled.CompareAndSwap(false, true) && err == nil {
			if after := up.kept.list(who, k); before == nil || !after.long && !after.equal(before) {
				up.g.announce(k.change)
			}
		}
	})
	if !going {
		c.users--
	}
	p.mu.Unlock()
	if !going {
		return nil, errMissing
	}
	late := time.NewTimer(max(time.Until(h.until), leastPatience))
	defer late.Stop()
	select {
	case a := <-answers:
		settled.Store(true)
		return a.entries, a.err
	case <-late.C:
	case <-ctx.Done():
	}
	if !settled.CompareAndSwap(false, true) {
		a := <-answers
		return a.entries, a.err
	}
	if kept, ok := up.kept.get(who, k); ok {
		return kept, nil
	}
	h.misses(up.name)
	return nil, nil
}
