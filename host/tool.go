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
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Tool is a tool as the model sees it.
type Tool struct {
	Name   string // unique; of [A-Za-z0-9_-], at most 64 characters
	Server string // empty: the tool is the host's own
	*mcp.Tool

	own
}

// own describes a tool of the host itself; the zero value stands for tools of servers. Tools of the
// host that concern no server need no approval.
type own struct {
	// as resolves a call to a tool of a server and its arguments. The call is then shown, approved
	// and audited as that tool. If nil, the call is what it seems.
	as func(args json.RawMessage) (Tool, json.RawMessage, error)

	// do runs the tool. If nil, the server does.
	do func(ctx context.Context, args json.RawMessage) ([]model.Part, error)
}

// toolName returns the name of a server's tool for the model. It depends only on its arguments, and
// never equals the name of a tool of the host.
func toolName(server, tool string) string {
	name := gateway.Name(server, tool)
	if slices.Contains(ownNames, name) { // for example tool "more" of server "read"
		return gateway.Name(server, tool+" ") // the space forces a hash
	}
	return name
}

// tokens estimates the number of tokens in that many bytes.
func tokens(bytes int) int { return text.Tokens(bytes) }

// tokens estimates the tokens of the description of the tool.
func (t Tool) tokens() int {
	return tokens(len(t.Name)+len(t.Description)+len(t.InputSchema)) + 10
}

// forModel converts the tool for a request to a model.
func (t Tool) forModel() model.Tool {
	return model.Tool{Name: t.Name, Description: t.Description, Schema: t.InputSchema}
}

// Tools returns the tools that a model may be offered: those of all available servers, without
// disabled ones, in the order in which the servers were added, and sorted by name. Lists are
// cached, so Tools may be called often. It waits at most 10 seconds for servers that have not
// answered yet.
func (h *Host) Tools(ctx context.Context) []Tool {
	return h.listedTools(ctx, listTime, h.enabled)
}

// AllTools returns the tools as Tools does, including disabled ones.
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

// toolsOf returns all tools of a server. With an error it returns the last known tools.
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
		list = slices.CompactFunc(list, func(a, b Tool) bool { return a.Name == b.Name })
		s.seen(list)
		return list, nil
	})
}

// forPages reports whether a tool is only for the pages of a server, not for models (extension
// io.modelcontextprotocol/ui, visibility).
func forPages(t *mcp.Tool) bool {
	var ui struct {
		Visibility []string `json:"visibility"`
	}
	return json.Unmarshal(t.Meta["ui"], &ui) == nil && len(ui.Visibility) > 0 && !slices.Contains(ui.Visibility, "model")
}

// rule enables or disables the tools with matching names.
type rule struct {
	pattern string
	off     bool
}

// Disable hides tools of a server from the model, by name, where * matches any text. Without tools
// it hides the whole server: tools, resources and instructions. It applies to all conversations
// until Enable.
func (h *Host) Disable(server string, tools ...string) error { return h.turn(server, true, tools) }

// Enable reverses Disable, for the whole server or for some of its tools. It also enables tools
// that [Server].Offers leaves out. The last call that matches a tool applies.
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

// Disabled reports whether a tool of a server is hidden from the model, or the server does not
// exist.
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
