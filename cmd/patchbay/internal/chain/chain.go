// Package chain makes the middlewares of up, serve, mock, bridge, run and chat. It is the one place
// that knows their order, the outermost first:
//
//	spans → access log → counters → audit → limits → (gateway or host) → calls in progress → counters → policy → cache → equal calls → audit → counters → spans → server
//
// Limits of tools are behind the views of gateway.yaml, and so count calls under the names of the gateway.
//
// Begin with [New]. A server of this program takes [Chain.Own]; a gateway takes [Chain.Front] in front
// and [Chain.Around] around each of its servers; a host, which nothing is in front of, takes
// [Chain.Host] around each of its servers. [Program.Load] reads the deployment that gateway.yaml describes,
// and [Chain.Follow] follows it.
//
// # Guarantees
//
//   - The order is the same for all verbs, and a step that is not configured is not in the chain.
//   - The audit log has a line when a request has ended or was refused, by a limit too, and one before
//     a call leaves; the configuration at the start and each change of it have lines.
//   - A limit or a policy that replaces another one counts from the next request on. A faulty file
//     changes nothing, and the person gets its faults once.
package chain

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/accesslog"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
	"github.com/patchbay-dev/patchbay/telemetry"
	"github.com/patchbay-dev/patchbay/trace"
)

// Config names the steps of a chain. The zero value has none.
type Config struct {
	Log    string   // path of the access log; "-": Program.Lines; empty: none
	Limits []string // SPECs of "patchbay help limits"
	Policy string   // path of the rules; empty: none
	Audit  string   // path of the audit log; empty: that of File, or none
	Calls  bool     // without another audit log, that of this user, which their other programs share
	HTTP   bool     // callers come over HTTP, so that they have addresses

	File    *deploy.File // gateway.yaml, to follow, with its teams, its audit and its telemetry; nil: none
	Servers string       // path of mcp.json, whose digest is in the audit log; empty: none

	// Asked is called with each access that the policy decides, and with its rules, before it decides;
	// nil: it is not. It must not block.
	Asked func(set *rules.Set, a *policy.Access)
}

// Program is what a chain needs of the program.
type Program struct {
	Talk    *terminal.Talk // gets faults of files that change, and news of them
	Logger  *slog.Logger
	Lines   io.Writer // standard error, for lines of the access log
	Wire    any       // standard output if it belongs to a client over stdio, else nil
	Version string

	Redactor *trace.Redactor // of arguments and results that are logged or sent
}

// Error is a value of [Config] that cannot be used.
type Error struct {
	Err   error
	Next  string // a command or a flag that helps
	Usage bool   // the command line is wrong, not a file
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Chain is the middlewares of one run. Its methods may be used by several goroutines, except
// [Chain.Front] and [Chain.Own], of which one is called once.
type Chain struct {
	config  Config
	program Program
	log     *accesslog.Log // nil: none, or not opened yet
	limits  *limits        // nil: none, and none can be added
	rules   *ruleFile      // nil: none

	sender   *sender           // of telemetry; nil: none
	counters *metrics.Counters // nil: none

	opened func(server string) mcp.Middleware // nil: none

	auditFile string
	trail     *audit.Trail                 // nil: none
	teams     atomic.Pointer[deploy.Teams] // nil: none
	followed  followed
	guard     atomic.Pointer[auth.Guard]      // nil: callers need no credential
	secured   atomic.Pointer[tlsfiles.Server] // nil: without TLS
	front     []mcp.Middleware                // that Front or Own has returned
	views     *Views                          // nil: none
	caches    sync.Map                        // *cached by server
	about     func(server string) Server
}

// New reads the limits and the rules, opens the audit log, and begins to send telemetry if there is a
// collector. Close must follow. Its errors are each an [*Error].
func New(c Config, p Program) (*Chain, error) {
	out := &Chain{config: c, program: p}
	l, err := newLimiter(c.Limits, c.HTTP)
	if err != nil {
		return nil, err
	}
	if l != nil || c.File != nil {
		out.limits = &limits{}
		out.limits.set(l)
	}
	if c.Policy != "" {
		if out.rules, err = openRules(c.Policy); err != nil {
			return nil, err
		}
		out.rules.asked = c.Asked
	}
	if c.File != nil {
		out.teams.Store(&c.File.Teams)
	}
	if err := out.openAudit(); err != nil {
		return nil, err
	}
	if out.sender, err = newSender(c.File, &p); err != nil {
		out.closeAudit()
		return nil, err
	}
	return out, nil
}

// Count adds counters to the chain: in front, around each server, and behind a gateway directly in
// front of it. They count the decisions of the policy too, have the state of the audit log and of
// the followed files, and are sent with the telemetry. It is called before the other methods.
func (c *Chain) Count(counters *metrics.Counters) {
	c.counters, counters.Logger = counters, c.program.Logger
	counters.Faults = func() int { return len(c.unapplied()) }
	if c.rules != nil {
		c.rules.counters = counters
	}
	if c.config.File != nil {
		counters.Team = c.Team
	}
	if c.trail != nil {
		counters.Audit = func() metrics.AuditLog {
			s := c.trail.Log.Stats()
			return metrics.AuditLog{Lag: s.Lag, Queued: s.Queued, Dropped: s.Dropped}
		}
	}
	if c.sender != nil {
		c.sender.counters.Store(counters)
	}
}

// Open adds a middleware around each server of a gateway, in front of all others. It is called before
// [Chain.Around].
func (c *Chain) Open(around func(server string) mcp.Middleware) { c.opened = around }

// step is a place in the chain. The order of the constants is that of the middlewares.
type step int

const (
	spansIn   step = iota // spans of the requests of callers
	accessLog             // with the ids of their traces
	counting
	auditing
	limiting
	opening // of calls in progress; the first step behind a gateway
	calling
	ruling
	caching   // results, for a gateway
	sharing   // executions of calls with an idempotency key, for a gateway
	beginning // of calls, for the audit
	measuring
	spansOut // spans of the requests to servers
	end
)

// Server is what the steps around a server know about it.
type Server struct {
	Trusted  bool                // the policy and the audit log believe the annotations of its features
	Config   config.Server       // its URL or its command, for the audit log and for the spans of requests to it
	Revision func() mcp.Revision // that it speaks, empty: unknown; nil: always unknown
}

// CacheTime returns how long results of the server's read-only tools are cached; 0: not at all.
func (s Server) CacheTime() time.Duration {
	if !s.Trusted { // the server says itself which tools only read
		return 0
	}
	return max(0, s.Config.Cache)
}

// place is a server at the end of a chain.
type place struct {
	server  string
	foreign bool // it is not part of this program
	Server
}

// middleware returns the middleware of a step; nil: none.
func (c *Chain) middleware(s step, at place) mcp.Middleware {
	switch {
	case s == accessLog && c.log != nil:
		return c.log.Middleware()
	case s == spansIn && c.sender != nil && !at.foreign:
		return c.sender.front(c.config.HTTP)
	case s == spansOut && c.sender != nil && at.foreign:
		return c.sender.around(at.server, at.Server)
	case s == counting && c.counters != nil:
		return c.counters.Front()
	case s == opening && c.opened != nil && at.foreign:
		return c.opened(at.server)
	case s == calling && c.counters != nil:
		return c.counters.Server(at.server)
	case s == measuring && c.counters != nil && at.foreign:
		return c.counters.Upstream(at.server)
	case s == auditing && c.trail != nil:
		return c.trail.Outer()
	case s == beginning && c.trail != nil:
		return c.trail.Around(at.server)
	case s == limiting && c.limits != nil:
		return c.limits.limit
	case s == ruling && c.rules != nil && at.foreign:
		return policy.Foreign(at.server, at.Trusted, c.rules, c.program.Logger)
	case s == ruling && c.rules != nil:
		return policy.Middleware(at.server, c.rules, c.program.Logger)
	case s == caching:
		return c.cache(at)
	case s == sharing:
		return c.sharing(at)
	}
	return nil
}

// list returns the middlewares from one step up to before another, the outermost first.
func (c *Chain) list(from, to step, at place) (list []mcp.Middleware) {
	for s := from; s < to; s++ {
		if mw := c.middleware(s, at); mw != nil {
			list = append(list, mw)
		}
	}
	return list
}

// around joins the middlewares from a step to the end, for each server; nil: there are none.
func (c *Chain) around(from step, about func(server string) Server) func(server string) mcp.Middleware {
	c.about = about
	if c.counters == nil && c.opened == nil && len(c.list(from, end, place{foreign: true})) == 0 {
		return nil
	}
	return func(server string) mcp.Middleware {
		list := c.list(from, end, place{server, true, about(server)})
		return func(next mcp.Handler) mcp.Handler {
			for _, mw := range slices.Backward(list) {
				next = mw(next)
			}
			return next
		}
	}
}

// Front opens the access log and returns the middlewares in front of a gateway, the outermost first.
func (c *Chain) Front() ([]mcp.Middleware, error) { return c.open(opening, place{}) }

// Own opens the access log and returns all middlewares of a server of this program, the outermost
// first.
func (c *Chain) Own(server string, about Server) ([]mcp.Middleware, error) {
	c.about = func(string) Server { return about }
	return c.open(end, place{server: server, Server: about})
}

// Around returns the middlewares around each server behind a gateway; nil: there are none. It calls
// about for each server that the gateway gets.
func (c *Chain) Around(about func(server string) Server) func(server string) mcp.Middleware {
	return c.around(opening, about)
}

// Host returns all middlewares around each server of a host, whose limits count its calls of all
// servers together; nil: there are none.
func (c *Chain) Host(about func(server string) Server) func(server string) mcp.Middleware {
	c.begun()
	return c.around(spansIn, about)
}

// open opens the access log and returns the middlewares up to a step.
func (c *Chain) open(to step, at place) ([]mcp.Middleware, error) {
	// Without it, Go ends a program whose standard output or error has lost its reader.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if c.config.Log != "" {
		if err := c.openLog(); err != nil {
			return nil, err
		}
	}
	c.begun()
	c.front = c.list(spansIn, to, at)
	return c.front, nil
}

func (c *Chain) openLog() error {
	fault := func(err error) {
		if err == nil {
			c.program.Talk.Always("patchbay: --log: the access log works again")
			return
		}
		c.program.Talk.Always("patchbay: warning: --log: " + screen.Visible(err.Error()))
	}
	if c.config.Log == "-" {
		c.log = accesslog.New(c.program.Lines, fault)
	} else {
		var err error
		if c.log, err = accesslog.Open(c.config.Log, c.program.Wire, fault); err != nil {
			return usage("--log -", "--log: %w", err)
		}
	}
	if !c.config.HTTP {
		c.log.Transport = "stdio"
	}
	c.log.Trace = telemetry.TraceID
	return nil
}

// Listen sets the options of a listener, and of its guard, that belong to the chain. It is called after
// Front or Own.
func (c *Chain) Listen(o *listen.Options) {
	switch {
	case c.log != nil:
		o.Around, o.Behind = c.log.Handler, c.log.Caller
	case c.trail != nil:
		o.Around = accesslog.Note
	}
	refused := func(r *http.Request, code string, err error) {
		accesslog.Refused(r, err)
		if c.counters != nil {
			c.counters.Refused(code)
		}
	}
	if o.Guard != nil {
		c.guard.Store(o.Guard)
		o.Guard.Refused = refused
	}
	if o.Admin != nil {
		o.Admin.Refused = refused
	}
	if o.Login != nil && c.trail != nil {
		o.Login.OnLogin = func(e issuer.Event) { c.person(o.Login.URL, e) }
	}
	if c.limits != nil {
		o.Limit = c.limits.protect
	}
	if o.TLS != nil {
		c.secured.Store(o.TLS)
	}
}

// Unapplied notes why a file that the program follows by itself, such as mcp.json, is not, or not all,
// in use; empty: it is.
func (c *Chain) Unapplied(path, fault string) { c.followed.set(path, fault) }

// Follow follows the file of the rules and gateway.yaml until ctx ends. It calls changed when the rules
// have changed, and ready with a changed member ready.
func (c *Chain) Follow(ctx context.Context, changed func(), ready func(deploy.Ready)) {
	var file sync.WaitGroup
	if c.config.File != nil {
		file.Go(func() { c.followFile(ctx, ready) })
	}
	defer file.Wait()
	if c.rules != nil {
		c.followRules(ctx, func() {
			c.configured("changed", map[string]string{"policy": c.rules.Digest()})
			changed()
		})
	}
}

// Close writes the last lines of the access log and of the audit log, and sends the last spans, which
// takes at most 3 seconds. Requests that end later have none.
func (c *Chain) Close() {
	if c.sender != nil {
		c.sender.close()
	}
	c.closeAudit()
	if c.log != nil {
		c.log.Close()
	}
}
