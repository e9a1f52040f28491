package host

import (
	"cmp"
	"context"

	"github.com/patchbay-dev/patchbay/mcp"
)

// client makes the client of a server: its questions go to the person.
func (h *Host) client(server string) *mcp.Client {
	c := &mcp.Client{Name: cmp.Or(h.Name, "patchbay-host"), Version: h.Version, Logger: h.Logger}
	c.OnElicit = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if h.Person == nil {
			return &mcp.ElicitResult{Action: "decline"}, nil
		}
		return h.Person.Elicit(ctx, &Elicitation{Server: server, ElicitRequest: r})
	}
	if h.Roots != nil {
		c.Roots = func(context.Context) ([]mcp.Root, error) { return h.Roots, nil }
	}
	return c
}
