package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers"
	"github.com/patchbay-dev/patchbay/trace"
)

// upCmd serves every server of mcp.json, or the built-in ones, behind one endpoint.
type upCmd struct {
	HTTP     string `name:"http" default:"127.0.0.1:7420" placeholder:"ADDR" help:"Listen here; port 0: any free one."`
	Insecure bool   `name:"insecure-no-auth" help:"Serve where others can reach it, unauthenticated."`
}

const (
	// startTime is how long the first table waits for servers that are slow to start.
	// They join when they are ready.
	startTime = 15 * time.Second

	// drainTime is for calls in progress when the program is told to end. With
	// the 4 seconds that a session may take to close it makes less than 5.
	drainTime = 900 * time.Millisecond
)

// Run serves until ctrl-C.
func (c *upCmd) Run(a *app) error {
	list, from, err := a.upServers()
	if err != nil {
		return err
	}
	g := &gateway.Gateway{Name: "patchbay", Version: Version, Logger: a.logger()}
	front := &mcp.Server{Name: "patchbay", Title: "Patchbay", Version: Version, Handler: g, Logger: a.logger()}
	if front.OnFrame, err = a.recorder(list...); err != nil {
		return err
	}
	web, err := a.listen(front, c.HTTP, c.Insecure)
	if err != nil {
		return err
	}
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(a.ctx))
	defer stopKeeping()
	board := newBoard(a, list)
	var kept sync.WaitGroup
	for i, s := range list {
		kept.Go(func() {
			open := func(ctx context.Context) (gateway.Upstream, error) { return a.openUpstream(ctx, s) }
			g.Keep(keeping, s.Name, open, func(up gateway.Upstream, err error) { board.report(keeping, i, up, err) })
		})
	}
	served := web.serve()
	board.wait(a.ctx, startTime)
	if a.ctx.Err() == nil {
		board.show(web.url, from)
		if err := a.out.Flush(); err != nil {
			return err
		}
	}
	select {
	case <-a.ctx.Done():
		err = nil
	case err = <-served:
	}
	// A handler that ignores its end must not hold up the program's.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		web.end(a.ctx, drainTime)
	}()
	select {
	case <-ended:
	case <-time.After(drainTime + drainTime/2):
	}
	stopKeeping()
	kept.Wait()
	return err
}

// upServers returns the servers to offer and where they stand: those of -s or
// mcp.json, else the built-in ones.
func (a *app) upServers() ([]config.Server, string, error) {
	if a.dashed || a.Server != "" {
		s, err := a.target()
		if err == nil {
			s, err = s.Resolve(a.input)
		}
		return []config.Server{s}, "the command line", err
	}
	file, err := a.loadConfig()
	if err != nil {
		return nil, "", err
	}
	if file == nil {
		var list []config.Server
		for _, name := range servers.Names() {
			list = append(list, config.Server{Name: name, Builtin: name, Args: servers.Unattended(name)})
		}
		return list, "no mcp.json found, so these are the built-in servers", nil
	}
	var list []config.Server
	for _, s := range file.Servers {
		if s.Disabled {
			continue
		}
		// Questions come before anything is started. A server whose input is
		// missing fails when it is to start, and the others do not.
		if resolved, err := s.Resolve(a.input); err == nil {
			s = resolved
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, "", usagef("%s names no server that is enabled", file.Path).hint(a.again("-s", servers.Names()[0]))
	}
	return list, file.Path, nil
}

// openUpstream opens a session whose questions go to the callers of the gateway.
// Those that belong to no call cannot be put to anybody.
func (a *app) openUpstream(ctx context.Context, s config.Server) (gateway.Upstream, error) {
	s, err := s.Resolve(a.input)
	if err != nil {
		return nil, err
	}
	client, err := a.newClient(s)
	if err != nil {
		return nil, err
	}
	if on := client.OnFrame; on != nil {
		client.OnFrame = func(f trace.Frame) {
			f.Conn = s.Name + "/" + f.Conn
			on(f)
		}
	}
	client.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	client.OnSample = func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
		return nil, mcp.Errorf(-1, "there is no model to ask outside of a call")
	}
	client.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
	ctx, cancel := a.startContext(ctx, s)
	defer cancel()
	said := newChildLog(a.talk, a.Verbose)
	p, err := openServer(ctx, s, client, said)
	said.opened()
	if err != nil {
		return nil, err
	}
	return p, nil
}

// board shows what became of the servers.
type board struct {
	a     *app
	rows  []boardRow
	first sync.WaitGroup // servers that nothing was heard of yet

	mu    sync.Mutex
	shown bool // the table was printed, so news are lines; guarded by mu
}

type boardRow struct {
	name, tools, prompts, resources, state string
	heard                                  bool
}

func newBoard(a *app, list []config.Server) *board {
	b := &board{a: a, rows: make([]boardRow, len(list))}
	for i, s := range list {
		b.rows[i] = boardRow{name: s.Name, tools: "-", prompts: "-", resources: "-", state: "starting"}
	}
	b.first.Add(len(list))
	return b
}

// report takes in what became of a server.
func (b *board) report(ctx context.Context, i int, up gateway.Upstream, err error) {
	row := boardRow{name: b.rows[i].name, tools: "-", prompts: "-", resources: "-", heard: true}
	if err != nil {
		row.state = "failed: " + oneLine(err.Error())
	} else {
		p := up.(*peer)
		info := p.Server()
		row.state = oneLine(strings.TrimSpace(info.Name+" "+info.Version)) + ", " + string(p.Revision())
		count := func(capability string, n func() (int, error)) string {
			if !info.Capabilities.Has(capability) {
				return "0"
			}
			got, err := n()
			if err != nil {
				return "?"
			}
			return strconv.Itoa(got)
		}
		ctx, cancel := context.WithTimeout(ctx, startTime)
		defer cancel()
		row.tools = count("tools", func() (int, error) { return counted(p.Tools(ctx)) })
		row.prompts = count("prompts", func() (int, error) { return counted(p.Prompts(ctx)) })
		row.resources = count("resources", func() (int, error) { return counted(p.Resources(ctx)) })
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.rows[i].heard {
		b.first.Done()
	}
	b.rows[i] = row
	if b.shown {
		b.a.talk.note("%s: %s", row.name, row.state)
	}
}

// counted counts what an iterator yields.
func counted[T any](seq func(func(T, error) bool)) (int, error) {
	n := 0
	for _, err := range seq {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// wait waits until something was heard of every server, but not for longer than d.
func (b *board) wait(ctx context.Context, d time.Duration) {
	all := make(chan struct{})
	go func() { // ends with the servers' first report, or with the program
		b.first.Wait()
		close(all)
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-all:
	case <-t.C:
	case <-ctx.Done():
	}
}

// show prints what is served, and lines to paste into hosts.
func (b *board) show(address, from string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown = true
	a := b.a
	a.print("patchbay " + Version + " serves " + address)
	a.print("")
	b.table()
	a.print("(" + from + ")")
	a.print("")
	a.print("Claude Code:")
	a.print("  claude mcp add --transport http patchbay " + address)
	a.print("VS Code (.vscode/mcp.json):")
	a.print(`  {"servers": {"patchbay": {"type": "http", "url": "` + address + `"}}}`)
	a.print("Cursor and others (mcp.json):")
	a.print(`  {"mcpServers": {"patchbay": {"url": "` + address + `"}}}`)
	a.print("Here:")
	a.print("  patchbay tools -s " + address)
	a.print("")
	a.print("ctrl-C ends it.")
}

// table prints a line per server.
func (b *board) table() {
	rows := append([]boardRow{{name: "SERVER", tools: "TOOLS", prompts: "PROMPTS", resources: "RESOURCES", state: "STATE"}}, b.rows...)
	wide := 0
	for _, r := range rows {
		wide = max(wide, len(r.name))
	}
	for _, r := range rows {
		b.a.print(fmt.Sprintf("%-*s  %5s  %7s  %9s  %s", wide, r.name, r.tools, r.prompts, r.resources, r.state))
	}
}

// logger logs what nobody can be told otherwise to standard error.
func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	if a.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.talk, &slog.HandlerOptions{Level: level}))
}
