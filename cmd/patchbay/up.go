package main

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/agree"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/httpapi"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/nodes"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/pagelink"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/rerun"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/servers"
	"github.com/patchbay-dev/patchbay/trace"
)

var upVerb = verb{
	name: "up", summary: "Serve all servers of mcp.json behind one endpoint.", usage: "[--http ADDR | --stdio] [SERVER] | install | uninstall",
	examples: []string{"patchbay up -- npx -y @modelcontextprotocol/server-memory"},
	server:   manyServers | wordIsServer | programIsServer,
	verbs:    []*verb{&upInstallVerb, &upUninstallVerb},
	command:  func() command { return new(upCmd) },
}

// upCmd serves all servers of mcp.json, or built-in ones, behind one endpoint.
type upCmd struct {
	HTTP  string `name:"http" default:"127.0.0.1:7420" placeholder:"ADDR" help:"Listen here; port 0: any free port."`
	Stdio bool   `name:"stdio" help:"Serve stdio, for hosts that start commands."`
	View  string `name:"view" placeholder:"NAME" help:"With --stdio: serve this view of gateway.yaml."`
	Share string `name:"share" placeholder:"CLASS" help:"Share older servers: auto, shared, session, principal."`
	paged
	protection
	governed
	measured
}

const (
	// drainTime is the time that calls in progress have when the program is told to end. With
	// closeTime, the 4 seconds that a session may take to close, that is less than 5 seconds.
	drainTime = 900 * time.Millisecond
	closeTime = 4 * time.Second
)

// startTime bounds the wait of the first table for slow servers. These are shown as starting, and a
// line follows when they are ready or fail. Tests change it.
var startTime = 1500 * time.Millisecond

// heapFloor is the size of an unused allocation, which takes no memory, in the heap of a gateway
// with a listener. Without it the heap is so small that the garbage collector runs every few
// thousand calls, at a tenth of their cost; with it the collector runs after 16 MiB of further
// allocations.
const heapFloor = 16 << 20

// Run serves until ctrl-C or, over stdio, until the end of its input.
func (c *upCmd) Run(a *app) error {
	if c.Stdio && slices.ContainsFunc(a.flags, func(f string) bool { return strings.HasPrefix(f, "--http=") }) {
		return usagef("--stdio excludes --http").Hint("patchbay help up")
	}
	if c.View != "" && !c.Stdio {
		return usagef("--view is for --stdio: over HTTP each view has a path, such as /mcp/v/%s", c.View).Hint("patchbay up --stdio --view " + c.View)
	}
	if err := a.deploy(&c.governed, &c.Limits, &reached{&c.protection, &c.measured, &c.HTTP, c.Stdio}); err != nil {
		return err
	}
	if err := c.Check(c.Stdio); err != nil {
		return err
	}
	if err := c.CheckPage(&c.protection, c.Stdio); err != nil {
		return err
	}
	if share, err := gateway.ParseShare(c.Share); err != nil {
		return usagef("--share %w", err)
	} else if share == gateway.Exclusive {
		return usagef(`--share exclusive is not for all servers; write "share": "exclusive" in the entry of the server`)
	}
	if a.served = c.Stdio; c.Stdio {
		a.wire = a.rawOut
	}
	p, err := a.upPlan(c.Stdio)
	if err != nil {
		return err
	}
	if p.path != "" {
		if err := a.env.Serves(p.path); err != nil && c.Stdio {
			return (&fault{Code: exitLoop, Err: err}).Hint("remove the server that runs patchbay up from " + p.path)
		}
	}
	made, err := a.chain(chain.Config{Log: c.Log, Limits: c.Limit, Policy: c.Policy, Audit: c.Audit, HTTP: !c.Stdio, Servers: p.path})
	if err != nil {
		return err
	}
	// Questions come before anything is started. A server whose input is missing fails alone, when
	// it starts.
	if c.Stdio {
		a.answers.Silence()
	}
	for _, s := range p.servers {
		a.env.Resolve(s)
	}
	a.answers.Silence()
	a.record.Dir = c.Record
	h := &upServer{a: a, began: time.Now(), plan: p, board: board.New(a.talk), chain: made, guarded: len(c.Auth) > 0}
	h.agree = agree.Changes{Asker: a.asker(), Foreign: a.foreign, Asks: a.tty.in && a.tty.err && !a.served}
	h.deployed()
	if h.member, err = a.member(h.nodeSteered); err != nil || a.ctx.Err() != nil {
		return err
	}
	defer h.member.Close(a.ctx)
	h.gateway = &gateway.Gateway{ID: hop.Self, Name: "patchbay", Version: Version, Logger: a.logger(), OnStatus: h.changed, TaskKeys: h.member.TaskKeys(), Tasks: h.member.Tasks(), Lock: h.member.Lock(), Owned: h.member.Owned()}
	h.servers = h.newServers(c.Share, c.Knows()) // before the counters, which report on them
	h.counters = h.newCounters(h.gateway.Owner)
	made.Count(h.counters)
	h.steered()
	h.gateway.Middleware = made.Around(h.known)
	if !c.Stdio && !c.NoPage {
		a.tee = new(trace.Tee)
		defer a.tee.Close()
	}
	onFrame, watched, err := a.recorder()
	if err != nil {
		return err
	}
	if h.member != nil {
		made.Share(h.member.Limits())
		c.Login = h.member.Logins(c.Login)
	}
	front := func(handler mcp.Handler, path string) *mcp.Server {
		return &mcp.Server{Name: "patchbay", Title: "Patchbay", Version: Version, Handler: handler, Logger: a.logger(), OnSession: h.opened, OnFrame: onFrame, Watched: watched, Shared: h.member.Share(path)}
	}
	views := made.Views(h.gateway, gateway.Name, func(path string, handler mcp.Handler) *mcp.Server {
		srv := front(handler, path)
		srv.HTTP = h.front.HTTP
		return srv
	})
	handler := views.All()
	if c.Stdio {
		if handler, err = views.Alone(c.View); err != nil {
			return chainFault(err)
		}
	}
	h.views, h.front = views, front(handler, "")
	admin, err := h.listenAdmin(&c.protection)
	if err != nil {
		return err
	}
	if admin != nil {
		defer admin.Close()
	}
	var w *listen.Endpoint
	further := map[string]http.Handler{steer.Path + "/": h.steers.API(false, "")}
	if c.Stdio {
		if err := a.inFront(h.front, made); err != nil {
			return err
		}
	} else {
		if w, err = a.listen(h.front, c.HTTP, c.protection, made, made.Front); err != nil {
			return a.explainTaken(c.HTTP, err)
		}
		if h.url = w.URL; w.Login() != nil {
			h.steers.People, h.callback = w.Login(), w.Login().CallbackURL()
		}
		w.Below(views.Below)
		c.ServeAPI(w, &httpapi.API{Version: Version, Owner: h.gateway.Owner, Views: views.Names})
		p.notes = append(append(p.notes, views.Notes(w.URL)...), w.Notes()...)
		health.Handle(w.Mux, wayTo(w), h.front, h.report)
		page, err := h.newPage(&c.paged, w, c.Auth)
		if err != nil {
			return err
		}
		pagelink.Add(page, further)
		heap := make([]byte, heapFloor)
		defer runtime.KeepAlive(heap)
	}
	unmeasured, err := c.serveMetrics(a, h.counters)
	if err != nil {
		return err
	}
	defer unmeasured()
	unsteered, err := h.serveAdmin(admin, w, c.Admin)
	if err != nil {
		return err
	}
	defer unsteered()
	var served <-chan error
	start := func() { h.servers.Set(p.servers, p.faulty, p.share) }
	if c.Stdio {
		start()
	} else if served, err = h.member.Serve(a.ctx, w, h.seen, made.Trail(), start); err != nil {
		return err
	}
	defer a.openSocket(h.report, further).Close()
	ctx, stop := context.WithCancel(a.ctx)
	defer stop()
	var following sync.WaitGroup
	following.Go(func() { h.followLogins(ctx) })
	following.Go(func() { made.Follow(ctx, h.gateway.Changed, h.readiness) })
	if c.Stdio {
		a.noteStdio()
		over := make(chan error, 1)
		go func() { over <- h.front.ServeStdio(a.ctx) }()
		served = over
		a.talk.Note("serving %s over stdio (%s)", strings.Join(h.servers.Names(), ", "), p.from)
	} else {
		if err := h.show(ctx); err != nil {
			return err
		}
	}
	h.board.Report()
	if p.path != "" { // questions about the file come below the table
		following.Go(func() { h.follow(ctx, p.path) })
	}
	select {
	case <-a.ctx.Done():
		if err = nil; c.Stdio {
			within(closeTime, func() { <-served }) // the last calls have their lines in the logs
		}
	case err = <-served:
	}
	a.leave()
	drain := h.member.Ending(served, drainTime)
	if h.member != nil {
		w.Close()
	}
	stop()
	following.Wait() // no server changes from here on
	h.ending.Store(true)
	if w != nil {
		// A handler that ignores the end of its context must not delay the end of the program.
		within(drain+drain/2, func() { w.End(a.ctx, drain) })
	}
	h.member.Leave(a.ctx)
	within(closeTime, h.steers.Ending(h.servers.Close)) // the guards end processes that are still running
	return err
}

// within runs do, and returns after d at the latest; do then continues on its own.
func within(d time.Duration, do func()) {
	done := make(chan struct{})
	go func() { // ends with the program at the latest
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// upServer is one run of up.
type upServer struct {
	a        *app
	began    time.Time
	url      string // of the endpoint; empty over stdio
	pageURL  string // empty: there is no page
	callback string // redirect URI of login, at the identity provider; empty: nobody logs in here
	*plan           // the plan that it began with
	gateway  *gateway.Gateway
	front    *mcp.Server
	servers  *launch.Servers
	about    sync.Map // chain.Server by name
	spoken   sync.Map // mcp.Revision by name, of servers that were ready
	chain    *chain.Chain
	views    *chain.Views
	board    *board.Board
	steers   *steer.Gateway   // nil: a bridge
	asks     *steer.Questions // nil: nobody but clients answers
	member   *nodes.Member    // nil: the gateway is alone
	counters *metrics.Counters
	ending   atomic.Bool
	guarded  bool                         // callers need a credential that a person puts into their configuration
	ready    atomic.Pointer[deploy.Ready] // of gateway.yaml; nil: the defaults

	agree agree.Changes // used by the goroutine that follows the file
}

// plan is the set of servers that up serves.
type plan struct {
	servers []config.Server
	share   string          // default of the servers' "share"
	faulty  []launch.Faulty // servers that cannot be started as they are written
	from    string          // the source, for people
	path    string          // the configuration file to follow; empty: none
	notes   []string        // lines below the table
	stdio   []string        // arguments of the program that serve the same over stdio; nil: none
}

// demo returns the servers of a machine without any configuration.
func demo(from string) (*plan, error) {
	list, notes, err := entry.Demo()
	return &plan{from: from, servers: list, notes: notes}, err
}

// noConfig returns the error of "patchbay up" over stdio without servers. A host starts it in any
// folder, and would get built-in servers in place of the person's own.
func noConfig(said string) error {
	return usagef("%s; over stdio, built-in servers must be named", said).Hint("patchbay up --stdio --config FILE")
}

// upPlan returns the servers to serve: those of -s or mcp.json, else built-in ones.
func (a *app) upPlan(stdio bool) (*plan, error) {
	if a.dashed {
		s, err := a.target()
		return &plan{servers: []config.Server{entry.Short(s)}, from: "the command line"}, err
	}
	if len(a.Servers) > 0 {
		p := &plan{from: "the command line", stdio: []string{"up", "--stdio"}}
		for i, name := range a.Servers {
			if slices.Contains(a.Servers[:i], name) {
				return nil, usagef("-s %s is given twice", name)
			}
			s, err := a.named(name)
			if err != nil {
				return nil, err
			}
			p.servers = append(p.servers, s)
			p.stdio = append(p.stdio, "-s", name)
		}
		if read, err := a.inspectConfig(); err == nil && read.path != "" {
			p.stdio = append(p.stdio, "--config", ownfile.InRealFolder(read.path))
		}
		return p, nil
	}
	read, err := a.inspectConfig()
	if err != nil {
		return nil, err
	}
	if whole := read.about(""); len(whole) > 0 {
		return nil, whole
	}
	file := read.file
	switch {
	case file == nil && stdio:
		return nil, noConfig("no mcp.json was found; looked for " + strings.Join(a.places(), ", "))
	case file == nil:
		return demo("built-in servers, as no mcp.json was found")
	case len(file.Servers) > 0 || len(read.names()) > 0 || len(file.Models) == 0 && file.Model == "":
	case stdio:
		return nil, noConfig(file.Path + " has no servers")
	default: // it was written for models
		return demo("built-in servers, as " + file.Path + " has none")
	}
	if err := a.mayUse(file); err != nil {
		return nil, err
	}
	p := &plan{servers: launch.Enabled(file), share: file.Share, faulty: launch.FaultyServers(read.faults), from: file.Path, path: file.Path, stdio: []string{"up", "--stdio", "--config", ownfile.InRealFolder(file.Path)}}
	if a.verb != "up" {
		for _, f := range p.faulty {
			a.talk.Note("warning: skipped %s: %v", f.Name, f.Why)
		}
	}
	if len(p.servers)+len(p.faulty) == 0 {
		return nil, usagef("%s has no enabled server", file.Path).Hint(a.again("-s", servers.Names()[0]))
	}
	return p, nil
}

// paste returns lines to paste into hosts.
func (h *upServer) paste() []string {
	return (&rerun.Gateway{URL: h.views.URL(h.url), File: h.path, Guarded: h.guarded, Stdio: h.stdio, Callback: h.callback}).Lines()
}

// show prints the table of servers once each has started or failed, at most after startTime, and
// lines to paste into hosts.
func (h *upServer) show(ctx context.Context) error {
	a := h.a
	a.print("patchbay " + Version + " serves " + a.shown(h.report().Where()))
	a.print("")
	if err := a.out.Flush(); err != nil {
		return err
	}
	h.board.Wait(ctx, h.servers.Names(), startTime)
	if ctx.Err() != nil {
		return nil
	}
	h.board.Report() // later changes are not in the table
	h.table()
	for _, line := range board.PerSession(h.report().Servers, a.shown) {
		a.print(line)
	}
	h.views.Warn()
	a.print("(" + a.shown(h.from) + ")")
	for _, note := range h.notes {
		a.print("(" + a.shown(note) + ")")
	}
	a.print("")
	for _, line := range h.paste() {
		a.print(a.shown(line))
	}
	a.print("")
	a.print("ctrl-C ends it.")
	return a.out.Flush()
}
