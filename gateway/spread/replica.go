package spread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// replica is one of the servers of a group, with what all connections have found out about it.
type replica struct {
	Replica
	g       *Group
	breaker allower

	mu       sync.Mutex
	load     load          // guarded by mu
	conns    int           // open; guarded by mu
	reason   string        // Status.Reason; guarded by mu
	facts    *facts        // nil: unknown; guarded by mu
	differs  string        // Status.Differs; guarded by mu
	outdated chan struct{} // closed when facts must be requested again; guarded by mu
	changed  chan struct{} // closed when the breaker opens or closes; guarded by mu
	looking  bool          // a look at a call that has no answer is in progress; guarded by mu
	heard    time.Time     // when the last request ended with an answer; guarded by mu
}

// allower is a breaker, or none.
type allower interface {
	Allow() error
	Done(context.Context, mcp.Result, error)
	Trip(cause string)
	Status() breaker.Status
	Stop()
}

// noBreaker is always closed.
type noBreaker struct{}

func (noBreaker) Allow() error                            { return nil }
func (noBreaker) Done(context.Context, mcp.Result, error) {}
func (noBreaker) Trip(string)                             {}
func (noBreaker) Status() breaker.Status                  { return breaker.Status{} }
func (noBreaker) Stop()                                   {}

func newReplica(g *Group, of Replica) *replica {
	r := &replica{Replica: of, g: g, breaker: noBreaker{}, changed: make(chan struct{}), outdated: make(chan struct{})}
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
	return Status{Name: r.Name, Breaker: b, Conns: r.conns, Calls: r.load.open, Reason: r.reason, Differs: r.differs}
}

// open connects to the replica.
func (r *replica) open(ctx context.Context) (gateway.Upstream, error) {
	up, err := r.g.protectedOpen(ctx, r)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil || context.Cause(ctx) != context.Canceled {
			r.reason = err.Error()
		}
		return nil, err
	}
	r.reason = ""
	r.conns++
	go func() { // ends with the connection
		<-up.Done()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.conns--
	}()
	return up, nil
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

// ping sends a request that every server answers: ping, or server/discover since 2026-07-28. An error
// that the server answers with is an answer.
func ping(ctx context.Context, up gateway.Upstream) error {
	raw, ok := up.(interface {
		Raw(ctx context.Context, method string, params any, opts ...mcp.CallOption) (json.RawMessage, error)
	})
	if !ok {
		_, err := up.Handle(ctx, &mcp.Request{Method: "server/discover"})
		return err
	}
	method := "ping"
	if !keepsState(up) {
		method = "server/discover"
	}
	_, err := raw.Raw(ctx, method, nil, mcp.WithoutCache())
	return err
}

// onChange reports a change of the breaker.
func (r *replica) onChange(s breaker.Status) {
	r.mu.Lock()
	close(r.changed)
	r.changed = make(chan struct{})
	if s.Open {
		r.load.cancelReads(fmt.Errorf("%s does not answer: %s", r.title(), s.Cause))
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

// breakerChange returns a channel that is closed when the breaker opens or closes.
func (r *replica) breakerChange() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// send sends a request over a connection to the replica, and counts it.
func (r *replica) send(ctx context.Context, up mcp.Handler, req *mcp.Request, reads bool) (mcp.Result, error) {
	own := ctx
	if reads {
		var cancel context.CancelCauseFunc
		own, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer r.cancels(cancel)()
	}
	began := time.Now()
	r.mu.Lock()
	r.load.begin(began)
	r.mu.Unlock()
	patience := time.AfterFunc(suspicion, func() { r.look(began) })
	res, err := up.Handle(own, req)
	patience.Stop()
	r.breaker.Done(own, res, err)
	if err != nil && ctx.Err() == nil && own.Err() != nil {
		err = &lostError{r: r, cause: context.Cause(own)} // the breaker has opened
	}
	f := faultOf(ctx, err)
	if errors.As(err, new(*mcp.LimitError)) { // it may have come before the suspicion
		go r.look(began) // bounded in time
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if f == answered {
		r.heard = now
	}
	r.load.end(began, now, f, ctx.Err() != nil)
	return res, err
}

// suspicion is how long a call has no answer before the replica is probed, if it has answered nothing
// else since.
const suspicion = 5 * time.Second

// look opens the breaker if the replica has answered nothing since a call began, and does not answer a
// probe either. A call may take long, but a server that works answers a ping meanwhile.
func (r *replica) look(began time.Time) {
	r.mu.Lock()
	if r.g.ctx.Err() != nil || r.looking || r.heard.After(began) || r.breaker.Allow() != nil || r.g.NoBreaker {
		r.mu.Unlock()
		return
	}
	r.looking = true
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.g.ctx, suspicion)
	defer cancel()
	err := r.probe(ctx)
	r.mu.Lock()
	r.looking = false
	silent := !r.heard.After(began)
	if err == nil {
		r.heard = time.Now()
	}
	r.mu.Unlock()
	if err != nil && silent {
		cause := err.Error()
		if ctx.Err() != nil {
			cause = fmt.Sprintf("it has not answered a call, nor a probe within %v", suspicion)
		}
		r.breaker.Trip(cause)
	}
}

// cancels lets a request be cancelled when the breaker opens, until the returned function is called.
func (r *replica) cancels(cancel context.CancelCauseFunc) (over func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.load.addRead(cancel)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.load.reads, id)
	}
}

// pick returns the replica with less load of two random ones that fit, or nil if none fits.
func (g *Group) pick(from []*replica, fits func(*replica) bool) *replica {
	var fit [16]*replica
	some := fit[:0]
	for _, r := range from {
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
	if now := time.Now(); b.cost(now) < a.cost(now) {
		return b
	}
	return a
}

func (r *replica) cost(now time.Time) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.load.cost(now)
}
