package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// A caller gets a list soon, even while servers start or are slow to list. The list then lacks the
// entries of those servers and names the servers. When the entries arrive, the gateway announces
// that the list has changed.

const (
	// listPatience is how long a list waits for servers.
	listPatience = time.Second

	// A server whose last start took at most fastStart is given that long again.
	fastStart = 3 * time.Second

	// leastPatience is the least time for the list of a server that has just started.
	leastPatience = 250 * time.Millisecond
)

// metaStarting is a member of _meta in a list that lacks servers that are starting or have not
// listed yet: an array of their names. The array is empty if middleware may hide servers from
// callers.
const metaStarting = "dev.patchbay/starting"

// hurry bounds how long a list request waits. A context without one belongs to a request that
// cannot be answered before the lists are known.
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

// misses records a server whose part is missing.
func (h *hurry) misses(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.missing = append(h.missing, name)
}

// partial reports whether the part of a server is missing.
func (h *hurry) partial() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.missing) > 0
}

// appendMeta appends the result members of a partial list.
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

// startWait returns how long a list waits for the server, from the beginning of the server's start;
// mu is held.
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
