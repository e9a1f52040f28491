package main

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/pagelink"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/recording"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/inspector"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

var inspectVerb = verb{
	name: "inspect", summary: "Open a page that calls servers and shows the wire.", usage: "[SERVER... | TRACE | -- COMMAND...] [--no-open]",
	examples: []string{"patchbay inspect everything", "patchbay inspect -- npx -y @modelcontextprotocol/server-memory", "patchbay inspect t.jsonl"},
	server:   manyServers | wordIsServer | programIsServer,
	details: `Serves the page on a free port of this machine, for you alone, until ctrl-C.
A recording of --trace or --record is shown instead of servers.`,
	command: func() command { return new(inspectCmd) },
}

// inspectCmd serves the page for servers that nobody else uses.
type inspectCmd struct {
	NoOpen bool `name:"no-open" help:"Print the link instead of opening the browser."`
}

// Run serves until ctrl-C.
func (c *inspectCmd) Run(a *app) error {
	if !a.dashed && len(a.Servers) == 1 && recording.Is(a.Servers[0]) {
		return c.show(a, a.Servers[0])
	}
	p, err := a.upPlan(false)
	if err != nil {
		return err
	}
	frames := &inspector.Frames{Redactor: a.secrets.Redactor()}
	a.tee = new(trace.Tee)
	defer a.tee.Close()
	frames.Follow(a.tee)
	onFrame, watched, err := a.recorder()
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
	h.steered()
	h.gateway.Middleware = made.Around(h.known)
	ports, err := listen.Loopback()
	if err != nil {
		return err
	}
	page := h.basicPage("http://" + ports[0].Addr().String() + "/")
	fronts := map[string]*mcp.Server{}
	for _, s := range p.servers {
		fronts[s.Name] = &mcp.Server{Name: "patchbay inspect", Version: Version, Handler: h.gateway.Direct(s.Name), Logger: a.logger(), OnFrame: onFrame, Watched: watched}
	}
	p.from = strings.Join(slices.Sorted(maps.Keys(fronts)), ", ")
	page.Title, page.Home, page.Sandbox, page.Server = p.from, "tools", listen.Sandbox(ports), func(name string) *mcp.Server { return fronts[name] }
	page.Gateway.Counters, page.Gateway.Admin, page.Gateway.Login, page.Frames = h.counters, h.steers.For, h.steers.Login, frames
	if a.dashed {
		page.Words = append([]string{"--"}, a.command...)
	} else if len(a.Servers) == 1 && isServerURL(a.Servers[0]) {
		page.Words = []string{"-s", a.Servers[0]}
	}
	w := listen.NewOwn(ports, page, page.Close, a.logger())
	h.pageURL = page.URL
	h.servers.Set(p.servers, p.faulty, p.share)
	defer a.openSocket(h.report, pagelink.Add(page, map[string]http.Handler{})).Close()
	err = c.until(a, page, w.Serve())
	a.leave()
	h.ending.Store(true)
	within(drainTime+drainTime/2, func() { w.End(a.ctx, drainTime, slices.Collect(maps.Values(fronts))...) })
	within(closeTime, h.steers.Ending(h.servers.Close)) // the guards end processes that are still running
	return err
}

// show serves the page over a recording.
func (c *inspectCmd) show(a *app, file string) error {
	page := &inspector.Page{Version: Version, Local: localPerson(), Logger: a.logger()}
	w, err := recording.Show(a.ctx, file, page)
	if err != nil {
		return usagef("%w", err).Hint(shell([]string{"patchbay", "trace", file}))
	}
	defer w.End(a.ctx, drainTime)
	report := &health.Report{State: health.Ready, Version: Version, PID: os.Getpid(), Page: page.URL, From: file, Since: time.Now()}
	defer a.openSocket(func() *health.Report { return report }, pagelink.Add(page, map[string]http.Handler{})).Close()
	return c.until(a, page, w.Serve())
}

// until opens the page and waits for ctrl-C, or for the error of its server.
func (c *inspectCmd) until(a *app, page *inspector.Page, served <-chan error) error {
	if err := c.open(a, page); err != nil {
		return err
	}
	select {
	case <-a.ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// open opens the browser, or prints the link.
func (c *inspectCmd) open(a *app, page *inspector.Page) error {
	a.print("patchbay " + Version + " inspects " + a.shown(page.Title) + " at " + page.URL)
	lines, warning := pagelink.Show(a.ctx, page, !c.NoOpen)
	if warning != nil {
		a.talk.Note("warning: %v", warning)
	}
	for _, line := range append(lines, "ctrl-C ends it.") {
		a.print(line)
	}
	return a.out.Flush()
}
