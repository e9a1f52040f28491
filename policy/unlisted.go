package policy

import (
	"encoding/json"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/spelling"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// A misspelt name in a [Require] protects nothing, without any sign of it. So its tools and prompts
// are compared with the lists that pass. When the servers of all its middleware have been listed to
// the end, each name that no server has is logged once, at Warn. URIs and templates are left out,
// because servers need not list them.

// unlisted watches the lists of the servers of one Require. The zero value is ready for use.
type unlisted struct {
	mu    sync.Mutex
	gates int                      // guarded by mu
	seen  map[*featureList]*census // guarded by mu
}

// census holds the names seen in one kind of list.
type census struct {
	names map[string]bool // of all lists so far, maxEntries of them
	ended map[*gate]bool  // the servers whose last page was seen
	told  bool            // missing names have been logged
}

func (u *unlisted) join() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gates++
}

// page records a page of a list. After the last page of all servers it logs the wanted names that
// are in no list.
func (u *unlisted) page(g *gate, l *featureList, entries iter.Seq[json.RawMessage], more bool, wanted map[string]Requirement, log *slog.Logger) {
	if len(wanted) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.seen[l]
	if c == nil {
		if u.seen == nil {
			u.seen = map[*featureList]*census{}
		}
		c = &census{names: map[string]bool{}, ended: map[*gate]bool{}}
		u.seen[l] = c
	}
	if c.told {
		return
	}
	for e := range entries {
		if name := nameOf(e, l.Key); name != "" && len(c.names) < maxEntries {
			c.names[name] = true
		}
	}
	if more {
		return
	}
	if c.ended[g] = true; len(c.ended) < u.gates || len(c.names) == maxEntries {
		return
	}
	c.told = true
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if name != "*" && !c.names[name] {
			log.Warn("the policy names a feature that no server lists; is it misspelt?", "kind", string(l.kind), "name", text.Short(name), "near", near(name, c.names))
		}
	}
	c.names, c.ended = nil, nil
}

// near returns the closest name, or "" if none is close.
func near(name string, names map[string]bool) (found string) {
	best := max(1, len(name)/3) + 1
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if d := spelling.Distance(strings.ToLower(name), strings.ToLower(n)); d < best {
			best, found = d, text.Short(n)
		}
	}
	return found
}
