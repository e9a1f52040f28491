package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/inspector"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/mcp"
)

var inspectVerb = verb{
	name: "inspect", summary: "Open a page that calls servers and shows the wire.", usage: "[SERVER]",
	examples: []string{"patchbay inspect everything", "patchbay inspect -- npx -y @modelcontextprotocol/server-memory"},
	server:   manyServers | wordIsServer | programIsServer,
	command:  func() command { return new(inspectCmd) },
}

// inspectCmd serves the page for servers that nobody else uses.
type inspectCmd struct{}

func (c *inspectCmd) Run(a *app) error {
	p, err := a.upPlan(false)
	if err != nil {
		return err
	}
	made, err := a.chain(chain.Config{})
	if err != nil {
		return err
	}
	for _, s := range p.servers {
		a.env.Resolve(s)
	}
	h := &upServer{a: a, began: time.Now(), plan: p, board: board.New(a.talk), chain: made}
	h.gateway = &gateway.Gateway{ID: hop.Self, Name: "patchbay", Version: Version, Logger: a.logger(), OnStatus: h.changed}
	h.servers = h.newServers("", false)
	h.counters = h.newCounters(h.gateway.Owner)
	made.Count(h.counters)
	h.gateway.Middleware = made.Around(h.known)
	fronts := map[string]*mcp.Server{}
	for _, s := range p.servers {
		fronts[s.Name] = &mcp.Server{Name: "patchbay", Version: Version, Handler: h.gateway.Direct(s.Name), Logger: a.logger()}
	}
	page := &inspector.Page{Title: p.from, Version: Version, Home: "tools", Report: h.report, Server: func(name string) *mcp.Server { return fronts[name] }, Logger: a.logger()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.servers.Set(p.servers, p.faulty, p.share)
	defer within(closeTime, h.servers.Close)
	srv := &http.Server{Handler: page}
	go srv.Serve(l)
	a.print("patchbay " + Version + " inspects " + strings.Join(h.servers.Names(), ", ") + ": http://" + l.Addr().String() + "/")
	a.out.Flush()
	<-a.ctx.Done()
	return srv.Shutdown(context.Background())
}
