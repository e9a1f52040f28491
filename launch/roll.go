package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
)

// Errors of the actions on one replica.
var (
	ErrNoReplicas  = errors.New("launch: the server has no replicas")
	ErrLastReplica = errors.New("launch: it is the last replica in use; disable the server")
)

// rollTime bounds the restart of one replica, after its calls have finished.
const rollTime = time.Minute

// roll is a restart of replicas, one after another.
type roll struct {
	done chan struct{} // closed when the fields below are set
	did  []string      // that were restarted
	left []string      // that were not, because of err
	err  error         // why the last one of did did not start again
}

// RestartReplica restarts one replica of a server, as [Servers.Restart] restarts each.
func (f *Servers) RestartReplica(ctx context.Context, name, replica string, drain time.Duration) (*Steered, error) {
	f.run()
	f.mu.Lock()
	s, err := f.replicated(name, replica)
	if err == nil && f.out[name][replica] != "" {
		err = fmt.Errorf("replica %s of server %q: %w", replica, name, spread.ErrDisabled)
	}
	if err != nil {
		f.mu.Unlock()
		return nil, err
	}
	return f.roll(ctx, s, []string{replica}, drain), nil
}

// DisableReplica lets a replica get no calls until EnableReplica, with the text that says what enables it.
// Calls in progress finish, for at most 30 seconds. The last replica in use cannot be disabled.
func (f *Servers) DisableReplica(name, replica, says string) (*Steered, error) {
	f.run()
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.replicated(name, replica)
	if err != nil {
		return nil, err
	}
	if f.out[name][replica] != "" {
		return &Steered{Status: s.status(), Already: true}, nil
	}
	if !slices.ContainsFunc(s.group.Replicas, func(r spread.Replica) bool { return r.Name != replica && f.out[name][r.Name] == "" }) {
		return nil, ErrLastReplica
	}
	if _, err := s.group.Disable(replica, says, leaveTime); err != nil {
		return nil, err
	}
	if f.out == nil {
		f.out = map[string]map[string]string{}
	}
	if f.out[name] == nil {
		f.out[name] = map[string]string{}
	}
	f.out[name][replica] = says
	f.journal(name).Event("replica " + replica + ": disabled by its operator")
	return &Steered{Status: s.status()}, nil
}

// EnableReplica lets a replica get calls again that DisableReplica has taken out of use, and waits until it
// is connected or has failed, or ctx ends.
func (f *Servers) EnableReplica(ctx context.Context, name, replica string) (*Steered, error) {
	f.run()
	f.mu.Lock()
	s, err := f.replicated(name, replica)
	if err != nil {
		f.mu.Unlock()
		return nil, err
	}
	already := f.out[name][replica] == ""
	if !already {
		delete(f.out[name], replica)
		f.journal(name).Event("replica " + replica + ": enabled by its operator")
	}
	f.mu.Unlock()
	if already {
		return &Steered{Status: s.status(), Already: true}, nil
	}
	did := &Steered{}
	if _, err := s.group.Enable(ctx, replica); err != nil {
		did.Reason = err.Error()
	}
	did.Status = s.status()
	return did, nil
}

// replicated returns a server that is in use and has the replica; mu is held.
func (f *Servers) replicated(name, replica string) (*server, error) {
	i, err := f.find(name)
	switch {
	case err != nil:
		return nil, err
	case f.disabled[name]:
		return nil, ErrDisabled
	}
	s := f.list[i]
	if s.group == nil || len(s.group.Replicas) < 2 {
		return nil, ErrNoReplicas
	}
	unknown := &spread.UnknownReplica{Name: replica}
	for _, r := range s.group.Replicas {
		if r.Name == replica {
			return s, nil
		}
		unknown.Names = append(unknown.Names, r.Name)
	}
	return nil, unknown
}

// inUse returns the replicas that a restart restarts one after another, or nil if none works now: the whole
// server is then started again.
func (s *server) inUse() (names []string) {
	if s.group == nil || len(s.group.Replicas) < 2 || s.status().State != gateway.Ready {
		return nil
	}
	works := false
	for _, r := range s.group.Status() {
		if r.Disabled() {
			continue
		}
		names = append(names, r.Name)
		works = works || r.Conns > 0 && !r.Breaker.Open
	}
	if !works {
		return nil
	}
	return names
}

// roll restarts replicas one after another, and waits for that until ctx ends. It waits for such a restart
// that is in progress instead. The lock mu is held, and roll releases it.
func (f *Servers) roll(ctx context.Context, s *server, names []string, drain time.Duration) *Steered {
	if drain < 0 || drain > leaveTime {
		drain = leaveTime
	}
	r := s.rolling
	joined := r != nil && !r.over()
	if !joined {
		r = &roll{done: make(chan struct{})}
		s.rolling = r
		if f.restarted == nil {
			f.restarted = map[string]int{}
		}
		f.restarted[s.Name]++
		j := f.journal(s.Name)
		f.wg.Go(func() {
			defer close(r.done)
			r.run(f.ctx, s.group, names, drain, j)
		})
	}
	f.mu.Unlock()
	did := &Steered{Joined: joined}
	select {
	case <-r.done:
		did.Replicas, did.Left = r.did, r.left
		if r.err != nil {
			did.Reason = r.err.Error()
		}
	case <-s.over:
	case <-ctx.Done():
		did.Left = names // it goes on without the caller
	}
	did.Status = s.status()
	return did
}

func (r *roll) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// run restarts the replicas.
func (r *roll) run(ctx context.Context, g *spread.Group, names []string, drain time.Duration, j *Journal) {
	worked := map[string]bool{}
	for _, s := range g.Status() {
		worked[s.Name] = s.Conns > 0 && !s.Breaker.Open
	}
	for i, name := range names {
		within, cancel := context.WithTimeoutCause(ctx, drain+rollTime, fmt.Errorf("it was not ready within %v", rollTime))
		err := g.Restart(within, name, drain)
		cancel()
		switch {
		case errors.Is(err, spread.ErrDisabled): // in the meantime
			continue
		case err == nil:
			j.Event("replica " + name + ": restarted by its operator")
		default:
			j.Event("replica " + name + ": restarted by its operator; it does not start: " + err.Error())
		}
		r.did = append(r.did, name)
		if err != nil && (worked[name] || i == len(names)-1) {
			r.err, r.left = err, names[i+1:]
			return
		}
	}
}
