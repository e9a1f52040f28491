package host

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host/model"
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

// listTime bounds how long the tools of one server are waited for.
const listTime = 10 * time.Second

// Tools returns the tools that the model is offered: those of all servers that are there, by
// server in the order in which they were added and then by name.
func (h *Host) Tools(ctx context.Context) []Tool {
	h.start()
	h.mu.Lock()
	servers := slices.Clone(h.servers)
	h.mu.Unlock()
	lists := make([][]Tool, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { lists[i] = h.toolsOf(ctx, s) })
	}
	wg.Wait()
	return slices.Concat(lists...)
}

func (h *Host) toolsOf(ctx context.Context, s *server) []Tool {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var list []Tool
	err := h.Use(ctx, s.Name, func(session Session) error {
		for t, err := range session.Tools(ctx) {
			if err != nil {
				return err
			}
			list = append(list, Tool{Name: gateway.Name(s.Name, t.Name), Server: s.Name, Tool: t})
		}
		return nil
	})
	if err != nil {
		h.log().Warn("the tools of a server are missing", "server", s.Name, "err", err)
	}
	slices.SortFunc(list, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// forModel is the tool as a model is offered it.
func (t Tool) forModel() model.Tool {
	return model.Tool{Name: t.Name, Description: t.Description, Schema: t.InputSchema}
}
