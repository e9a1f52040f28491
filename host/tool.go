package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/parallel"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Tool is a tool of a server, as the model knows it.
type Tool struct {
	Name   string // of [A-Za-z0-9_-], at most 64 characters; no other has it
	Server string // empty: the tool is the host's own
	*mcp.Tool

	own
}

// own is what makes a tool one of the host itself; the zero value is for those of servers.
// Those that concern no server need no approval.
type own struct {
	// as returns what a call really means: a tool that belongs to a server, as which it is shown,
	// approved and audited, and the arguments of that. Nil: what it says.
	as func(args json.RawMessage) (Tool, json.RawMessage, error)

	// do does what it is for. Nil: the server does.
	do func(ctx context.Context, args json.RawMessage) ([]model.Part, error)
}

// toolName is the name of a tool of a server, which depends on nothing else. None is that of a
// tool of the host.
func toolName(server, tool string) string {
	name := gateway.Name(server, tool)
	if slices.Contains(ownNames, name) { // such as tool "more" of server "read"
		return gateway.Name(server, tool+" ") // which is hashed
	}
	return name
}

// tokens is about how many tokens a model takes for so many bytes.
func tokens(bytes int) int { return (bytes + 3) / 4 }

// tokens is about how many the description of the tool takes.
func (t Tool) tokens() int {
	return tokens(len(t.Name)+len(t.Description)+len(t.InputSchema)) + 10
}

// forModel is the tool as a model is offered it.
func (t Tool) forModel() model.Tool {
	return model.Tool{Name: t.Name, Description: t.Description, Schema: t.InputSchema}
}

// Tools returns the tools that a model may be offered: those of all servers that are there and
// that are not disabled, by server in the order in which these were added, and then by name. What
// servers have said is kept, so that it may be called often; a server that has not answered yet
// is waited for, 10 seconds at most.
func (h *Host) Tools(ctx context.Context) []Tool {
	return h.listedTools(ctx, listTime, h.enabled)
}

// AllTools is Tools with those that are disabled.
func (h *Host) AllTools(ctx context.Context) []Tool {
	return h.listedTools(ctx, listTime, func(*server, string) bool { return true })
}

func (h *Host) listedTools(ctx context.Context, patience time.Duration, want func(*server, string) bool) []Tool {
	servers := h.snapshot()
	lists := parallel.Map(servers, func(s *server) []Tool {
		all, err := h.toolsOf(ctx, s, patience)
		if err != nil {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(all), func(t Tool) bool { return !want(s, t.Tool.Name) })
	})
	return slices.Concat(lists...)
}

// toolsOf returns all tools of a server, or what was known of them and why they are missing.
func (h *Host) toolsOf(ctx context.Context, s *server, patience time.Duration) ([]Tool, error) {
	return listOf(ctx, h, s, &s.tools, "tools", patience, func(ctx context.Context, session *mcp.Session) ([]Tool, error) {
		found, err := gather(ctx, session.Tools)
		if err != nil {
			return nil, err
		}
		var list []Tool
		for _, t := range found {
			if !forPages(t) {
				list = append(list, Tool{Name: toolName(s.Name, t.Name), Server: s.Name, Tool: t})
			}
		}
		slices.SortFunc(list, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
		return slices.CompactFunc(list, func(a, b Tool) bool { return a.Name == b.Name }), nil
	})
}

// forPages tells whether a tool is for the pages of a server and not for models (extension
// io.modelcontextprotocol/ui, visibility).
func forPages(t *mcp.Tool) bool {
	var ui struct {
		Visibility []string `json:"visibility"`
	}
	return json.Unmarshal(t.Meta["ui"], &ui) == nil && len(ui.Visibility) > 0 && !slices.Contains(ui.Visibility, "model")
}

// rule says of the tools whose names fit a pattern whether they are off.
type rule struct {
	pattern string
	off     bool
}

// Disable takes tools of a server from the model, by name, where * stands for any text. With no
// tool it takes the whole server: its tools, resources and instructions. That holds until
// Enable, in all conversations.
func (h *Host) Disable(server string, tools ...string) error { return h.turn(server, true, tools) }

// Enable takes Disable back, for the whole server or for some of its tools, also for those that
// [Server].Offers leaves out. What was said last holds.
func (h *Host) Enable(server string, tools ...string) error { return h.turn(server, false, tools) }

func (h *Host) turn(name string, off bool, tools []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.find(name)
	if s == nil {
		return fmt.Errorf("there is no server %q", bounded(name, 100))
	}
	if len(tools) == 0 {
		s.off = off
	}
	for _, pattern := range tools {
		s.rules = slices.DeleteFunc(s.rules, func(r rule) bool { return r.pattern == pattern })
		s.rules = append(s.rules, rule{pattern, off})
	}
	return nil
}

// Disabled tells whether a tool of a server is kept from the model.
func (h *Host) Disabled(server, tool string) bool {
	h.mu.Lock()
	s := h.find(server)
	h.mu.Unlock()
	return s == nil || !h.enabled(s, tool)
}

func (h *Host) enabled(s *server, tool string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.off {
		return false
	}
	for _, r := range slices.Backward(s.rules) {
		if wildcard.Match(r.pattern, tool) {
			return !r.off
		}
	}
	return s.Offers == nil || s.Offers(tool)
}
