package spread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// replica is one of the servers of a group, with what all connections have found out about it.
type replica struct {
	Replica
	g       *Group
	breaker allower

	mu       sync.Mutex
	load     load           // guarded by mu
	lines    map[*line]bool // open; guarded by mu
	out      string         // why the operator lets it get no requests; empty: it gets some; guarded by mu
	reason   string         // Status.Reason; guarded by mu
	facts    *facts         // nil: unknown; guarded by mu
	differs  string         // Status.Differs; guarded by mu
	outdated chan struct{}  // closed when facts must be requested again; guarded by mu
	changed  chan struct{}  // closed when it may get requests again, or none any more; guarded by mu
	asking   []time.Time    // when calls have asked their callers, and go on at the replica meanwhile; guarded by mu
	again    chan struct{}  // closed when the operator lets it get requests again; guarded by mu
	heard    time.Time      // when the last request ended with an answer; guarded by mu
}

// allower is a breaker, or none.
type allower interface {
	Allow() error
	Done(context.Context, mcp.Result, error)
	Fail(kind breaker.Kind, cause string)
	Trip(cause string)
	Reset()
	Status() breaker.Status
	Stop()
}

// noBreaker is always closed.
type noBreaker struct{}

func (noBreaker) Allow() error                            { return nil }
func (noBreaker) Done(context.Context, mcp.Result, error) {}
func (noBreaker) Fail(breaker.Kind, string)               {}
func (noBreaker) Trip(string)                             {}
func (noBreaker) Reset()                                  {}
func (noBreaker) Status() breaker.Status                  { return breaker.Status{} }
func (noBreaker) Stop()                                   {}

func newReplica(g *Group, of Replica) *replica {
	r := &replica{Replica: of, g: g, breaker: noBreaker{}, changed: make(chan struct{}), again: make(chan struct{}), outdated: make(chan struct{})}
	if !g.NoBreaker {
		r.breaker = &breaker.Breaker{Name: r.title(), Rule: g.Rule, Probe: r.probe, OnChange: r.onChange}
	}
	return r
}

// title names the replica in errors.
func (r *replica) title() string {
	if len(r.g.Replicas) == 1 {
		return fmt.Sprintf("server %q", r.g.Name)
	}
	return fmt.Sprintf("replica %s of server %q", r.Name, r.g.Name)
}

func (r *replica) status() Status {
	b := r.breaker.Status()
	r.mu.Lock()
	defer r.mu.Unlock()
	return Status{Name: r.Name, Out: r.out, Breaker: b, Conns: len(r.lines), Calls: r.load.open, Reason: r.reason, Differs: r.differs}
}

// open connects to the replica.
func (r *replica) open(ctx context.Context) (*line, error) {
	up, err := r.g.protectedOpen(ctx, r)
	defer r.wake() // after the unlocking
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil || context.Cause(ctx) != context.Canceled {
			r.reason = err.Error()
		}
		return nil, err
	}
	l := &line{r: r, up: up}
	r.reason = ""
	if r.lines == nil {
		r.lines = map[*line]bool{}
	}
	r.lines[l] = true
	go func() { // ends with the connection
		<-up.Done()
		r.mu.Lock()
		delete(r.lines, l)
		r.mu.Unlock()
		r.wake()
	}()
	return l, nil
}

// probe finds out whether the replica answers, on a connection of its own.
func (r *replica) probe(ctx context.Context) error {
	up, err := r.g.protectedOpen(ctx, r)
	if err != nil {
		return err
	}
	defer up.Close()
	return ping(ctx, up)
}

// ping sends a request that every server answers: ping, or server/discover since 2026-07-28.
func ping(ctx context.Context, up gateway.Upstream) error {
	err := pingOver(ctx, up)
	if errors.Is(err, errNoPing) {
		_, err = up.Handle(ctx, &mcp.Request{Method: revision.MethodDiscover})
	}
	return err
}

// errNoPing is the error for a connection over which no ping can be sent.
var errNoPing = errors.New("the connection has no method Raw")

// pingOver sends a ping over a connection, which the connection itself must not answer. An error that the
// server answers with is an answer, unless it is the one of a broken server.
func pingOver(ctx context.Context, up gateway.Upstream) error {
	raw, ok := up.(interface {
		Raw(ctx context.Context, method string, params any, opts ...mcp.CallOption) (json.RawMessage, error)
	})
	if !ok {
		return errNoPing
	}
	method := revision.MethodPing
	if !keepsState(up) {
		method = revision.MethodDiscover
	}
	_, err := raw.Raw(ctx, method, nil, mcp.WithoutCache())
	var rpc *mcp.Error
	var status *mcp.HTTPError
	switch {
	case ctx.Err() != nil:
		return err
	case errors.As(err, &rpc) && rpc.Code != jsonrpc.CodeInternal, errors.As(err, &status) && status.Status < http.StatusInternalServerError, errors.Is(err, mcp.ErrSessionLost):
		return nil
	}
	return err
}

// onChange reports a change of the breaker.
func (r *replica) onChange(s breaker.Status) {
	r.wake()
	r.mu.Lock()
	if s.Open {
		r.load.cancelReads(nil, fmt.Errorf("%s does not answer: %s", r.title(), s.Cause))
	} else {
		r.load.forget()
	}
	r.mu.Unlock()
	switch {
	case r.g.OnChange != nil:
		r.g.OnChange(r.status())
	case s.Open:
		r.g.log().Warn("server gets no requests for now, because its breaker has opened", "server", r.g.Name, "replica", r.Name, "cause", s.Cause, "until", s.Until)
	default:
		r.g.log().Info("server gets requests again, because its breaker has closed", "server", r.g.Name, "replica", r.Name)
	}
}

// allow returns why the replica may get no requests, or nil.
func (r *replica) allow() error {
	if out := r.outWhy(); out != "" {
		return unsent{mcp.Errorf(jsonrpc.CodeInternal, "%s %s", r.title(), out)}
	}
	return r.breaker.Allow()
}

// wake tells those who wait that the replica may get requests again, or none any more.
func (r *replica) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// change returns a channel that is closed by wake.
func (r *replica) change() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// pick returns the replica with less load for a request of two random ones that fit, or nil if none fits.
func (g *Group) pick(req *mcp.Request, fits func(*replica) bool) *replica {
	var fit [16]*replica
	some := fit[:0]
	for _, r := range g.replicas {
		if fits(r) {
			some = append(some, r)
		}
	}
	switch len(some) {
	case 0:
		return nil
	case 1:
		return some[0]
	}
	i := rand.IntN(len(some))
	j := rand.IntN(len(some) - 1)
	if j >= i {
		j++
	}
	a, b := some[i], some[j]
	if now, call := time.Now(), calls(req); b.cost(now, call) < a.cost(now, call) {
		return b
	}
	return a
}

func (r *replica) cost(now time.Time, call bool) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.load.cost(now, call)
}

// usual returns the latency of calls of tools, or of other requests, at the slowest other replica, in seconds: at most
// faultTook, 0 if it is not known.
func (g *Group) usual(r *replica, call bool) (latency float64) {
	for _, other := range g.replicas {
		if other != r {
			other.mu.Lock()
			latency = max(latency, other.load.past(call).latency)
			other.mu.Unlock()
		}
	}
	return min(latency, faultTook)
}
