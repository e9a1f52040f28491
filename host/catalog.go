package host

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/parallel"
)

// The tools of a request, so that caches of prompts are of use:
//
//   - The host's own come first, those of servers in the order in which this conversation first
//     had them: what comes later comes at the end, and what comes back takes its old place.
//   - If all are too many, those are offered that were offered before and those that the model
//     has searched for, the newest as far as there is room. They are called by their own names,
//     so that what is approved, validated and counted is the tool itself; the price is a new
//     prefix of the prompt for each search that finds something new.
//   - Whatever there is may be called, offered or not.

// catalog is what there is for the model in one step.
type catalog struct {
	tools     []Tool    // all that may be called
	offered   []Tool    // those that the model is told of
	searching bool      // not all are offered
	servers   []section // in their order
}

// section is what a server is to a conversation in one step.
type section struct {
	server       string
	tools        []Tool
	missing      string // why it has none now; empty: it is there
	instructions string
	resources    bool // it may have some
}

// sections asks the servers, as far as the person has not disabled them.
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
			h.log().Debug("the tools of a server are missing", "server", s.Name, "err", err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if s.said != nil {
			sec.instructions, sec.resources = s.said.Instructions, s.said.Capabilities.Has("resources")
		}
		return sec
	})
}

// catalog finds out what there is for the model. The tools named by insisted are offered in any
// case.
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
		there = c.foundLocked(there, most-len(own), room)
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
	if !cat.searching { // so that they stay if there will be too many
		for _, t := range there {
			c.findLocked(t.Name)
		}
	}
	return cat
}

// findLocked has tools offered from now on, also if there are too many; mu is held.
func (c *Conversation) findLocked(names ...string) {
	for _, name := range names {
		c.found = slices.DeleteFunc(c.found, func(n string) bool { return n == name })
		c.found = append(c.found, name)
	}
}

// foundLocked returns those tools that were found, the last of them if there is no room for
// all; mu is held.
func (c *Conversation) foundLocked(there []Tool, most, room int) []Tool {
	all := room
	var found []Tool
	for i, name := range slices.Backward(c.found) {
		at := slices.IndexFunc(there, func(t Tool) bool { return t.Name == name })
		if at < 0 || there[at].tokens() > all { // it can be called all the same
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

// size is about how many tokens the descriptions of tools take.
func size(tools []Tool) (sum int) {
	for _, t := range tools {
		sum += t.tokens()
	}
	return sum
}

// byServer tells how many tools there are of each server, for the model.
func (cat *catalog) byServer() string {
	var b strings.Builder
	for _, sec := range cat.servers {
		if len(sec.tools) > 0 && sec.missing == "" {
			b.WriteString(plural(len(sec.tools), "tool") + " of " + quoted(sec.server) + "; ")
		}
	}
	return strings.TrimSuffix(b.String(), "; ")
}
