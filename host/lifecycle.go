package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// keep runs a server until it is removed, and starts a new run after each restart.
func (s *server) keep() {
	defer s.end()
	defer s.h.closeSessions(s)
	// When the host closes, it does not wait for calls in progress.
	defer context.AfterFunc(s.h.ctx, s.disconnect)()
	for s.ctx.Err() == nil {
		ctx, again := context.WithCancel(s.ctx)
		s.mu.Lock()
		run := s.run
		s.again = again
		s.mu.Unlock()
		s.h.links.Run(ctx, gateway.Source{
			Name: s.Name, Share: gateway.Shared, Idle: s.Idle, StartTimeout: s.StartTimeout, Stderr: s.Stderr, Drain: drainTime,
			Open: s.open, Around: s.connection,
			OnStatus: func(st gateway.Status) { s.became(run, st) },
		})
		again()
	}
}

// open opens the server and starts to watch its connection.
func (s *server) open(ctx context.Context) (gateway.Upstream, error) {
	c := s.h.client(s, nil)
	h, err := s.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, fmt.Errorf("server %q: Server.Open returned neither a Handler nor an error", s.Name)
	}
	up, ok := h.(gateway.Upstream)
	if !ok {
		if up, err = c.Open(ctx, h); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.up, s.client, s.silent = up, c, health{}
	s.mu.Unlock()
	s.h.wg.Go(func() { s.watch(up) })
	return up, nil
}

// patience returns how long a call may be silent.
func (s *server) patience() time.Duration {
	return or(s.CallTimeout, or(s.h.Limits.CallTimeout, 2*time.Minute))
}

// disconnect closes the connection.
func (s *server) disconnect() {
	s.mu.Lock()
	up := s.up
	s.mu.Unlock()
	if up != nil {
		up.Close()
	}
}

func (s *server) restart() {
	s.mu.Lock()
	again := s.again
	if again == nil { // the first run is about to begin
		s.mu.Unlock()
		return
	}
	s.run++
	s.last = gateway.Status{}
	select {
	case <-s.added:
		s.added = make(chan struct{})
	default: // callers that wait for the previous run wait for this one
	}
	s.mu.Unlock()
	s.stats.reset()
	again()
	s.disconnect()
}

// became records a new status of a run of the server.
func (s *server) became(run int, st gateway.Status) {
	s.mu.Lock()
	if run != s.run {
		s.mu.Unlock()
		return
	}
	s.last = st
	select {
	case <-s.added:
	default:
		close(s.added)
	}
	s.mu.Unlock()
	s.tell()
}

// tell reports the status of the server to OnStatus, unless the server was replaced.
func (s *server) tell() {
	h := s.h
	if h.OnStatus == nil {
		return
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	h.mu.Lock()
	now := byName(h.running, s.Name)
	h.mu.Unlock()
	if now == nil || now == s {
		s.mu.Lock()
		st := s.last
		s.mu.Unlock()
		h.OnStatus(s.status(st))
	}
}

// status adds what the host knows to the gateway's status of the server. The zero Status stands for
// a server that is not in the gateway yet.
func (s *server) status(st gateway.Status) ServerStatus {
	if st.Name == "" {
		st = gateway.Status{Name: s.Name, State: gateway.Starting, Since: time.Now(), Tools: -1, Prompts: -1, Resources: -1}
	}
	s.mu.Lock()
	if s.silent.reason != "" && st.State == gateway.Ready {
		st.State, st.Reason, st.Since = gateway.Failing, s.silent.reason, s.silent.since
	}
	s.mu.Unlock()
	all := ServerStatus{Status: st, Group: s.Group, Trusted: s.Trusted}
	s.stats.show(&all)
	s.h.mu.Lock()
	all.Disabled = s.off
	if s.Group != "" {
		if g := s.h.find(s.Group); g != nil {
			all.Disabled = g.off
		}
	}
	s.h.mu.Unlock()
	return all
}

// errGone is the error of a call to a server that was removed or replaced.
var errGone = errors.New("the server was removed or replaced")

// gone returns the error of a call to a server that was removed or replaced, or whose host was
// closed.
func (s *server) gone() error {
	if s.h.ctx.Err() != nil {
		return ErrClosed
	}
	return fmt.Errorf("server %q: %w", s.Name, errGone)
}

// orGone returns the error of a request to the server. If the server is gone, that is the error,
// because sessions and connections end with the server, unless the server itself has refused the
// request.
func (s *server) orGone(err error) error {
	var refused *mcp.Error
	if err == nil || s.ctx.Err() == nil || errors.As(err, &refused) {
		return err
	}
	return s.gone()
}

// there waits until the gateway has the server. It fails if the server does not answer checks.
func (s *server) there(ctx context.Context) error {
	s.mu.Lock()
	added, why := s.added, s.silent.reason
	s.mu.Unlock()
	if why != "" {
		return &gateway.UnavailableError{State: gateway.Failing, Err: mcp.Errorf(jsonrpc.CodeInternal, "server %q is %s: %s", s.Name, gateway.Failing, why)}
	}
	if s.ctx.Err() != nil {
		return s.gone()
	}
	select {
	case <-added:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.ctx.Done():
		return s.gone()
	}
}
