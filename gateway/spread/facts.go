package spread

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// facts are what a replica says about itself.
type facts struct {
	server string // name and version
	tools  map[string]tool
	at     time.Time
}

type tool struct {
	hash       [32]byte // of the canonical definition
	repeatable bool     // declared read-only or idempotent
}

const (
	newFacts  = time.Second      // after which a new connection requests them again
	factsAge  = 30 * time.Second // after which facts are requested again
	factsTime = 10 * time.Second // bounds a request for facts
	maxPages  = 1000             // of a list
)

// compare keeps the facts about a replica current while up lasts, and reports how they differ from
// those of the replica with the lists.
func (r *replica) compare(ctx context.Context, up gateway.Upstream, leader func() (gateway.Upstream, *replica)) {
	for age := newFacts; ; age = factsAge { // a new connection may be to another version
		r.mu.Lock()
		old := r.facts == nil || time.Since(r.facts.at) >= age
		r.mu.Unlock()
		if old && r.breaker.Allow() == nil {
			if f := factsOf(r.g.ctx, up); f != nil {
				r.mu.Lock()
				r.facts = f
				r.mu.Unlock()
			}
		}
		if _, lead := leader(); lead != nil {
			r.g.compareWith(lead) // also the others: the facts of lead may have come after theirs
		}
		t := time.NewTimer(factsAge)
		select {
		case <-t.C:
		case <-r.g.stale(r):
			t.Stop()
		case <-up.Done():
			t.Stop()
			return
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// factsOf asks a replica for its facts. It returns nil if the replica does not give them.
func factsOf(ctx context.Context, up gateway.Upstream) *facts {
	ctx, cancel := context.WithTimeout(ctx, factsTime)
	defer cancel()
	f := &facts{tools: map[string]tool{}, at: time.Now()}
	res, err := up.Handle(ctx, &mcp.Request{Method: "server/discover"})
	if err != nil {
		return nil
	}
	var who mcp.Implementation
	if raw, ok := jsonx.LookupPath(res.JSON(), "_meta", "io.modelcontextprotocol/serverInfo"); ok && jsonx.Unmarshal(raw, &who) == nil {
		f.server = strings.TrimSpace(text.Clip(who.Name, 100) + " " + text.Clip(who.Version, 100))
	}
	if _, ok := jsonx.LookupPath(res.JSON(), "capabilities", "tools"); !ok {
		return f
	}
	params := json.RawMessage(`{}`)
	for range maxPages {
		res, err := up.Handle(ctx, &mcp.Request{Method: "tools/list", Params: params})
		if err != nil {
			return nil
		}
		list, _ := jsonx.Lookup(res.JSON(), "tools")
		for e := range jsonx.Elements(list) {
			raw, _ := jsonx.Lookup(e, "name")
			name, err := jsonx.Unquote(raw)
			if err != nil {
				continue
			}
			f.tools[name] = tool{sha256.Sum256(jsonx.Canonical(e)), hinted(e, "readOnlyHint") || hinted(e, "idempotentHint")}
		}
		cursor, ok := jsonx.Lookup(res.JSON(), "nextCursor")
		if !ok || string(cursor) == "null" {
			return f
		}
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	return nil
}

func hinted(tool json.RawMessage, hint string) bool {
	v, _ := jsonx.LookupPath(tool, "annotations", hint)
	return string(v) == "true"
}

// has reports whether the replica lists a tool, as far as known.
func (r *replica) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.facts == nil {
		return false
	}
	_, ok := r.facts.tools[name]
	return ok
}

// repeatable reports whether the replica declares that a tool may run twice.
func (r *replica) repeatable(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.facts != nil && r.facts.tools[name].repeatable
}

// known returns the facts about the replica, or nil.
func (r *replica) known() *facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.facts
}

// compareWith compares all replicas with the one that has the lists.
func (g *Group) compareWith(lead *replica) {
	g.compareMu.Lock()
	defer g.compareMu.Unlock()
	for _, r := range g.replicas {
		r.differsFrom(lead)
	}
}

// differsFrom finds out how the replica differs from the one with the lists, and logs a change of that. Its group's
// compareMu is held.
func (r *replica) differsFrom(lead *replica) {
	how := ""
	if mine, theirs := r.known(), lead.known(); r != lead && mine != nil && theirs != nil {
		if how = mine.differences(theirs); how != "" {
			how = "unlike " + lead.Name + ": " + how
		}
	}
	r.mu.Lock()
	before := r.differs
	r.differs = how
	r.mu.Unlock()
	switch {
	case how == before:
	case how != "":
		r.g.log().Warn("replica differs from the one with the lists", "server", r.g.Name, "replica", r.Name, "how", how)
	default:
		r.g.log().Info("replica does not differ any more", "server", r.g.Name, "replica", r.Name)
	}
}

// differences words how f differs from other; empty: it does not.
func (f *facts) differences(other *facts) string {
	var out []string
	if f.server != other.server {
		out = append(out, fmt.Sprintf("it is %q, not %q", cmp.Or(f.server, "unknown"), cmp.Or(other.server, "unknown")))
	}
	var lacks, more, changed []string
	for name, t := range other.tools {
		if mine, ok := f.tools[name]; !ok {
			lacks = append(lacks, name)
		} else if mine.hash != t.hash {
			changed = append(changed, name)
		}
	}
	for name := range maps.Keys(f.tools) {
		if _, ok := other.tools[name]; !ok {
			more = append(more, name)
		}
	}
	for _, part := range []struct {
		what  string
		names []string
	}{{"it lacks the tools ", lacks}, {"it also has the tools ", more}, {"it defines otherwise ", changed}} {
		if len(part.names) > 0 {
			out = append(out, part.what+shortList(part.names))
		}
	}
	return strings.Join(out, "; ")
}

// shortList joins at most five names.
func shortList(names []string) string {
	slices.Sort(names)
	rest := ""
	if len(names) > 5 {
		names, rest = names[:5], fmt.Sprintf(" and %d more", len(names)-5)
	}
	for i := range names {
		names[i] = text.Clip(names[i], 60)
	}
	return strings.Join(names, ", ") + rest
}

// forgetFacts lets the facts about all replicas be requested again.
func (g *Group) forgetFacts() {
	for _, r := range g.replicas {
		r.mu.Lock()
		if r.facts != nil {
			old := *r.facts
			old.at = time.Time{}
			r.facts = &old
		}
		close(r.outdated)
		r.outdated = make(chan struct{})
		r.mu.Unlock()
	}
}

// stale returns a channel that is closed when the facts about a replica must be requested again.
func (g *Group) stale(r *replica) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outdated
}
