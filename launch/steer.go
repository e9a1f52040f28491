package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
)

// Errors of [Servers.Restart], [Servers.Disable] and [Servers.Enable].
var (
	ErrNoServer = errors.New("launch: there is no such server")
	ErrDisabled = errors.New("launch: the server is disabled; enable it")
)

// Steered says what has happened to a server.
type Steered struct {
	Status  gateway.Status // once the server is ready or has failed, or as it was when the wait ended
	Joined  bool           // the server was being restarted already, and was not restarted once more
	Already bool           // the server was in the state that was asked for; nothing has changed

	// Of a restart of replicas, one after another:
	Replicas []string // those that were restarted
	Left     []string // those that were not
	Reason   string   // why the last of Replicas did not start again, so that those in Left were not restarted; empty: it did
}

// Restart starts a server again. If it has replicas and one of them works, they are restarted one after another, so that
// calls go on at the others; if one that worked does not start again, the others are left alone. New calls go to the new connections at once, and wait while these
// open. Calls in progress finish over the old ones, for at most drain; after that they fail, and their
// callers learn that the outcome is unknown. A drain that is negative or longer than 30 seconds is 30 seconds. The pauses
// after failed starts begin anew.
//
// Restart waits until the server is ready or has failed, or ctx ends. While a restart waits, further
// ones wait with it.
func (f *Servers) Restart(ctx context.Context, name string, drain time.Duration) (*Steered, error) {
	f.run()
	f.mu.Lock()
	i, err := f.find(name)
	if err == nil && f.disabled[name] {
		err = ErrDisabled
	}
	if err != nil {
		f.mu.Unlock()
		return nil, err
	}
	s := f.list[i]
	if names := s.inUse(); len(names) > 0 {
		return f.roll(ctx, s, names, drain), nil
	}
	if s.byHand && !s.isSettled() {
		f.mu.Unlock()
		return &Steered{Status: s.settle(ctx), Joined: true}, nil
	}
	if f.restarted == nil {
		f.restarted = map[string]int{}
	}
	f.restarted[name]++
	now := f.replace(i, drain)
	f.mu.Unlock()
	return &Steered{Status: now.settle(ctx)}, nil
}

// Disable takes a server out of use until Enable: its tools and the like are in no list, and its calls
// fail with the text that says. Calls in progress finish, for at most 30 seconds. A change of the
// configuration does not enable it.
func (f *Servers) Disable(name, says string) (*Steered, error) {
	f.run()
	f.mu.Lock()
	defer f.mu.Unlock()
	i, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if f.disabled[name] {
		return &Steered{Status: f.list[i].status(), Already: true}, nil
	}
	if f.disabled == nil {
		f.disabled, f.says = map[string]bool{}, map[string]string{}
	}
	f.disabled[name], f.says[name] = true, says
	return &Steered{Status: f.replace(i, -1).status()}, nil
}

// Enable starts a server that Disable has taken out of use, and waits until it is ready or has failed,
// or ctx ends.
func (f *Servers) Enable(ctx context.Context, name string) (*Steered, error) {
	f.run()
	f.mu.Lock()
	i, err := f.find(name)
	if err != nil {
		f.mu.Unlock()
		return nil, err
	}
	s := f.list[i]
	already := !f.disabled[name]
	if !already {
		delete(f.disabled, name)
		s = f.replace(i, -1)
	}
	f.mu.Unlock()
	if already {
		return &Steered{Status: s.status(), Already: true}, nil
	}
	return &Steered{Status: s.settle(ctx)}, nil
}

// Journal returns the last lines of a server, or nil if there is no such server.
func (f *Servers) Journal(name string) *Journal {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.find(name); err != nil {
		return nil
	}
	return f.journal(name)
}

// Restarted returns how many times a server was started or connected to again, by Restart or on its own. The
// number does not fall when the server is restarted, disabled, enabled, changed or removed.
func (f *Servers) Restarted(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.restarted[name]
	if i, err := f.find(name); err == nil {
		n += f.list[i].status().Restarts
	}
	return n
}

// retire ends a server, and keeps how often it was started again; mu is held.
func (f *Servers) retire(s *server) {
	if f.restarted == nil {
		f.restarted = map[string]int{}
	}
	f.restarted[s.Name] += s.status().Restarts
	s.end()
}

// find returns the index of a server; mu is held.
func (f *Servers) find(name string) (int, error) {
	i := slices.IndexFunc(f.list, func(s *server) bool { return s.Name == name })
	if i < 0 {
		return i, ErrNoServer
	}
	return i, nil
}

// journal returns the journal of a server, a new one if it has none; mu is held.
func (f *Servers) journal(name string) *Journal {
	j := f.journals[name]
	if j == nil {
		if f.journals == nil {
			f.journals = map[string]*Journal{}
		}
		j = new(Journal)
		f.journals[name] = j
	}
	return j
}

// replace starts server i again and ends the old one, which may take drain for its calls in progress;
// mu is held.
func (f *Servers) replace(i int, drain time.Duration) *server {
	old := f.list[i]
	now := f.start(old.Server, old.older, old.fault, nil, true)
	now.byHand = true
	f.list[i] = now
	<-now.ready
	f.retire(old)
	if drain >= 0 && drain < leaveTime {
		f.wg.Go(func() { old.closeAfter(drain) })
	}
	return now
}

// closeAfter closes the connections of a server that is ending.
func (s *server) closeAfter(drain time.Duration) {
	select {
	case <-time.After(drain):
	case <-s.over:
		return
	}
	s.mu.Lock()
	open := make([]*Upstream, 0, len(s.ups))
	for u := range s.ups {
		open = append(open, u)
	}
	s.mu.Unlock()
	for _, u := range open {
		go u.Close() // bounded in time
	}
}

// became keeps the status of a server, and adds a line to its journal if its state has changed.
func (s *server) became(now gateway.Status, j *Journal) {
	s.mu.Lock()
	before := s.last
	s.last = now
	s.mu.Unlock()
	if now.State == gateway.Stopped {
		return
	}
	if now.State != before.State || now.Reason != before.Reason {
		text := string(now.State)
		switch {
		case now.Reason != "":
			text += ": " + now.Reason
		case now.State == gateway.Ready && now.Revision != "":
			text = fmt.Sprintf("ready, %s", now.Revision)
		}
		j.Event(text)
	}
	if now.State != gateway.Starting {
		s.settledOnce.Do(func() { close(s.settled) })
	}
}

// isSettled reports whether a server is ready or has failed.
func (s *server) isSettled() bool {
	select {
	case <-s.settled:
		return true
	default:
		return false
	}
}

// settle waits until a server is ready or has failed, has ended, or ctx ends. It returns the status.
func (s *server) settle(ctx context.Context) gateway.Status {
	select {
	case <-s.settled:
	case <-s.over:
	case <-ctx.Done():
	}
	return s.status()
}

// status returns the last status of a server.
func (s *server) status() gateway.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
