package chat

import (
	"context"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// lists is what servers offer, as it was last fetched: for completion, which cannot wait.
type lists struct {
	tools     []host.Tool
	resources []resource
	prompts   []prompted

	at       time.Time // of the last fetching; zero: it is to be done again
	fetching bool
}

type resource struct {
	server string
	*mcp.Resource
	template bool // its URI is one with variables
}

type prompted struct {
	server string
	*mcp.Prompt
}

const (
	listsGood = 30 * time.Second
	listsTime = 10 * time.Second // that servers are waited for
	maxListed = 2000             // entries of a list of one server
)

func (k *lists) forget() { k.at = time.Time{} }

// know fetches the lists unless they are fresh.
func (u *ui) know() {
	k := &u.known
	if k.fetching || u.look.now.Sub(k.at) < listsGood {
		return
	}
	k.fetching = true
	u.c.start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, listsTime)
		defer cancel()
		found := lists{tools: u.c.h.Tools(ctx), resources: u.c.resources(ctx), prompts: u.c.prompts(ctx)}
		u.c.mail.put(func(u *ui) {
			found.at = u.look.now
			u.known = found
			u.menu.refresh(u)
		})
	})
}

// fromEach asks all servers that are there, side by side, and joins what they answer in their
// order. Those that fail are left out.
func fromEach[T any](ctx context.Context, h *host.Host, list func(context.Context, string, host.Session) ([]T, error)) []T {
	servers := h.Servers()
	found := make([][]T, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		if s.State != gateway.Ready && s.State != gateway.Idle && s.State != gateway.Starting {
			continue
		}
		wg.Go(func() {
			var mine []T
			err := h.Use(ctx, s.Name, func(session host.Session) error {
				var err error
				mine, err = list(ctx, s.Name, session)
				return err
			})
			if err == nil || len(mine) > 0 {
				found[i] = mine
			}
		})
	}
	wg.Wait()
	var all []T
	for _, f := range found {
		all = append(all, f...)
	}
	return all
}

func (c *Chat) resources(ctx context.Context) []resource {
	return fromEach(ctx, c.h, func(ctx context.Context, server string, s host.Session) (out []resource, _ error) {
		for r, err := range s.Resources(ctx) {
			if err != nil || len(out) == maxListed {
				return out, err
			}
			out = append(out, resource{server, r, false})
		}
		for t, err := range s.Templates(ctx) {
			if err != nil || len(out) == maxListed {
				return out, nil // a server may have none
			}
			out = append(out, resource{server, &mcp.Resource{URI: t.URITemplate, Name: t.Name, Title: t.Title, Description: t.Description}, true})
		}
		return out, nil
	})
}

func (c *Chat) prompts(ctx context.Context) []prompted {
	return fromEach(ctx, c.h, func(ctx context.Context, server string, s host.Session) (out []prompted, _ error) {
		for p, err := range s.Prompts(ctx) {
			if err != nil || len(out) == maxListed {
				return out, err
			}
			out = append(out, prompted{server, p})
		}
		return out, nil
	})
}
