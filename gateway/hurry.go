package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
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
	until    time.Time
	audience audience

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

// partial tells whether a server is missing.
func (h *hurry) partial() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.missing) > 0
}

// appendMeta appends the members of a partial list.
func (h *hurry) appendMeta(out []byte, hide bool) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
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
