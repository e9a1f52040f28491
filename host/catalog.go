package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/parallel"
)

// The tools of a request are ordered so that prompt caches stay useful:
//
//   - The host's own tools come first. Tools of servers follow in the order in which this
//     conversation first had them: new tools are appended, and tools that return take their old
//     place.
//   - If there are too many tools, a request offers those of small servers, which one large server does not hide, those that
//     were offered before, and those that the model found with search_tools, the newest first while there is room. The model calls them
//     by their own names, so that approval, validation and limits apply to the tool itself. The
//     price is a new prompt prefix for each search that finds something new.
//   - Every tool can be called, whether or not it is offered.

// catalog holds the tools for one step.
type catalog struct {
	tools     []Tool    // all that can be called
	offered   []Tool    // those in the request to the model
	searching bool      // only some tools are offered
	servers   []section // in the order of the host
}

// section is the part of a catalog that comes from one server.
type section struct {
	server       string
	tools        []Tool
	missing      string // why it has no tools now; empty: it is available
	instructions string
	resources    bool // the server may have resources
}

// sections asks all enabled servers for their tools.
func (h *Host) sections(ctx context.Context) []section {
	servers := slices.DeleteFunc(h.snapshot(), func(s *server) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return s.off
	})
	return parallel.Map(servers, func(s *server) section {
		tools, err := h.toolsOf(ctx, s, listTime)
		sec := section{server: s.Name, tools: slices.DeleteFunc(slices.Clone(tools), func(t Tool) bool { return !h.enabled(s, t.Tool.Name) })}
		if err != nil {
			sec.missing = err.Error()
			h.log().DebugContext(ctx, "the tools of a server are missing", "server", s.Name, "err", err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if s.said != nil {
			sec.instructions, sec.resources = s.said.Instructions, s.said.Capabilities.Has("resources")
		}
		return sec
	})
}

// catalog returns the tools for the next step. The tools named by insisted are offered even if
// there are too many.
func (c *Conversation) catalog(ctx context.Context, info model.Info, insisted ...string) *catalog {
	cat := &catalog{servers: c.h.sections(ctx)}
	var there []Tool
	resources := false
	for _, sec := range cat.servers {
		cat.tools = append(cat.tools, sec.tools...)
		if sec.missing == "" {
			there = append(there, sec.tools...)
		}
		resources = resources || sec.resources && sec.missing == ""
	}
	var own []Tool
	if len(there) > 0 || !c.long.empty() {
		own = append(own, c.readMore())
	}
	if resources {
		own = append(own, c.readResource())
	}
	most := or(c.h.Limits.Tools, 100)
	if info.Tools > 0 {
		most = min(most, info.Tools)
	}
	room := or(c.h.Limits.ToolTokens, 20_000)
	if len(own)+len(there) > most || size(there) > room {
		cat.searching = true
		own = append(own, c.searchTools(cat), c.describeTool(cat))
	}
	cat.tools = append(slices.Clone(own), cat.tools...)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.findLocked(insisted...)
	if cat.searching {
		small := smallServers(cat.servers, most-len(own), room)
		there = slices.DeleteFunc(c.foundLocked(there, most-len(own)-len(small), room-size(small)), func(t Tool) bool {
			return slices.ContainsFunc(small, func(s Tool) bool { return s.Name == t.Name })
		})
		there = slices.Concat(small, there)
	}
	for _, t := range slices.Concat(own, there) {
		if _, ok := c.places[t.Name]; !ok {
			c.places[t.Name] = len(c.places)
		}
	}
	cat.offered = slices.Concat(own, there)
	slices.SortStableFunc(cat.offered, func(a, b Tool) int {
		if own := cmp.Compare(len(a.Server), 0) - cmp.Compare(len(b.Server), 0); own != 0 {
			return own
		}
		return cmp.Compare(c.places[a.Name], c.places[b.Name])
	})
	if !cat.searching { // so that they stay offered if there are too many later
		for _, t := range there {
			c.findLocked(t.Name)
		}
	}
	return cat
}

// Bounds of the tools of small servers, which are offered without a search.
const (
	smallServer = 5    // tools of a server
	smallTools  = 8    // of all such servers
	smallTokens = 1000 // likewise
)

// smallServers returns the tools of the smallest servers that there is room for.
func smallServers(servers []section, most, room int) (tools []Tool) {
	bySize := slices.SortedStableFunc(slices.Values(servers), func(a, b section) int { return cmp.Compare(len(a.tools), len(b.tools)) })
	for _, sec := range bySize {
		all := slices.Concat(tools, sec.tools)
		if sec.missing == "" && len(sec.tools) <= smallServer && len(all) <= min(smallTools, most) && size(all) <= min(smallTokens, room) {
			tools = all
		}
	}
	return tools
}

// findLocked marks tools to be offered even if there are too many; mu is held.
func (c *Conversation) findLocked(names ...string) {
	for _, name := range names {
		c.found = slices.DeleteFunc(c.found, func(n string) bool { return n == name })
		c.found = append(c.found, name)
	}
}

// foundLocked returns the marked tools that there is room for, the newest first; mu is held.
func (c *Conversation) foundLocked(there []Tool, most, room int) []Tool {
	all := room
	var found []Tool
	for i, name := range slices.Backward(c.found) {
		at := slices.IndexFunc(there, func(t Tool) bool { return t.Name == name })
		if at < 0 || there[at].tokens() > all { // it can be called anyway
			continue
		}
		room -= there[at].tokens()
		if len(found) >= most || room < 0 {
			c.found = slices.Delete(c.found, 0, i+1)
			break
		}
		found = append(found, there[at])
	}
	return found
}

// size estimates how many tokens the descriptions of the tools take in a model's context.
func size(tools []Tool) (sum int) {
	for _, t := range tools {
		sum += t.tokens()
	}
	return sum
}

// listed returns the offered tools of servers, one a line, for a system prompt. Descriptions are
// quoted, as they are from servers.
func (cat *catalog) listed() string {
	var lines []string
	for _, t := range cat.offered {
		if t.Server != "" {
			lines = append(lines, strings.TrimSuffix(fmt.Sprintf("- %s: %q", t.Name, bounded(t.Description, 300)), `: ""`))
		}
	}
	return cmp.Or(strings.Join(lines, "\n"), "(none)")
}

// byServer returns the number of tools of each server, for the model.
func (cat *catalog) byServer() string {
	var b strings.Builder
	for _, sec := range cat.servers {
		if len(sec.tools) > 0 && sec.missing == "" {
			b.WriteString(plural(len(sec.tools), "tool") + " of " + quoted(sec.server) + "; ")
		}
	}
	return strings.TrimSuffix(b.String(), "; ")
}
