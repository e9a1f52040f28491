package host

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// How a group chooses among its servers:
//
//   - Each has the weight 1 / (latency x (1 + error rate)), but at least a twentieth of that of
//     the best, so that one that was slow once is found out to be fast again. Of whom nothing
//     is known has the weight of the best.
//   - Who has waited longest for its share is next, so that shares are exact also over few calls.
//   - One that fails twice in a row is set aside for 5 seconds, twice as long each time, at most
//     2 minutes. Then one call goes there; what becomes of it decides.
//   - One that is not there, or does not answer, is left out until it is. One that starts is
//     waited for only if there is no other.
const (
	leastShare = 1.0 / 20
	asideAfter = 2
	asideFirst = 5 * time.Second
	asideMost  = 2 * time.Minute
)

// join makes the group out of its members.
func (s *server) join() {
	first := s.members[0].Server
	s.Trusted, s.Cache, s.CallTimeout = true, first.Cache, first.CallTimeout
	ids := make([]string, len(s.members))
	for i, m := range s.members {
		ids[i] = m.Identity
		s.Trusted = s.Trusted && m.Trusted
		s.Cache = min(s.Cache, m.Cache)
	}
	members := s.members
	s.Offers = func(tool string) bool { // what one of them leaves out
		return !slices.ContainsFunc(members, func(m *server) bool { return m.Offers != nil && !m.Offers(tool) })
	}
	// What is allowed for ever is allowed at those who are in the group now. With another it
	// is another group, so that nobody is let in by what was said of the others.
	slices.Sort(ids)
	s.Identity = fmt.Sprintf("group:%s:%x", s.Name, sha256.Sum256([]byte(strings.Join(slices.Compact(ids), "\x00"))))
}

// all returns the servers of a group, or the server itself.
func (s *server) all() []*server {
	if s.members == nil {
		return []*server{s}
	}
	return s.members
}

// spread is Handle for a group. What is listed comes from the first that is fit, as long as that is
// there, and requests about a task go where the task is. If none takes the request, the error is that
// of one that was reached, if there is such a one.
func (s *server) spread(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	pick := next
	switch {
	case strings.HasPrefix(req.Method, "tasks/"):
		if m := s.memberOf(req.Param("taskId")); m != nil {
			return m.Handle(ctx, req)
		}
	case strings.HasSuffix(req.Method, "/list"), req.Method == "server/discover":
		pick = func(fit []*server) *server { return fit[0] }
	}
	a := attemptOf(ctx)
	if a == nil {
		a = &attempt{}
		ctx = a.in(ctx)
	}
	var last error
	reached := false
	for tried := map[*server]bool{}; ; {
		m := s.choose(tried, pick)
		if m == nil {
			return nil, last
		}
		tried[m] = true
		a.choose()
		res, err := m.Handle(ctx, req)
		here, why := a.reached()
		switch {
		case err == nil:
			s.noteTask(res, m)
			return res, nil
		case !here && !notThere(err): // Host.Middleware refuses it
			return nil, err
		case !here && ctx.Err() == nil:
			m.stats.missed()
		}
		if ctx.Err() != nil || here && !m.untouched(ctx, why) {
			return nil, err
		}
		s.h.log().Debug("the next of a group is tried", "server", m.Name, "err", err)
		if here || !reached {
			reached, last = here, err
		}
	}
}

// maxTasks bounds the tasks of which a group knows where they are.
const maxTasks = 1000

// noteTask takes note of the member that has made a task of a call.
func (s *server) noteTask(res mcp.Result, m *server) {
	made, ok := res.(*mcp.CreateTaskResult)
	if !ok {
		return
	}
	id, _ := jsonx.Lookup(made.Task, "taskId")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tasks) >= maxTasks {
		for other := range s.tasks { // any
			delete(s.tasks, other)
			break
		}
	}
	s.tasks[string(id)] = m
}

// memberOf returns the member that has a task, nil if that is not known.
func (s *server) memberOf(id json.RawMessage) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[string(id)]
}

// notThere tells whether a request has not reached a server, as that is not there.
func notThere(err error) bool {
	var unavailable *gateway.UnavailableError
	return errors.As(err, &unavailable) || errors.Is(err, errGone) || errors.Is(err, ErrClosed)
}

// choose finds the member for the next call, nil if all were tried.
func (s *server) choose(tried map[*server]bool, pick func(fit []*server) *server) *server {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	var fit []*server
	var starting, wanting *server
	for _, m := range s.members {
		if tried[m] {
			continue
		}
		switch state := m.state(); {
		case (state == gateway.Ready || state == gateway.Idle) && m.stats.open():
			fit = append(fit, m)
		case state == gateway.Starting && m.stats.open():
			if starting == nil {
				starting = m
			}
		case wanting == nil || m.stats.due().Before(wanting.stats.due()):
			wanting = m
		}
	}
	var chosen *server
	switch {
	case len(fit) > 0:
		chosen = pick(fit)
	case starting != nil:
		chosen = starting
	default:
		chosen = wanting
	}
	return chosen
}

// next finds whose turn it is; mu of the host is held.
func next(fit []*server) *server {
	weights, sum := make([]float64, len(fit)), 0.0
	for i, m := range fit {
		weights[i] = m.stats.weight()
	}
	best := slices.Max(weights)
	if best == 0 {
		best = 1
	}
	for i, w := range weights {
		if w == 0 {
			w = best
		}
		weights[i] = max(w, best*leastShare)
		sum += weights[i]
	}
	var chosen *server
	for i, m := range fit {
		m.credit = min(m.credit+weights[i]/sum, 1)
		if chosen == nil || m.credit > chosen.credit {
			chosen = m
		}
	}
	chosen.credit--
	return chosen
}

// state is that of a server, as far as it is known without asking the gateway.
func (s *server) state() gateway.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.silent.reason != "":
		return gateway.Failing
	case s.last.State == "":
		return gateway.Starting
	}
	return s.last.State
}

// weight is what a server can expect of the calls; 0: nothing is known of it.
func (s *stats) weight() float64 {
	d := s.expected()
	s.mu.Lock()
	defer s.mu.Unlock()
	if d == 0 {
		return 0
	}
	return 1 / (d.Seconds() * (1 + s.rate))
}

// open tells whether calls go to the server: it was not set aside, or one is to find out
// whether it can come back.
func (s *stats) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aside.IsZero() || time.Until(s.aside) <= 0 && !s.trial
}

// due is when the server is tried again.
func (s *stats) due() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aside
}

// setAside sets a server aside that has failed too often; mu is held.
func (s *stats) setAside() {
	if s.streak < asideAfter && s.aside.IsZero() {
		return
	}
	s.pause = min(max(2*s.pause, asideFirst), asideMost)
	s.aside, s.trial = time.Now().Add(s.pause), false
}

// missed notes that a call has not come as far as the server.
func (s *stats) missed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streak++
	s.setAside()
}

// reset forgets that a server was set aside.
func (s *stats) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streak, s.aside, s.pause, s.trial = 0, time.Time{}, 0, false
}

// untouched tells whether an error says that the server has not taken a request.
func (s *server) untouched(ctx context.Context, err error) bool {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" && !hasBegun(err) {
		return true
	}
	f := s.faultOf(ctx, true, false, err)
	return f.ran == never && f.kind != permanent
}
