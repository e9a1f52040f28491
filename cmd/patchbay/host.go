package main

import (
	"cmp"
	"context"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/hook"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/internal/serverid"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
)

// hosting is the host of this run, with its servers.
type hosting struct {
	*host.Host
	a     *app
	board *board.Board
	names []string // of the servers, in order

	skills    []host.Server  // to start after the others
	approvals *approval.File // nil: approvals are not kept

	mu    sync.Mutex
	peers []*launch.Session // all sessions that were opened; guarded by mu
}

// callRules bound the calls of a model that were approved, with the same middleware as in up.
type callRules struct {
	governed
	limits
}

// localPerson returns the principal of calls that begin on this machine.
func localPerson() *auth.Principal {
	name := "user"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return &auth.Principal{ID: "local#" + name, Scheme: "local", Subject: name, Name: name}
}

// newHost returns a host for the person of this run, with their permanent approvals and the chain around
// each of its servers. The decisions about calls are in the audit log of gateway.yaml, else in that of
// the user. The policy and gateway.yaml are followed, as in up. The calls have the principal local#NAME,
// where NAME is the user of this machine. Fields of the host that do not concern servers, such as the
// model, may be set until start. If nobody closes it, it is closed when the program ends, after the
// output is flushed.
func (a *app) newHost(b *callRules, list []config.Server) (*hosting, error) {
	h, err := a.hosting(&host.Host{})
	if err != nil {
		return nil, err
	}
	if h.approvals, err = approval.Open(""); err != nil {
		return nil, err
	}
	h.Approvals, h.Condition = h.approvals, allow.Condition
	hooks, err := a.hooks()
	if err != nil {
		return nil, err
	}
	h.Hooks = hook.Host(hooks)
	made, err := a.chain(chain.Config{Limits: b.Limit, Policy: b.Policy, Calls: true})
	if err != nil {
		return nil, err
	}
	about, names := map[string]chain.Server{}, []string(nil)
	for _, s := range list {
		names = append(names, entry.ShortName(s, names))
		about[names[len(names)-1]] = aboutServer(s)
	}
	h.Audit, h.Middleware = a.decisions(made.Trail()), made.Host(func(server string) chain.Server { return about[server] })
	a.ctx = auth.With(a.ctx, localPerson())
	ctx, stop := context.WithCancel(a.ctx)
	var following sync.WaitGroup
	following.Go(func() { made.Follow(ctx, h.Changed, func(deploy.Ready) {}) })
	a.atEnd = append(a.atEnd, func() {
		stop()
		following.Wait()
	}, h.leave)
	return h, nil
}

// decisions returns the Audit of a host, which keeps decisions about calls, and their ends, in an audit log.
func (a *app) decisions(trail *audit.Trail) func(context.Context, host.Decision) (context.Context, error) {
	endings := map[host.Outcome]middleware.Outcome{
		host.Succeeded: middleware.OK, host.Failed: middleware.ToolError, host.Denied: middleware.Denied,
		host.Cancelled: middleware.Canceled, host.Broken: middleware.Failed, host.Unknown: middleware.Failed,
	}
	return func(ctx context.Context, d host.Decision) (context.Context, error) {
		e := audit.Entry{
			Conversation: d.Conversation, Server: &audit.Server{Name: d.Server, Identity: d.Identity}, Tool: d.Tool, Definition: d.Definition,
			Arguments: &audit.Arguments{Value: d.Arguments}, Decision: &audit.Decision{Effect: "deny", By: d.By, Rule: d.Rule},
			Outcome: string(endings[d.Outcome]), Cached: d.Cached, Millis: float64(d.Took.Microseconds()) / 1000, Reason: a.secrets.Text(d.Reason),
		}
		if d.Allowed {
			e.Decision.Effect = "allow"
		}
		if d.Outcome == "" { // the call is about to be made
			return trail.Begin(ctx, e), nil
		}
		trail.End(ctx, e)
		return ctx, nil
	}
}

// hosting completes a host with the settings of this run. The caller closes it.
func (a *app) hosting(base *host.Host) (*hosting, error) {
	h := &hosting{a: a, board: board.New(a.talk), Host: base}
	h.Name, h.Version, h.Logger, h.LogLevel = "patchbay", Version, a.logger(), a.logLevel()
	dirs := a.Root
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	var err error
	if h.Roots, err = rootsOf(dirs); err != nil {
		return nil, err
	}
	told := h.OnStatus
	h.OnStatus = func(s host.ServerStatus) {
		if h.board.Tell(s.Status); told != nil {
			told(s)
		}
	}
	_, _, err = a.recorder() // open the recording before several goroutines want it
	return h, err
}

// start starts the servers concurrently. Questions for their inputs come first; a server whose
// input is missing fails alone.
func (h *hosting) start(list []config.Server) error {
	var err error
	if h.OnSample, err = h.a.sampled(); err != nil {
		return err
	}
	identities := make([]string, len(list))
	for i, s := range list {
		if identities[i], err = h.identityOf(s); err != nil {
			return err
		}
	}
	h.a.answers.Silence()
	for i, s := range list {
		name := entry.ShortName(s, h.names)
		h.names = append(h.names, name)
		log := h.a.newServerLog(name)
		bound, _ := h.a.startTimeout(s)
		err := h.Add(host.Server{
			Name: name, Identity: identities[i], Trusted: trustedServer(s), Group: s.Group, Cache: s.Cache, Offers: s.Offers,
			CallTimeout: cmp.Or(h.a.callTimeout(s), defaultTimeout), Idle: s.Idle, StartTimeout: bound, Stderr: log.Last,
			Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
				u, err := h.a.openPeer(ctx, s, c, log)
				if err != nil {
					return nil, err
				}
				h.keep(u.Session)
				return u, nil
			},
		})
		if err != nil {
			return err
		}
	}
	for _, s := range h.skills {
		if err := h.Add(s); err != nil { // the person has a server of that name
			h.a.talk.Note("%v", err)
			continue
		}
		h.names = append(h.names, s.Name)
	}
	return nil
}

// wait waits until each server has started or failed, at most startTime, and prints those that are
// not available. If none is available, it returns an error.
func (h *hosting) wait(ctx context.Context) error {
	h.board.Wait(ctx, h.names, startTime)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var lost []host.ServerStatus
	for _, s := range h.Servers() {
		if s.State != gateway.Ready && s.State != gateway.Idle {
			lost = append(lost, s)
		}
	}
	h.board.Report()
	if len(lost) > 0 && len(lost) == len(h.names) {
		return h.lost(lost)
	}
	for _, s := range lost {
		h.board.Complain(s.Status)
	}
	return nil
}

// lost returns the error if no server is available.
func (h *hosting) lost(lost []host.ServerStatus) error {
	f := &fault{Code: exitUnreachable}
	if s := lost[0]; len(lost) == 1 {
		reason, said := board.Apart(s.Reason)
		f.Err = fmt.Errorf("%s: %s: %s", s.Name, s.State, oneLine(reason))
		f.Detail = strings.Join(said, "\n")
	} else {
		f.Err = fmt.Errorf("none of the %d servers is available", len(lost))
		for _, s := range lost {
			h.board.Complain(s.Status)
		}
		f.Hint(h.a.beside("config", "doctor"))
	}
	for _, s := range lost {
		if s.State == gateway.NeedsLogin {
			f.Code = exitUnauthorized
			f.Hint(s.Reason)
		}
	}
	return f
}

func (h *hosting) keep(p *launch.Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peers = append(slices.DeleteFunc(h.peers, over), p)
}

func over(p *launch.Session) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// leave ends the servers when the program is about to end, as Leave of a session does.
func (h *hosting) leave() {
	bound := launch.LeaveGrace
	if h.a.Trace != "" { // the end of servers belongs to the recording
		bound = closeTime + time.Second
	}
	within(bound, func() { h.Close() })
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.peers {
		p.HandOver()
	}
}

// trustedServer reports whether approvals and policies rely on the annotations of a server's tools:
// its entry of mcp.json says so, or it is built in. Fetch and openapi are the exceptions, because a page or an API can
// inject instructions that make the model send what it has read elsewhere in a request.
func trustedServer(s config.Server) bool {
	return s.Trusted || s.Builtin != "" && s.Builtin != "fetch" && s.Builtin != "openapi"
}

// identityOf returns the identity that approvals of a server are kept for.
func (h *hosting) identityOf(s config.Server) (string, error) {
	var digest func(string) (string, error)
	if h.approvals != nil {
		digest = h.approvals.Digest
	}
	return serverid.Of(s, h.a.env.Resolve, digest)
}
