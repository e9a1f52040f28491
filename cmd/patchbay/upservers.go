package main

import (
	"context"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// newServers returns an empty set of servers for a gateway. The argument share is the value of
// --share; known reports whether callers are authenticated.
func (h *upServer) newServers(share string, known bool) *launch.Servers {
	a := h.a
	return &launch.Servers{
		Env: a.env, Gateway: h.gateway, Share: share, Known: known, Dev: true, Said: a.said(), LeftOut: h.board.LeaveOut, Replica: h.board.Replica, Groups: a.verb == "up",
		Client: func(s config.Server) (*mcp.Client, error) {
			c := &mcp.Client{Name: "patchbay", Title: "Patchbay", Version: Version, Logger: a.logger().With("server", s.Name)}
			if err := a.answerQuestions(c); err != nil {
				return nil, err
			}
			return c, a.outfit(c, s)
		},
		StartTimeout: func(s config.Server) time.Duration {
			bound, _ := a.startTimeout(s)
			return bound
		},
		Starting: func(s config.Server) {
			h.about.Store(s.Name, aboutServer(s))
			a.noteUnused(a.verb, s)
		},
	}
}

// known returns what the chain knows about the server of a name.
func (h *upServer) known(name string) chain.Server {
	about, _ := h.about.Load(name)
	s, _ := about.(chain.Server)
	s.Revision = func() mcp.Revision {
		r, _ := h.spoken.Load(name)
		revision, _ := r.(mcp.Revision)
		return revision
	}
	return s
}

// aboutServer returns what the chain knows about a server.
func aboutServer(s config.Server) chain.Server {
	return chain.Server{Trusted: trustedServer(s), Config: s}
}

// changed is called with each change of a server's state.
func (h *upServer) changed(s gateway.Status) {
	if s.Revision != "" {
		h.spoken.Store(s.Name, s.Revision)
	}
	h.board.Tell(s)
}

// noteUnused prints the settings of a server that have no effect.
func (a *app) noteUnused(verb string, s config.Server) {
	var unused []string
	if s.Group != "" && verb != "up" {
		unused = append(unused, `"group"`)
	}
	switch {
	case s.Cache > 0 && verb == "up" && !trustedServer(s):
		a.talk.Note(`%s: "cache" has no effect without "trusted": true, as the server says itself which tools only read`, s.Name)
	case s.Cache > 0 && verb != "up":
		unused = append(unused, `"cache"`)
	}
	if len(unused) > 0 {
		a.talk.Note("%s: %s ignores %s, which only conversations use", s.Name, verb, strings.Join(unused, " and "))
	}
}

// openPeer opens a session on behalf of others: a model, or the clients of a gateway. The argument
// client has the functions that answer questions; openPeer sets the rest of it. The error of
// openPeer and the content of log go to others, so they hold no secrets.
func (a *app) openPeer(ctx context.Context, s config.Server, client *mcp.Client, log *launch.Log) (*launch.Upstream, error) {
	if err := a.outfit(client, s); err != nil {
		return nil, err
	}
	return a.env.Upstream(ctx, s, client, log)
}

// newServerLog keeps the last lines of a server's standard error.
func (a *app) newServerLog(name string) *launch.Log { return a.env.NewLog(name, a.said()) }

// said returns a function that prints each line of the servers' standard error with --verbose; else
// nil.
func (a *app) said() func(line string) {
	if !a.Verbose {
		return nil
	}
	return func(line string) { a.talk.Always(visible(line)) }
}
