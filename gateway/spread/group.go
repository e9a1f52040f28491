package spread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Replica is one of the servers of a group.
type Replica struct {
	Name string // for people, such as the host of its URL

	// Open connects to the replica, as [gateway.Source].Open does. It may be called by several
	// goroutines at once.
	Open func(context.Context) (gateway.Upstream, error)
}

// Group is a server made of replicas. The exported fields must not change after its first use. It may be
// used by several goroutines at once.
type Group struct {
	Name     string
	Replicas []Replica

	Rule      breaker.Rule // of the breaker of each replica
	NoBreaker bool         // replicas have no breakers

	// Trusted lets a call of a tool be repeated on another replica after a loss, if the server declares
	// the tool read-only or idempotent.
	Trusted bool

	// OnChange is called when the breaker of a replica has opened or closed. It must not block. If nil,
	// such changes are logged.
	OnChange func(Status)

	// Logger receives what callers do not see, such as replicas that differ from one another.
	// If nil, it is discarded.
	Logger *slog.Logger

	begin    sync.Once
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	replicas []*replica
	pinned   pins // replicas of tasks

	compareMu sync.Mutex // orders comparisons of replicas
}

// Status is the state of a replica.
type Status struct {
	Name    string
	Breaker breaker.Status
	Conns   int    // open connections
	Calls   int    // in progress
	Reason  string // why it could not be connected to last; empty: it could
	Differs string // how it differs from the replica with the lists; empty: it does not, as far as known
	Out     string // why [Group.Disable] or [Group.Restart] lets it get no requests; empty: it gets some
}

// Disabled reports whether [Group.Disable] lets the replica get no requests.
func (s *Status) Disabled() bool { return s.Out != "" && s.Out != restarting }

func (g *Group) start() {
	g.begin.Do(func() {
		g.ctx, g.cancel = context.WithCancel(context.Background())
		for _, r := range g.Replicas {
			g.replicas = append(g.replicas, newReplica(g, r))
		}
	})
}

// Close ends the probes of the breakers. It does not close connections.
func (g *Group) Close() {
	g.start()
	g.cancel()
	for _, r := range g.replicas {
		r.breaker.Stop()
	}
}

// Status returns the state of each replica, in the order of Replicas.
func (g *Group) Status() []Status {
	g.start()
	all := make([]Status, len(g.replicas))
	for i, r := range g.replicas {
		all[i] = r.status()
	}
	return all
}

func (g *Group) log() *slog.Logger {
	if g.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return g.Logger
}

// Open opens a connection to the group: to all replicas, or to one of them if there is only one, or if
// the connection is for one client and the server keeps state for it, in a session before 2026-07-28.
// Open returns when one replica is connected, and fails if none can be.
func (g *Group) Open(ctx context.Context) (gateway.Upstream, error) {
	g.start()
	if len(g.replicas) == 0 {
		return nil, fmt.Errorf("server %q has no replicas", g.Name)
	}
	l, err := g.openOne(ctx)
	if err != nil {
		return nil, err
	}
	if len(g.replicas) == 1 || mcp.CallFrom(ctx) != nil && keepsState(l.up) {
		return newSingle(g, l), nil
	}
	return newConn(ctx, g, l), nil
}

// openOne opens a connection to the best replica that can be connected to.
func (g *Group) openOne(ctx context.Context) (*line, error) {
	if len(g.replicas) == 1 { // the gateway probes it by connecting
		return g.replicas[0].open(ctx)
	}
	var failed error
	tried := map[*replica]bool{}
	for {
		r := g.fewest(func(r *replica) bool { return !tried[r] && r.allow() == nil })
		if r == nil { // those that failed before are better than nothing
			r = g.fewest(func(r *replica) bool { return !tried[r] && r.outWhy() == "" })
		}
		if r == nil && failed == nil {
			return nil, g.unavailable()
		}
		if r == nil {
			return nil, failed
		}
		tried[r] = true
		within, cancel := context.WithTimeoutCause(ctx, openTime, fmt.Errorf("it was not ready within %v", openTime))
		l, err := r.open(within)
		if err != nil && within.Err() != nil && ctx.Err() == nil {
			err = context.Cause(within)
		}
		cancel()
		switch {
		case err == nil:
			return l, nil
		case ctx.Err() != nil:
			return nil, err
		}
		if err = fmt.Errorf("replica %s: %w", r.Name, err); failed != nil {
			err = fmt.Errorf("%w; %w", failed, err) // in one line
		}
		failed = err
	}
}

// fewest returns the replica with the fewest connections of those that fit, or nil.
func (g *Group) fewest(fits func(*replica) bool) *replica {
	var best *replica
	least, first := 0, rand.IntN(len(g.replicas))
	for i := range g.replicas {
		r := g.replicas[(first+i)%len(g.replicas)]
		if n := r.status().Conns; fits(r) && (best == nil || n < least) {
			best, least = r, n
		}
	}
	return best
}

// openTime bounds the opening of a connection to one replica, so that the others are tried as well.
const openTime = 10 * time.Second

// keepsState reports whether a server keeps state for a connection.
func keepsState(up gateway.Upstream) bool {
	r, ok := up.(interface{ Revision() mcp.Revision })
	return !ok || r.Revision().Sessions()
}

// protectedOpen calls Open of a replica. A panic is an error.
func (g *Group) protectedOpen(ctx context.Context, r *replica) (up gateway.Upstream, err error) {
	defer func() {
		if v := recover(); v != nil {
			g.log().ErrorContext(ctx, "panic", "in", "Replica.Open", "server", g.Name, "err", fmt.Sprint(v), "stack", string(debug.Stack()))
			up, err = nil, errors.New("Replica.Open panicked; see the log of the gateway")
		}
	}()
	if up, err = r.Replica.Open(ctx); err == nil && up == nil {
		err = errors.New("Replica.Open returned neither a connection nor an error")
	}
	return up, err
}

// unavailable is the error if no replica may get a request.
func (g *Group) unavailable() error {
	var soonest *breaker.OpenError
	reason := ""
	for _, r := range g.replicas {
		var open *breaker.OpenError
		if out := r.outWhy(); out != "" {
			reason = cmp.Or(reason, "replica "+r.Name+" "+out)
			continue
		}
		if errors.As(r.breaker.Allow(), &open) && (soonest == nil || open.Until.Before(soonest.Until)) {
			soonest = open
		}
		reason = cmp.Or(reason, r.status().Reason)
	}
	if soonest != nil {
		return soonest
	}
	return unsent{mcp.Errorf(jsonrpc.CodeInternal, "server %q: no replica is connected: %s", g.Name, cmp.Or(reason, "they are starting"))}
}

// unsent is the error of a request that was not sent.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

// Unsent returns true, for package audit.
func (unsent) Unsent() bool { return true }

// Unreached returns true, for package metrics.
func (unsent) Unreached() bool { return true }

// repeats reports whether a request that a replica may have received may be sent to another one.
func (g *Group) repeats(req *mcp.Request, r *replica) bool {
	return revision.Reads(req.Method) || g.Trusted && calls(req) && r.repeatable(toolOf(req))
}
